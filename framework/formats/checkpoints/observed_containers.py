"""Lists and dicts that wait for items with pending values."""

from collections import UserDict, UserList


def observed(part, on_change):
    """Return a view of a list or dict that calls ``on_change`` when items are added.

    Example:
        >>> from tapewright.formats.checkpoints.observed_containers import observed
        >>> items, seen = [1], []
        >>> observed(items, lambda: seen.append(len(items))).append(2)
        >>> items, seen
        ([1, 2], [2])
    """
    view = ObservedDict() if isinstance(part, dict) else ObservedList()
    view.data, view.on_change = part, on_change
    return view


class ObservedList(UserList):
    """A view of a list."""

    def append(self, item):
        self.data.append(item)
        self.on_change()

    def extend(self, items):
        self.data.extend(items)
        self.on_change()

    def insert(self, index, item):
        self.data.insert(index, item)
        self.on_change()

    def __setitem__(self, index, item):
        self.data[index] = item
        self.on_change()

    def __iadd__(self, items):
        self.extend(items)
        return self


class ObservedDict(UserDict):
    """A view of a dict."""

    on_change = None

    def __setitem__(self, key, item):  # which all other methods call
        self.data[key] = item
        self.on_change()

    def __ior__(self, items):
        self.update(items)
        return self
