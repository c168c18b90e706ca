"""Numbers of threads: teams, blocks and grids, from sizes alone.

So results do not depend on the machine. A GPU with a hundred processors needs about a
hundred thousand threads to be busy, in blocks of some 256.
"""

from typing import NamedTuple

from ...program.limits import DEFAULTS

WARP = 32
THREADS = 256  # of a block
MOST = 512  # of a block with few others beside it
PROCESSORS = 128  # of a large GPU, roughly
SECTOR = 8  # entries of 4 bytes that memory gives at once
SHORT = 8  # entries of rows that one thread each computes
FEW_TEAMS = 1024  # of which each should have many threads
MANY_THREADS = 1 << 17  # that keep the memory of a GPU busy
LONG = 32  # entries of a thread, from which a row is cut into parts
PIECE = 8  # the least entries of a thread in a part


class Geometry(NamedTuple):
    """``blocks`` of ``lanes`` teams of ``team`` threads.

    With ``is_row``, neighbouring threads belong to the same team, else to neighbouring
    teams.
    """

    team: int
    lanes: int
    is_row: bool
    blocks: int

    @property
    def block(self):
        """Threads of a block along x, y and z."""
        sizes = (self.team, self.lanes) if self.is_row else (self.lanes, self.team)
        return (*sizes, 1)


def rows(count, extent, limits=DEFAULTS):
    """Return the geometry of ``count`` rows of ``extent`` contiguous entries."""
    if extent <= SHORT:
        lanes = min(THREADS, max(WARP, _power(count)))
        return Geometry(1, lanes, False, _blocks(count, lanes, limits))
    if extent <= WARP:
        team = _power(extent)
    else:
        team = _power(-(-extent // (4 if count < FEW_TEAMS else WARP)))
        team = min(max(team, WARP), MOST)
    lanes = min(max(1, THREADS // team), max(_power(count), WARP // team, 1))
    return Geometry(team, lanes, True, _blocks(count, lanes, limits))


def columns(count, extent, limits=DEFAULTS):
    """Return the geometry of ``count`` columns of ``extent`` entries, adjacent in memory.

    With few columns, narrower blocks and larger teams keep more processors busy.
    """
    lanes = min(WARP, _power(count))
    while lanes > SECTOR and count < lanes * PROCESSORS and extent > SHORT:
        lanes //= 2
    most = MOST if count < FEW_TEAMS else THREADS
    team = min(most // lanes, _power(-(-extent // 4)))
    if team == 1:
        lanes = min(THREADS, max(WARP, _power(count)))
    return Geometry(team, lanes, False, _blocks(count, lanes, limits))


def parts_of(geometry, extent):
    """Return the number of parts per team that gives every processor work."""
    each = -(-extent // geometry.team)
    threads = geometry.blocks * geometry.lanes * geometry.team
    if threads >= MANY_THREADS or each <= LONG:
        return 1
    parts = min(-(-MANY_THREADS // threads), each // PIECE)
    return -(-extent // -(-extent // parts))  # none is empty


def _blocks(count, lanes, limits):
    return min(-(-count // lanes), limits.grid_blocks)


def _power(n):
    """Return the least power of two that is at least ``n``."""
    return 1 << max(0, n - 1).bit_length()
