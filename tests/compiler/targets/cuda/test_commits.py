"""Steps of several launches: what interrupts them leaves all variables as they were."""

import pytest

from ....optimizers.interrupted_steps import MODEL_STEPS, STEPS, a_scaled_loss
from ....optimizers.interrupts import check_all, equal, some, values
from .runtime_runs import asked, both, graphs, new_log

by_name = {"ids": lambda make: make.__name__}


def few(count):
    """Numbers of bytecodes, half of them at the end."""
    early = range(1, count - 400, max(1, count // 20))
    return [*early, *range(max(1, count - 400), count + 1, 20)]


@pytest.mark.parametrize("make", STEPS, **by_name)
def test_steps_of_several_launches_compute_what_numpy_does(make, gpu):
    def train():
        step, variables = make()
        for _ in range(4):
            step()
        return values(variables)

    both(train, 1e-5)


@pytest.mark.parametrize("make", STEPS, **by_name)
def test_before_whatever_bytecode_an_error_comes_a_step_of_launches_is_whole(make, gpu):
    check_all(make, some)


@pytest.mark.parametrize("make", MODEL_STEPS, **by_name)
def test_a_step_of_a_model_in_several_launches_is_whole(make, gpu):
    check_all(make, few)


@pytest.mark.parametrize("make", MODEL_STEPS, **by_name)
def test_copies_of_variables_leave_them_at_their_addresses(make, gpu):
    step, _ = make()
    for _ in range(3):
        step()
    new_log()
    step()
    captured, launched = graphs()
    assert captured == 0 < launched


def test_a_scaled_loss_takes_two_launches_and_a_copy_of_small_variables(gpu):
    step, _ = a_scaled_loss()
    for _ in range(3):
        step()
    new_log()
    step()
    assert graphs() == (0, 2)
    assert asked().count("launch") == 3  # numbers of both, and one for all copies


@pytest.mark.parametrize("make", [*STEPS, *MODEL_STEPS], **by_name)
def test_memory_that_runs_out_between_launches_leaves_the_step_undone(
    make, gpu, monkeypatch
):
    (step, variables), (other_step, other_variables) = make(), make()
    real, made, limit = gpu.empty, 0, None

    def empty(*args, **options):
        nonlocal made
        made += 1
        if made == limit:
            raise MemoryError("on purpose")
        return real(*args, **options)

    monkeypatch.setattr(gpu, "empty", empty)
    for limit in (None, None, *range(1, 30)):
        made, before = 0, values(variables)
        try:
            step()
        except MemoryError:
            assert equal(values(variables), before)
        else:
            limit = None
            other_step()
        assert equal(values(variables), values(other_variables))
