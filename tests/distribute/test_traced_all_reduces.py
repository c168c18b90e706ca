"""All-reduces in traced functions, on several processes."""

import re

RANDOM_PROGRAMS = """
    import gc
    import itertools

    import numpy as np

    import tapewright as tw
    from tapewright.core.communication.job import communicator
    from tapewright.ops.collective import all_reduce

    gc.freeze()  # or each collection would look at all that was imported
    job = communicator()
    own = np.random.default_rng(job.rank)


    def program(seed, number):
        \"\"\"A random function of rows, as many as a rank has; its variables.\"\"\"
        plan = np.random.default_rng([seed, number])
        matrices = [plan.normal(size=(4, 4)).astype(np.float32) for _ in range(3)]
        state = tw.Variable(np.zeros((4, 4), np.float32))
        steps = [plan.integers(0, 9, 4) for _ in range(plan.integers(4, 24))]

        def function(rows):
            square, outputs = [tw.constant(m) for m in matrices], []
            local = [rows, tw.tanh(rows @ square[0])]
            for kind, i, j, k in steps:
                a, b = square[i % len(square)], square[j % len(square)]
                x = local[k % len(local)]
                if kind == 0:
                    square.append(all_reduce(tw.tanh(tw.matmul(x, x, True))))
                elif kind == 1:
                    square.append(all_reduce(a * b, "mean"))
                elif kind == 2:
                    wide = tw.cast(a, "float64")
                    square.append(tw.cast(all_reduce(wide * 0.5), "float32"))
                elif kind == 3:
                    square.append(tw.reshape(all_reduce(tw.sin(a), "sum", "float16"),
                                             [4, 4]))
                elif kind == 4:
                    with tw.GradientTape() as tape:
                        tape.watch((a, b))
                        y = tw.reduce_sum(tw.tanh(tw.tanh(x @ a) @ b))
                    found = tape.gradient(y, (a, b))
                    square += [all_reduce(g) for g in found if g is not None]
                elif kind == 5:
                    local.append(tw.tanh(x @ a))
                elif kind == 6:
                    state.assign(state * 0.5 + all_reduce(tw.tanh(a)))
                    square.append(state + 0.0)
                elif kind == 7:
                    square.append(tw.cond(
                        a[0, 0] * 0.0 < 1.0, lambda: all_reduce(tw.tanh(a)), lambda: b
                    ))
                else:
                    outputs.append(all_reduce(tw.reduce_sum(x, 0), "max"))
                square[-1] = tw.tanh(square[-1])
            return outputs, square[-2:], local[-1]

        return function, state


    for seed, number in itertools.product(range(2), range(25)):
        function, state = program(seed, number)
        tw.config.set_bucket_bytes(int(np.random.default_rng(number).integers(0, 400)))
        traced = tw.function(function, reduce_retracing=True)
        # Rank 0 replays a trace for this size, rank 1 soon one for all sizes.
        for count in [(2, 2, 1), (1, 3, 2)][job.rank]:
            rows = tw.constant(own.normal(size=(count, 4)).astype(np.float32))
            before = state.numpy().copy()
            expected = [*map(np.array, tw.nest.flatten(function(rows))), state.numpy()]
            state.assign(before)
            found = [*map(np.array, tw.nest.flatten(traced(rows))), state.numpy()]
            for a, b in zip(expected, found, strict=True):
                same = np.array_equal(a, b, equal_nan=True)
                assert same, (seed, number, count, a, b)
    print("done")
"""


def test_random_programs_run_traced_as_they_run_eagerly(run_ranks):
    settings = {"TAPEWRIGHT_TARGET": "numpy", "TAPEWRIGHT_VERIFY": "1"}
    ended = run_ranks(2, RANDOM_PROGRAMS, env=settings, timeout=120)
    assert (ended.rc, ended.stdout) == (0, "done\ndone\n"), ended.stderr


PROFILE = """
    import tapewright as tw

    @tw.function
    def step(x):
        total = tw.distribute.all_reduce(x, "sum")  # goes on beside the product
        return tw.matmul(x, x) + total

    x = tw.ones([50, 50])
    step(x)
    with tw.profiler.trace(table=False) as profile:
        step(x)
    for event in profile.events:
        if "all_reduce" in event.name:
            print(event.category, event.name, flush=True)
    tw.distribute.barrier()  # the first process to end takes the output of others along
"""


def test_the_profiler_shows_the_whole_time_of_an_all_reduce(run_ranks):
    ended = run_ranks(2, PROFILE)
    assert ended.rc == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == [
        *["collective all_reduce sum"] * 2,
        *["instruction all_reduce_sum (start)"] * 2,
        *["instruction all_reduce_sum (wait)"] * 2,
    ]


def test_errors_name_the_line_that_calls_a_traced_function(run_ranks):
    script = """
        import tapewright as tw

        step = tw.function(lambda x: tw.distribute.all_reduce(x, "sum"))
        step(tw.ones([2]))
        if tw.distribute.rank() == 0:
            step(tw.ones([2]))  # line 7
    """
    ended = run_ranks(2, script)
    assert ended.rc != 0
    named = r"rank 0: all_reduce sum of float32\[2\] \(step 1, .*script_\w+\.py:7\)"
    assert re.search(named, ended.stderr), ended.stderr
