"""Updates write in place, and nobody who holds an older value can tell."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.optimizers import SGD, Adam

SHAPES = [(200, 100), (100,), (100, 3), ()]


def problem(rule=Adam, **arguments):
    random = np.random.default_rng(0)
    variables = [
        tw.Variable(random.normal(size=s), dtype="float32", name=f"v{i}")
        for i, s in enumerate(SHAPES)
    ]
    gradients = [tw.constant(random.normal(size=s), dtype="float32") for s in SHAPES]
    return rule(0.1, **arguments), variables, gradients


def places(variables):
    """Which arrays hold the values, without holding them."""
    return [id(v._array) for v in variables]


def snapshots(optimizer, variables, gradients, steps=4):
    found = []
    for _ in range(steps):
        optimizer.apply_gradients(zip(gradients, variables))
        found.append([v.numpy() for v in [*variables, *optimizer.variables]])
    return found


def test_nothing_moves_while_nobody_looks(device):
    if device != "cpu":
        pytest.skip("an eager step on a GPU writes to new arrays")
    optimizer, variables, gradients = problem(amsgrad=True)
    optimizer.apply_gradients(zip(gradients, variables))
    slots = optimizer.variables[2:]
    before = places([*variables, *slots])
    for _ in range(3):
        for v in [*variables, *slots]:
            v.numpy(), float(tw.reduce_sum(v * v)), repr(v), v.shape
        with tw.GradientTape() as tape:
            loss = sum([tw.reduce_sum(v * v) for v in variables])
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables))
    assert places([*variables, *slots]) == before


HOLDERS = {
    "read": lambda v: v.read(),
    "value": lambda v: v.value(),
    "converted": tw.convert_to_tensor,
    "asarray": np.asarray,
    "transposed": lambda v: tw.transpose(v),
    "reshaped": lambda v: tw.reshape(v, (-1,)),
    "row of a view": lambda v: np.asarray(v).reshape(-1)[:1],
    "identity": tw.identity,
    "memoryview": lambda v: memoryview(np.asarray(v)),
    "dlpack": lambda v: np.from_dlpack(np.asarray(v).view()),
    "iterator": lambda v: np.nditer(np.asarray(v)).itviews[0],
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("which", ["variables", "slots"])
def test_a_value_that_is_held_does_not_change(holder, which, device):
    if device == "strict" and holder in ("transposed", "reshaped"):
        pytest.skip("views of the stand-in for CuPy do not hold their base")
    if holder == "dlpack" and not _exports_read_only():
        pytest.skip("this NumPy does not export read-only arrays")
    expected = snapshots(*problem())
    optimizer, variables, gradients = problem()
    optimizer.apply_gradients(zip(gradients, variables))
    watched = variables if which == "variables" else optimizer.variables[2:]
    held = [(HOLDERS[holder](v), v.numpy()) for v in watched]
    frozen = [np.array(h) for h, _ in held]
    rest = snapshots(optimizer, variables, gradients, steps=3)
    for (value, _), old in zip(held, frozen):
        assert np.array_equal(np.array(value), old)
    for found, right in zip(rest, expected[1:]):
        for a, b in zip(found, right):
            assert np.array_equal(a, b)


def _exports_read_only():
    array = np.zeros(2)
    array.flags.writeable = False
    try:
        np.from_dlpack(array)
    except (BufferError, TypeError):
        return False
    return True


def test_once_let_go_a_value_is_updated_in_place_again(device):
    if device != "cpu":
        pytest.skip("an eager step on a GPU writes to new arrays")
    optimizer, variables, gradients = problem()
    optimizer.apply_gradients(zip(gradients, variables))
    first = places(variables)
    held = variables[1].read()
    optimizer.apply_gradients(zip(gradients, variables))
    second = places(variables)
    assert first[1] != second[1]
    assert first[0] == second[0]  # the large one lies apart from the small ones
    del held
    optimizer.apply_gradients(zip(gradients, variables))
    assert places(variables) == second


@pytest.mark.parametrize("rule", [SGD, Adam])
def test_a_persistent_tape_gives_the_old_gradient_after_an_update(rule):
    w = tw.Variable(np.arange(6.0).reshape(2, 3), dtype="float32")
    b = tw.Variable([1.0, 2.0, 3.0])
    optimizer = rule(0.1)
    optimizer.apply([tw.ones((2, 3)), tw.ones((3,))], [w, b])
    with tw.GradientTape(persistent=True) as tape:
        loss = tw.reduce_sum(tw.square(w) * b) + tw.reduce_sum(tw.exp(b))
    first = [g.numpy() for g in tape.gradient(loss, [w, b])]
    for _ in range(2):
        optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b]))
    for again, old in zip(tape.gradient(loss, [w, b]), first):
        assert np.array_equal(again.numpy(), old)


def test_an_update_inside_the_tape_does_not_disturb_it():
    w = tw.Variable([1.0, 2.0])
    optimizer = SGD(0.5)
    optimizer.apply([tw.zeros((2,))], [w])
    with tw.GradientTape() as tape:
        before = tw.reduce_sum(w * w)
        optimizer.apply([tw.ones((2,))], [w])
        loss = before + tw.reduce_sum(w * w * w)
    assert w.numpy().tolist() == [0.5, 1.5]
    g = tape.gradient(loss, w)
    np.testing.assert_allclose(g.numpy(), [2 + 0.75, 4 + 6.75])


def test_an_assigned_value_is_taken_over():
    v, g = tw.Variable([1.0, 2.0]), tw.constant([1.0, 1.0])
    optimizer, given = SGD(0.5), tw.constant([10.0, 20.0])
    optimizer.apply([g], [v])
    v.assign(given)
    optimizer.apply([g], [v])
    assert v.numpy().tolist() == [9.5, 19.5]
    assert given.numpy().tolist() == [10.0, 20.0]


def test_an_assignment_while_the_old_value_is_held_is_seen():
    v, g = tw.Variable([1.0, 2.0]), tw.constant([1.0, 1.0])
    optimizer = SGD(0.5)
    optimizer.apply([g], [v])
    old = v.read()  # takes the place of the variable's own reference
    v.assign([10.0, 20.0])
    optimizer.apply([g], [v])
    assert v.numpy().tolist() == [9.5, 19.5]
    assert old.numpy().tolist() == [0.5, 1.5]


def test_variables_assigned_from_each_other_part_again():
    a, b = tw.Variable([1.0, 2.0]), tw.Variable([3.0, 4.0])
    optimizer = SGD(1.0)
    grads = [tw.constant([1.0, 1.0]), tw.constant([2.0, 2.0])]
    optimizer.apply(grads, [a, b])
    a.assign(b.read())
    optimizer.apply(grads, [a, b])
    assert a.numpy().tolist() == [0.0, 1.0]
    assert b.numpy().tolist() == [-1.0, 0.0]


def test_two_optimizers_can_share_a_variable():
    v, g = tw.Variable([1.0, 2.0]), tw.constant([1.0, 1.0])
    one, two = SGD(0.5), SGD(0.25)
    for _ in range(3):
        one.apply([g], [v])
        held = v.read()
        two.apply([g], [v])
        np.testing.assert_array_equal(held.numpy() - 0.25, v.numpy())
    assert v.numpy().tolist() == [1 - 3 * 0.75, 2 - 3 * 0.75]


def test_gradients_are_left_as_they_are():
    optimizer, variables, gradients = problem(clipnorm=0.1, weight_decay=0.1)
    before = [g.numpy() for g in gradients]
    for _ in range(2):
        optimizer.apply_gradients(zip(gradients, variables))
    for g, old in zip(gradients, before):
        assert np.array_equal(g.numpy(), old)


def slices(rows, shape, value=1.0):
    values = tw.fill((len(rows), *shape[1:]), value)
    return tw.IndexedSlices(values, tw.constant(np.array(rows, np.int64)), shape)


def test_plain_sgd_touches_only_the_rows_of_a_sparse_gradient(monkeypatch):
    table = tw.Variable(np.zeros((3000, 10), np.float32))
    optimizer = SGD(0.5)
    optimizer.build([table])
    computed, update_block = [], SGD.update_block

    def noting(rule, xp, gradient, variable, *more):
        computed.append(variable.size)
        update_block(rule, xp, gradient, variable, *more)

    monkeypatch.setattr(SGD, "update_block", noting)
    for _ in range(2):
        optimizer.apply([slices([7, 2, 7], (3000, 10))], [table])
    assert computed == [20, 20]
    found = table.numpy()
    assert found[2].tolist() == [-1.0] * 10 and found[7].tolist() == [-2.0] * 10
    assert np.count_nonzero(found) == 20


@pytest.mark.parametrize("rule", [SGD, Adam])
def test_a_held_table_is_not_changed_by_a_sparse_gradient(rule):
    table = tw.Variable(np.zeros((3000, 10), np.float32))
    optimizer = rule(0.5)
    optimizer.apply([slices([1], (3000, 10))], [table])
    held, old = table.read(), table.numpy()
    optimizer.apply([slices([1, 5], (3000, 10))], [table])
    assert np.array_equal(held.numpy(), old)
    assert (table.numpy()[5] < 0).all()


def test_the_gradient_of_a_gather_trains_an_embedding():
    table = tw.Variable(np.ones((3000, 10), np.float32))
    optimizer = SGD(0.5)
    for _ in range(2):
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(tw.gather(table, [[4, 4], [8, 0]]))
        g = tape.gradient(loss, table)
        assert isinstance(g, tw.IndexedSlices)
        optimizer.apply_gradients([(g, table)])
    found = table.numpy()
    assert (found[4, 0], found[8, 0], found[0, 0], found[1, 0]) == (-1.0, 0.0, 0.0, 1.0)


def test_an_empty_sparse_gradient_changes_nothing_in_plain_sgd():
    table = tw.Variable(np.ones((3000, 10), np.float32))
    SGD().apply([slices([], (3000, 10))], [table])
    assert (table.numpy() == 1).all()


def test_sparse_gradients_take_indices_that_are_lists_also_when_traced():
    w, rule = tw.Variable(np.ones((3, 2))), tw.optimizers.SGD(1.0)

    @tw.function
    def step(rows):
        rule.apply_gradients([(tw.IndexedSlices(rows, [2, 0, 2]), w)])

    step(tw.constant(np.ones((3, 2))))
    np.testing.assert_array_equal(w, [[0, 0], [1, 1], [-1, -1]])
