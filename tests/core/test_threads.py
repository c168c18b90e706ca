"""Each thread, and each asyncio task, has interpreters of its own."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.core.interpreters import active_interpreters


def in_thread(function):
    """The result of ``function()`` in a new thread; its error is raised here."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_a_tape_does_not_see_the_ops_of_another_thread():
    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y = in_thread(lambda: x * x)
        assert in_thread(active_interpreters) == ()
        z = x * 2.0
    assert tape.gradient([y, z], x).numpy() == 2.0


def test_threads_differentiate_side_by_side():
    v, barrier = tw.Variable([1.0, 2.0]), threading.Barrier(6)

    def work(n):
        found = []
        for _ in range(20):
            with tw.GradientTape() as outer:
                with tw.GradientTape() as inner:
                    barrier.wait(30)
                    y = tw.reduce_sum(v**3 * float(n))
                g = inner.gradient(y, v)
            found.append((g.numpy(), outer.gradient(g, v).numpy()))
        return found

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(work, range(1, 7)))
    for n, found in enumerate(results, start=1):
        for first, second in found:
            np.testing.assert_allclose(first, [3.0 * n, 12.0 * n])
            np.testing.assert_allclose(second, [6.0 * n, 12.0 * n])


def test_a_closed_tape_can_be_asked_in_another_thread():
    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y = x * x
    assert in_thread(lambda: tape.gradient(y, x)).numpy() == 6.0
    assert active_interpreters() == ()


def test_a_tape_asked_by_another_thread_while_it_records_still_leaves_cleanly():
    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y = x * x
        assert in_thread(lambda: tape.gradient(y, x)).numpy() == 6.0
        assert len(active_interpreters()) == 1
    assert active_interpreters() == ()


def test_stop_recording_in_another_thread_is_refused():
    def pause(tape):
        with tape.stop_recording():
            pass

    with tw.GradientTape() as tape:
        with pytest.raises(RuntimeError, match="not recording here"):
            in_thread(lambda: pause(tape))
        assert len(active_interpreters()) == 1


def test_an_error_in_a_thread_leaves_the_others_alone():
    def fail():
        with tw.GradientTape():
            raise KeyError

    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        with pytest.raises(KeyError):
            in_thread(fail)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


def test_devices_are_chosen_by_thread(strict):
    from_outside = devices.current_module()
    with devices.use_module(strict):
        assert in_thread(devices.current_module) is not strict
    assert devices.current_module() is from_outside


def test_tasks_that_take_turns_do_not_mix_their_tapes():
    async def work(n):
        x = tw.Variable(float(n))
        with tw.GradientTape() as outer:
            await asyncio.sleep(0)
            with tw.GradientTape() as inner:
                y = x * x
                await asyncio.sleep(0)
                y = y * x
            g = inner.gradient(y, x)
            await asyncio.sleep(0)
        return g.numpy(), outer.gradient(g, x).numpy(), len(active_interpreters())

    async def main():
        return await asyncio.gather(*(work(n) for n in range(1, 9)))

    for n, found in enumerate(asyncio.run(main()), start=1):
        assert found == (3.0 * n * n, 6.0 * n, 0)


def test_a_task_started_inside_a_tape_is_recorded_by_it():
    async def main():
        x = tw.Variable(3.0)

        async def square():
            return x * x

        with tw.GradientTape() as tape:
            y = await asyncio.create_task(square())
        return tape.gradient(y, x).numpy()

    assert asyncio.run(main()) == 6.0


def test_a_generator_may_hold_a_tape_open():
    x = tw.Variable(3.0)

    def steps():
        with tw.GradientTape() as tape:
            yield x * x
            yield tape

    generator = steps()
    y = next(generator)
    z = y * 2.0
    tape = next(generator)
    generator.close()
    assert active_interpreters() == ()
    assert tape.gradient(z, x).numpy() == 12.0
