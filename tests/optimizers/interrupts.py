"""Steps that are interrupted: at a bytecode, or by a signal at a random moment."""

import bisect
import contextlib
import signal
import sys
import traceback

import numpy as np

import tapewright as tw
from tapewright import keras

__all__ = ["Interrupted", "after", "at_bytecode", "count_bytecodes", "values"]

# Folders of the code that may be interrupted; that of traced programs has no file.
OURS = tuple([p.__path__[0] for p in (tw, tw.layers, tw.optimizers)]) + ("<executable",)


class Interrupted(BaseException):
    """What a handler raises, as `KeyboardInterrupt`."""


def values(variables):
    """Copies of the values of variables."""
    return [np.array(v.numpy()) for v in variables]


def count_bytecodes(step):
    """The number of bytecodes of our code in a step."""
    return _counts_at_calls(step)[-1]


def at_bytecode(n, step, counts=(0,)):
    """Make a step, in which Python raises before the n-th bytecode of our code.

    A signal handler runs before some of them, between calls. With the `counts` of a step
    like this one, bytecodes are counted only from the last call before the n-th: to call
    Python before each one takes many times as long as the step.
    """
    call = bisect.bisect_left(counts, n) - 1
    # The n-th may be the first inside of another `np.errstate`, which then stays as it is.
    with contextlib.suppress(Interrupted), np.errstate():
        _trace(step, call, n - counts[call])


def _counts_at_calls(step):
    """The numbers of bytecodes of our code in a step before each call of it, and in all."""
    return _trace(step, 0, None)


def _trace(step, first, stop):
    """Count bytecodes from the call with the number `first` on, and raise at `stop`."""
    count, counts = 0, []

    def in_frame(frame, event, argument):
        nonlocal count
        if event == "opcode":
            count += 1
            if count == stop:
                sys.settrace(None)
                raise Interrupted
        return in_frame

    def at_call(frame, event, argument):
        if not _is_ours(frame):
            return None
        counts.append(count)
        if len(counts) == first + 1:  # from now on in the frames that called it, too
            for outer, _ in traceback.walk_stack(frame):
                _count_in(outer, in_frame)
        return _count_in(frame, in_frame) if len(counts) > first else None

    before = sys.gettrace()
    sys.settrace(at_call)
    try:
        step()
    finally:
        sys.settrace(before)
    return [*counts, count]


def _is_ours(frame):
    return frame.f_code.co_filename.startswith(OURS)


def _count_in(frame, in_frame):
    if _is_ours(frame):
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        frame.f_trace = in_frame
    return frame.f_trace


@contextlib.contextmanager
def _alarm():
    """``arm(seconds)``: then a handler raises, but not outside of the context."""
    is_on = True

    def handler(number, frame):
        if is_on:
            raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    except Interrupted:
        pass
    finally:
        is_on = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def after(seconds, function):
    """Call a function that a signal handler interrupts after some time."""
    with np.errstate(), _alarm() as arm:
        arm(max(seconds, 1e-5))
        function()


def model_step(run_eagerly):
    """``(step, variables)`` of a model with statistics, dropout and metrics."""
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Dense(8),
            layers.BatchNormalization(),
            layers.Dropout(0.3, seed=1),
            layers.Dense(3),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"], run_eagerly=run_eagerly)
    random = np.random.default_rng(1)
    data = [tw.constant(random.normal(size=(8, n)), "float32") for n in (5, 3)]
    train = model.make_train_function()
    train(data)
    counted = model.metrics_variables if run_eagerly else ()
    variables = [v for v in model.variables if all(v is not m for m in counted)]
    return lambda: train(data), [*variables, *model.optimizer.variables]


def step_of(
    rule,
    traced=False,
    shapes=((20, 30), (30,), (30, 3)),
    sparse=False,
    constraint=None,
):
    """``(step, variables)``; equal calls give steps with equal results."""
    numbers = np.random.default_rng(0)
    trained = [
        tw.Variable(numbers.normal(size=shape).astype("f4"), name=f"v{i}")
        for i, shape in enumerate(shapes)
    ]
    trained[-1].constraint = constraint
    gradients = [
        tw.constant(numbers.normal(size=v.shape).astype("f4")) for v in trained
    ]
    if sparse:
        rows = tw.ones((3, *shapes[0][1:]))
        gradients[0] = tw.IndexedSlices(rows, tw.constant([1, 5, 1]), shapes[0])
    optimizer = rule()

    def step():
        optimizer.apply_gradients(zip(gradients, trained))

    step = tw.function(step) if traced else step
    step()
    step()  # which has machine code
    return step, [*trained, *optimizer.variables]


def check_all(make, numbers):
    """Interrupt steps before these bytecodes; each was made as a whole or not at all."""
    step, variables = make()
    other_step, other_variables = make()
    _settle(step, variables)  # the first steps have many more bytecodes
    # Steps that sum gradients have fewer bytecodes than the one that takes the sum.
    counts = max(_counts_at_calls(step), _counts_at_calls(step), key=lambda c: c[-1])
    count = counts[-1]
    # One that captures graphs again has more: further ones, until one comes to its commit.
    numbers, more = list(numbers(count)), range(count, 9 * count, 30)
    made = set()
    for i, n in enumerate([*numbers, *more]):
        if i >= len(numbers) and made == {False, True}:
            break
        _settle(step, variables)
        before = values(variables)
        at_bytecode(n, step, counts)
        found = values(variables)
        if equal(found, before):
            made.add(False)
            continue
        for variable, value in zip(other_variables, before, strict=True):
            variable.assign(value)
        other_step()
        assert equal(found, values(other_variables)), f"torn at bytecode {n}"
        made.add(True)
    assert made == {False, True}


def _settle(step, variables):
    """Make steps until memory and graphs are there again that an interrupted one has lost."""
    for _ in range(1 if "CPU" in variables[0].device else 3):
        step()


def equal(one, other):
    return all([np.array_equal(a, b) for a, b in zip(one, other, strict=True)])


def the_end(count):
    """The numbers of the last bytecodes, among which the commit is, and some before."""
    return [*range(1, count - 700, 41), *range(max(1, count - 700), count + 1)]


def some(count):
    """Numbers of bytecodes, most of them at the end."""
    return [
        *range(1, count - 120, max(1, count // 60)),
        *range(max(1, count - 120), count + 1),
    ]
