"""Lists and dicts for which values wait: what is put into them gets its value then."""

from collections import UserDict, UserList

__all__ = ["tracked"]


def tracked(part, arrive):
    """A list or dict as a view of it that calls ``arrive`` as items come.

    >>> items, told = [1], []
    >>> tracked(items, lambda: told.append(len(items))).append(2)
    >>> items, told
    ([1, 2], [2])
    """
    view = TrackedDict() if isinstance(part, dict) else TrackedList()
    view.data, view.arrive = part, arrive
    return view


class TrackedList(UserList):
    """A view of a list."""

    def append(self, item):
        self.data.append(item)
        self.arrive()

    def extend(self, items):
        self.data.extend(items)
        self.arrive()

    def insert(self, index, item):
        self.data.insert(index, item)
        self.arrive()

    def __setitem__(self, index, item):
        self.data[index] = item
        self.arrive()

    def __iadd__(self, items):
        self.extend(items)
        return self


class TrackedDict(UserDict):
    """A view of a dict."""

    arrive = None

    def __setitem__(self, key, item):  # which all other methods call
        self.data[key] = item
        self.arrive()

    def __ior__(self, items):
        self.update(items)
        return self
