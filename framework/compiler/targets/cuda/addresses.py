"""`Addresses`: the addresses that the steps of a program use, by number.

A step refers to memory by the number of an address, and gets the address itself when it
is captured. Buffers that share memory share a number, so that a kernel has one parameter
for both.
"""

from ...loops.accesses import layout_of


class Root:
    """Memory whose address is known when a step is captured: see `DeviceInstance.address`.

    ``kind`` is its kind, ``key`` the object that identifies it.
    """

    __slots__ = ("kind", "key")

    def __init__(self, kind, key=None):
        self.kind, self.key = kind, key

    def __eq__(self, other):
        return self.kind == other.kind and self.key is other.key

    def __hash__(self):
        return hash((self.kind, id(self.key)))

    def __repr__(self):
        return f"<Root {self.kind} {self.key!r}>"


class Addresses:
    """Numbers of addresses: ``addresses[buffer]`` belongs to the base of its layout.

    ``root_of(base)`` returns the `Root` in whose memory a base buffer lies, and its
    byte offset there; a string, like `kernel.STATUS`, is a root of this kind. ``where``
    lists root and offset of each address.
    """

    def __init__(self, root_of, where=None, numbers=None):
        self._root_of, self._found = root_of, {}
        self.where = [] if where is None else where
        self._numbers = {} if numbers is None else numbers

    def nested(self, root_of):
        """Return addresses of other buffers, with the same numbers for the same addresses."""
        return Addresses(root_of, self.where, self._numbers)

    def __getitem__(self, buffer):
        number = self._found.get(buffer)
        if number is None:
            number = self._found[buffer] = self.at(buffer)
        return number

    def at(self, buffer, offset=0):
        """Return the number of the address this many bytes behind the start of a buffer."""
        root, start = self.locate(buffer)
        key = root, start + offset
        number = self._numbers.setdefault(key, len(self.where))
        if number == len(self.where):
            self.where.append(key)
        return number

    def locate(self, buffer):
        """Return ``(root, offset)`` of a buffer, of its base if it is a view."""
        if type(buffer) is str:
            return Root(buffer), 0
        if type(buffer) is Root:
            return buffer, 0
        return self._root_of(layout_of(buffer).base)
