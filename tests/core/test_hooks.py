"""Hooks: each is filled once, by the file that it names, and called below it."""

import pytest

from tapewright.core import hooks
from tapewright.core.errors import InternalError
from tapewright.core.hooks import Event, Hook

from ..sources import ROOT, paths

HOOKS = {name: h for name, h in vars(hooks).items() if isinstance(h, Hook)}
EVENTS = {name: h for name, h in vars(hooks).items() if isinstance(h, Event)}


def files_with(text):
    """Return the files of the package that contain ``text``, as in `Hook.owner`."""
    found = [path for path in paths() if text in path.read_text(encoding="utf-8")]
    return {str(path.relative_to(ROOT)).removeprefix("framework/") for path in found}


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_filled_by_its_owner_alone_and_called_elsewhere(name):
    owner = HOOKS[name].owner
    assert files_with(f"hooks.{name}.fill") == {owner}
    callers = files_with(f"hooks.{name}.call(")
    assert callers and owner not in callers
    assert HOOKS[name].call != HOOKS[name]._fail


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_has_a_caller_and_a_listener(name):
    assert files_with(f"hooks.{name}.call(") and files_with(f"hooks.{name}.add")


def test_an_empty_hook_names_the_file_that_fills_it():
    with pytest.raises(InternalError, match="of a/b.py is called before it is filled"):
        Hook("a/b.py").call(1, x=2)


def test_a_hook_is_filled_once():
    hook = Hook("a/b.py")
    assert hook.fill(len) is len and hook.call([1, 2]) == 2
    with pytest.raises(InternalError, match="of a/b.py is filled twice"):
        hook.fill(len)


def test_listeners_are_called_in_order():
    event, told = Event(), []
    event.add(told.append)
    assert event.add(told.append) == told.append
    event.call(3)
    assert told == [3, 3]
