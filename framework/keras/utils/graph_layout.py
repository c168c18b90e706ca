"""Where boxes and lines of a layered drawing go: each box below those that lead to it.

The steps are Sugiyama's ("Methods for visual understanding of hierarchical system
structures", 1981): ranks, then an order within each rank that crosses few lines, then
positions close to the neighbours'. A line over several ranks has a place in each.
"""

from typing import NamedTuple

__all__ = ["Drawing", "Piece", "draw_layered"]

SWEEPS = 12
LONG_LINE_WIDTH = 8.0
LANE = 13.0  # between lines that lead back


class Drawing(NamedTuple):
    """The centers of boxes, and ``lines``: edge -> pieces."""

    centers: dict
    lines: dict
    width: float
    height: float


class Piece(NamedTuple):
    """A part of a line between two points; between ranks it may turn at height ``turn``."""

    start: tuple
    end: tuple
    turn: float | None


class _Place:
    """A box in its rank, or where a long line passes through one."""

    def __init__(self, rank, width, height):
        self.rank, self.width, self.height = rank, width, height
        self.above, self.below = [], []
        self.x = 0.0


def draw_layered(sizes, edges, gap=22.0, rank_gap=30.0) -> Drawing:
    """Positions for boxes of these ``sizes`` (name -> width, height) and their ``edges``.

    Edges, pairs of names, lead down; one that comes back to a box, or leads up, runs at
    the right of all. Names are in an order in which most edges lead to later ones.

    Returns: the centers of the boxes, name -> (x, y), with y from the top, the pieces of
    the lines, and the size of the whole.
    """
    order = {name: i for i, name in enumerate(sizes)}
    edges = list(dict.fromkeys(edges))
    down = [(a, b) for a, b in edges if order[a] < order[b]]
    ranks = _ranks(sizes, down)
    places = {n: _Place(ranks[n], *sizes[n]) for n in sizes}
    rows = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    for place in places.values():
        rows[place.rank].append(place)
    chains = {(a, b): _link(places, rows, a, b) for a, b in down}
    _reduce_crossings(rows)
    _assign_x(rows, gap)
    levels, y = [], 0.0
    for row in rows:
        tall = max([p.height for p in row])
        levels.append((y, y + tall))
        y += tall + rank_gap
    centers = {n: (p.x, sum(levels[p.rank]) / 2) for n, p in places.items()}
    width = max([p.x + p.width / 2 for row in rows for p in row], default=0.0)
    lines = _lines(chains, levels)
    for a, b in edges:
        if (a, b) not in lines:
            width += LANE
            lines[a, b] = _line_back(
                places[a], places[b], centers[a], centers[b], width
            )
    return Drawing(centers, lines, width, max(y - rank_gap, 0.0))


def _ranks(sizes, edges):
    """The longest way to each box; what leads on stands right above its first target."""
    before, after = {n: [] for n in sizes}, {n: [] for n in sizes}
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
    ranks = {}
    for name in sizes:
        ranks[name] = 1 + max([ranks[a] for a in before[name]], default=-1)
    for name in reversed(sizes):
        if after[name] and not before[name]:  # an input stands near its use
            ranks[name] = min([ranks[b] for b in after[name]]) - 1
    return ranks


def _link(places, rows, a, b):
    """Joins two boxes through a place in each rank between; returns all these."""
    chain = [places[a]]
    for rank in range(places[a].rank + 1, places[b].rank):
        chain.append(_Place(rank, LONG_LINE_WIDTH, 0.0))
        rows[rank].append(chain[-1])
    chain.append(places[b])
    for upper, lower in zip(chain, chain[1:]):
        upper.below.append(lower)
        lower.above.append(upper)
    return chain


# ---------------------------------------------------------------------------- order


def _reduce_crossings(rows):
    """Sorts each rank by where its neighbours stand, down and up, and keeps the best."""
    best, fewest = [list(row) for row in rows], _crossings(rows)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        downward = sweep % 2 == 0
        for row in rows if downward else reversed(rows):
            at = {id(p): i for r in rows for i, p in enumerate(r)}
            row.sort(key=lambda p: _mean_position(p, at, downward))
        count = _crossings(rows)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
    for row, kept in zip(rows, best):
        row[:] = kept


def _mean_position(place, at, downward):
    near = place.above if downward else place.below
    if not near:
        return at[id(place)]
    return sum([at[id(p)] for p in near]) / len(near)


def _crossings(rows):
    count = 0
    for upper, lower in zip(rows, rows[1:]):
        at = {id(p): i for i, p in enumerate(lower)}
        ends = [
            at[id(q)] for p in upper for q in sorted(p.below, key=lambda q: at[id(q)])
        ]
        count += sum([a > b for i, a in enumerate(ends) for b in ends[i + 1 :]])
    return count


# ------------------------------------------------------------------------ positions


def _assign_x(rows, gap):
    for row in rows:
        _set_row(row, [0.0] * len(row), gap)
    for sweep in range(2 * SWEEPS):
        downward = sweep % 2 == 0
        for row in rows if downward else reversed(rows):
            _set_row(row, [_wanted_x(p, downward) for p in row], gap)
    left = min([p.x - p.width / 2 for row in rows for p in row], default=0.0)
    for row in rows:
        for p in row:
            p.x -= left


def _wanted_x(place, downward):
    """Under the middle of its neighbours; in line with one that has no other."""
    near = place.above if downward else place.below
    alone = [q for q in near if len(q.below if downward else q.above) == 1]
    near = alone if len(near) > 1 and len(alone) == 1 else near
    return sum([q.x for q in near]) / len(near) if near else place.x


def _set_row(row, wanted, gap):
    """The places of a row as near to ``wanted`` as they go without touching.

    Least squares under minimal distances: without them, a monotone regression, by
    pooling neighbours that are too close.
    """
    offsets, total = [], 0.0
    for i, p in enumerate(row):
        if i:
            total += (row[i - 1].width + p.width) / 2 + gap
        offsets.append(total)
    pools = []  # [sum of targets, how many]
    for target, offset in zip(wanted, offsets):
        pools.append([target - offset, 1])
        while len(pools) > 1 and _mean(pools[-2]) > _mean(pools[-1]):
            extra, count = pools.pop()
            pools[-1][0] += extra
            pools[-1][1] += count
    means = [_mean(pool) for pool in pools for _ in range(pool[1])]
    for p, mean, offset in zip(row, means, offsets):
        p.x = mean + offset


def _mean(pool):
    return pool[0] / pool[1]


# ---------------------------------------------------------------------------- lines


def _lines(chains, levels):
    """The pieces of all lines that lead down."""
    ports = _ports(chains)
    stations = {}  # of each line: x, where it enters the rank, where it leaves
    for edge, chain in chains.items():
        found = [[p.x, *levels[p.rank]] for p in chain]
        first, last = chain[0], chain[-1]
        found[0][1] = sum(levels[first.rank]) / 2 + first.height / 2
        found[-1][2] = sum(levels[last.rank]) / 2 - last.height / 2
        found[-1][0] = ports[edge]
        stations[edge] = found
    turns = _turns(stations, {e: chain[0].rank for e, chain in chains.items()})
    lines = {}
    for edge, found in stations.items():
        pieces = []
        for i, (x, enter, leave) in enumerate(found):
            pieces.append(Piece((x, enter), (x, leave), None))
            if i + 1 < len(found):
                end = found[i + 1]
                pieces.append(Piece((x, leave), (end[0], end[1]), turns[edge, i]))
        lines[edge] = [p for p in pieces if p.start != p.end]
    return lines


def _ports(chains):
    """Where each line meets the top of its box: side by side, a single one straight."""
    arriving = {}
    for edge, chain in chains.items():
        arriving.setdefault(edge[1], []).append((chain[-2].x, edge))
    ports = {}
    for found in arriving.values():
        box = chains[found[0][1]][-1]
        if len(found) == 1 and abs(found[0][0] - box.x) < box.width / 4:
            ports[found[0][1]] = found[0][0]
            continue
        found.sort(key=lambda entry: entry[0])
        step = min(24.0, 0.8 * box.width / len(found))
        for i, (_, edge) in enumerate(found):
            ports[edge] = box.x + (i - (len(found) - 1) / 2) * step
    return ports


def _turns(stations, ranks):
    """The heights at which lines turn: in each gap another for each that begins there."""
    gaps = {}
    for edge, found in stations.items():
        for i, (upper, lower) in enumerate(zip(found, found[1:])):
            gaps.setdefault(ranks[edge] + i, []).append((edge, i, upper, lower))
    turns = {}
    for members in gaps.values():
        bent = [upper[0] for _, _, upper, lower in members if upper[0] != lower[0]]
        tracks = {x: k for k, x in enumerate(sorted(set(bent)))}
        for edge, i, upper, lower in members:
            share = (tracks.get(upper[0], 0) + 1) / (len(tracks) + 1)
            turns[edge, i] = upper[2] + share * (lower[1] - upper[2])
    return turns


def _line_back(source, target, at, to, x):
    """From the right side of one box along the lane ``x`` to the right side of another."""
    start = (at[0] + source.width / 2, at[1] + source.height / 4)
    end = (to[0] + target.width / 2, to[1] - target.height / 4)
    corners = [start, (x, start[1]), (x, end[1]), end]
    return [Piece(a, b, None) for a, b in zip(corners, corners[1:])]
