"""Numbers of addresses."""

import numpy as np

from tapewright.compiler.program.program import Buffer, Kind
from tapewright.compiler.targets.cuda.addresses import Addresses, Root
from tapewright.compiler.targets.cuda.kernel import STATUS

from .program_runs import add_input, add_view, new_program, sliced


def arena(base):
    return Root("arena"), base.offset


def buffers(*offsets):
    made = [Buffer((4,), np.dtype("f"), Kind.ARENA) for _ in offsets]
    for buffer, offset in zip(made, offsets):
        buffer.offset = offset
    return made


def test_buffers_at_one_address_share_a_place():
    a, b, c = buffers(0, 0, 64)
    addresses = Addresses(arena)
    assert addresses[a] == addresses[b] == 0 and addresses[c] == 1
    assert addresses.where == [(Root("arena"), 0), (Root("arena"), 64)]


def test_a_view_has_the_place_of_its_base():
    program = new_program()
    x = add_input(program, np.zeros((2, 3), "f"))
    turned = add_view(program, x, np.ndarray.transpose, (1, 0))
    row = sliced(program, x, 1)
    addresses = Addresses(lambda base: (Root("input", base), 0))
    assert addresses[turned] == addresses[row] == addresses[x]
    assert addresses.at(row, 12) != addresses[x]


def test_roots_are_told_apart_by_the_very_object():
    a, b = [1], [1]
    assert Root("variable", a) == Root("variable", a)
    assert Root("variable", a) != Root("variable", b)
    assert Root("variable", a) != Root("stored", a)
    assert len({Root("flat", a), Root("flat", a), Root("flat", b)}) == 2


def test_a_string_is_a_root_of_this_kind():
    addresses = Addresses(arena)
    assert addresses[STATUS] == addresses[Root("status")] == 0


def test_nested_places_have_the_same_numbers():
    a, b = buffers(0, 64)
    outer = Addresses(arena)
    outer[a]
    inner = outer.nested(lambda base: (Root("arena"), 0 if base is b else 128))
    assert inner[b] == outer[a] and inner[a] == 1
    assert outer.where is inner.where
