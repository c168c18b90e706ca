"""`Pattern`: regular expressions in Python's syntax, matched in linear time.

``re`` backtracks: ``(a+)+$`` takes exponential time in the length of the text, and
``a.*b.*c`` cubic time. A pattern here counts the paths that ``re`` could try in the
worst case. If they are few, as for most patterns and short texts, ``re`` matches.
Otherwise the pattern is compiled to a program that tries no state twice at one
position: backtracking with a memory, like RE2's BitState. Names, paths and patterns
from files are thus safe to match.
"""

from __future__ import annotations

import functools
import math
import re
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any

from .errors import InvalidArgumentError

# Characters, sets and assertions, with repeated ones counted each time.
MAX_SIZE = 10_000
MAX_STATES = 1 << 25  # pairs of a choice in the pattern and a position in the text
# Paths of `re` for each character that take the time of one step of a program.
PATHS_PER_CHARACTER = 1000

_ONE = ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT", "FAILURE")  # with one way to match
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
_PIECE, _SAVE, _CHOICE, _END = range(4)


class PatternError(InvalidArgumentError):
    """Raised for a pattern that is invalid or cannot be matched in linear time."""

    def __init__(self, pattern: str, reason: str):
        super().__init__(f"the regular expression {pattern!r:.200}: {reason}")


class Pattern:
    """Regular expression that is matched in linear time.

    Lookaround, back references and atomic groups are only matched where ``re`` is fast,
    as for paths of variables.

    Args:
        pattern: Regular expression in the syntax of ``re``.
        flags: Flags of ``re``.
        source: Pattern to show in errors if ``pattern`` is a translation of it.

    Raises:
        PatternError: If the pattern is invalid, or has more than `MAX_SIZE` characters
            once repetitions are expanded (also a ``ValueError``).

    Example:
        >>> from tapewright.core.patterns import Pattern
        >>> Pattern("(a+)+b").search("a" * 5000) is None
        True
    """

    def __init__(self, pattern: str, flags: int = 0, source: str | None = None):
        self.pattern = pattern if source is None else source
        self._check_size(len(pattern))
        try:
            self._tree = _parser.parse(pattern, flags)
            self._check_size(_size(self._tree))
            self._re = re.compile(pattern, flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise PatternError(self.pattern, str(error)) from None
        self.groups = self._re.groups

    def _check_size(self, size):
        if size > MAX_SIZE:
            reason = (
                f"{size} characters, repetitions expanded; at most {MAX_SIZE} allowed"
            )
            raise PatternError(self.pattern, reason)

    def fullmatch(self, text: str) -> Any:
        """Return the match of the whole text, or None.

        Args:
            text: Text to match.

        Raises:
            PatternError: If the match could take longer than linear time.
        """
        if len(text) <= self._longest_fullmatch:
            return self._re.fullmatch(text)
        return self._program.run(text, 0, True)

    def search(self, text: str, start: int = 0) -> Any:
        """Return the first match from ``start`` on, or None.

        Args:
            text: Text to search.
            start: Index of the first character to look at.

        Raises:
            PatternError: If the match could take longer than linear time.
        """
        if len(text) <= self._longest_search:
            return self._re.search(text, start)
        return self._program.run(text, start, False)

    def finditer(self, text: str) -> Any:
        """Yield successive matches; none is empty at the end of the previous one."""
        is_short = len(text) <= self._longest_search
        states = None if is_short else self._program.states(text)
        at, last_end = 0, -1
        while at <= len(text):
            if is_short:
                match = self._re.search(text, at)
            else:
                match = self._program.run(text, at, False, states)
            if match is None:
                return
            begin, end = match.span()
            if begin == end == last_end:
                at = begin + 1
                continue
            yield match
            at = last_end = end

    @functools.cached_property
    def _longest_fullmatch(self):
        return _longest(lambda length: _paths(self._tree, length, True)[0])

    @functools.cached_property
    def _longest_search(self):
        return _longest(lambda length: _paths(self._tree, length, False)[0] * length)

    @functools.cached_property
    def _program(self):
        return _Program(self.pattern, self._tree, self._re.flags)


def pattern_of(pattern: str) -> Pattern:
    """Return the `Pattern` of a string, from a cache.

    Args:
        pattern: Regular expression in the syntax of ``re``.

    Raises:
        TypeError: If ``pattern`` is not a string.
        PatternError: If it is invalid, as for `Pattern`.
    """
    if not isinstance(pattern, str):
        raise TypeError(f"a regular expression must be a string, got {pattern!r:.80}")
    return _kept(pattern)


_kept = functools.lru_cache(maxsize=256)(Pattern)


# ---------------------------------------------------------------- the cost of a pattern


def _size(items):
    """Return the number of characters of a pattern with expanded repetitions."""
    total = 0
    for op, value in items:
        name = str(op)
        if name.endswith("_REPEAT"):
            low, high, inner = value
            count = low if high is _parser.MAXREPEAT else high
            total += (_size(inner) + 1) * max(int(count), 1)
        else:
            total += 1 + sum([_size(each) for each in _inner(name, value)])
    return total


def _inner(name, value):
    """Return the patterns inside an item."""
    if name == "SUBPATTERN":
        return [value[3]]
    if name == "BRANCH":
        return value[1]
    if name in ("ASSERT", "ASSERT_NOT"):
        return [value[1]]
    if name == "ATOMIC_GROUP":
        return [value]
    if name == "GROUPREF_EXISTS":
        return [each for each in value[1:] if each is not None]
    return []


def _paths(items, length, can_fail):
    """Return a bound on the paths that `re` tries, and whether one of them can fail.

    The text has the given length; ``can_fail`` is whether the rest of the pattern,
    after the items, can fail and make `re` backtrack.
    """
    paths = 1.0
    for op, value in reversed(list(items)):
        name = str(op)
        if name == "SUBPATTERN":
            ways, can_fail = _paths(value[3], length, can_fail)
            paths *= ways
        elif name in ("BRANCH", "GROUPREF_EXISTS"):
            paths *= sum([_paths(p, length, can_fail)[0] for p in _inner(name, value)])
            can_fail = True
        elif name in _REPEATS:
            paths *= _paths_of_repeat(*value, length, can_fail)
            can_fail = can_fail or value[0] > 0
        elif name == "POSSESSIVE_REPEAT":
            paths += _paths_of_repeat(*value, length, False)
            can_fail = True
        elif name in ("ASSERT", "ASSERT_NOT", "ATOMIC_GROUP"):
            paths += sum([_paths(p, length, False)[0] for p in _inner(name, value)])
            can_fail = True
        else:
            paths = paths if name in _ONE or name == "GROUPREF" else math.inf
            can_fail = True
    return paths, can_fail


def _paths_of_repeat(low, high, inner, length, can_fail):
    ways = _paths(inner, length, True)[0]
    if high > 1 and inner.getwidth()[0] == 0:
        return math.inf  # after an empty repetition `re` stops, where RE2 goes on
    low, high = int(low), min(int(high), max(length, int(low)))
    if ways == 1:
        return high - low + 1 if can_fail else 1
    # Without a failure after it `re` stays in the first way through each repetition.
    count = high if can_fail else max(low, 1)
    return ways**count if count * math.log2(ways) < 1000 else math.inf


def _longest(paths):
    """Return the maximum text length for which `re` is fast, a power of two or inf."""
    length = 1
    while paths(length) <= PATHS_PER_CHARACTER * (length + 100):
        length *= 2
        if length > 1 << 40:
            return math.inf
    return length // 2


# ------------------------------------------------------- matching without going back twice


class _Match:
    """Match of a `_Program`: the required part of `re.Match`."""

    __slots__ = ("_text", "_spans")

    def __init__(self, text, spans):
        self._text, self._spans = text, spans

    def span(self, group=0):
        return self._spans.get(group, (-1, -1))

    def __getitem__(self, group):
        begin, end = self.span(group)
        return None if begin < 0 else self._text[begin:end]


class _Program:
    """Instructions ``(kind, what, next)``.

    A piece is a part with a single way to match, which `re` handles; a choice tries
    ``next``, then the positions ``what``.
    """

    def __init__(self, pattern, tree, flags):
        self._pattern = pattern
        self._code = [(_END, None, None)]
        end = self._emit(_SAVE, (0, 1), 0)
        self._start = self._emit(_SAVE, (0, 0), self._compile(list(tree), end, flags))
        self._first = self._first_of(list(tree), flags)
        choices = [at for at, each in enumerate(self._code) if each[0] == _CHOICE]
        self._numbers = {at: number for number, at in enumerate(choices)}

    def _emit(self, kind, what, follow):
        self._code.append((kind, what, follow))
        return len(self._code) - 1

    def _compile(self, items, follow, flags):
        """Add the instructions of items, and return the index of the first."""
        at = len(items)
        while at:
            begin = at
            while begin and _is_piece(items[begin - 1]):
                begin -= 1
            if begin < at:
                follow = self._emit(
                    _PIECE, self._piece(items[begin:at], flags).match, follow
                )
                at = begin
                continue
            at -= 1
            follow = self._compile_item(str(items[at][0]), items[at][1], follow, flags)
        return follow

    def _compile_item(self, name, value, follow, flags):
        if name == "SUBPATTERN":
            group, added, removed, inner = value
            flags = (flags | added) & ~removed
            if group is None:
                return self._compile(list(inner), follow, flags)
            end = self._emit(_SAVE, (group, 1), follow)
            return self._emit(_SAVE, (group, 0), self._compile(list(inner), end, flags))
        if name == "BRANCH":
            ways = [self._compile(list(each), follow, flags) for each in value[1]]
            return self._emit(_CHOICE, ways[:0:-1], ways[0])
        if name in _REPEATS:
            return self._compile_repeat(*value, name == "MAX_REPEAT", follow, flags)
        raise PatternError(
            self._pattern,
            "lookaround, back references and atomic groups are supported only where few "
            "ways to match are possible; use fewer repetitions, or match shorter texts",
        )

    def _compile_repeat(self, low, high, inner, is_greedy, follow, flags):
        inner, low, after = list(inner), int(low), follow
        if high is _parser.MAXREPEAT:
            # x* is (x+)?, so that an empty x is matched once, as in RE2.
            again = self._emit(_CHOICE, (), None)
            body = self._compile(inner, again, flags)
            self._code[again] = self._choice(body, after, is_greedy)
            follow, low = body, low - 1
            if low < 0:
                return self._emit(*self._choice(body, after, is_greedy))
        else:
            for _ in range(int(high) - low):
                body = self._compile(inner, follow, flags)
                follow = self._emit(*self._choice(body, after, is_greedy))
        for _ in range(low):
            follow = self._compile(inner, follow, flags)
        return follow

    def _choice(self, body, after, is_greedy):
        return (_CHOICE, (after,), body) if is_greedy else (_CHOICE, (body,), after)

    def _piece(self, items, flags):
        state = _parser.State()
        state.flags = flags
        return _compiler.compile(_parser.SubPattern(state, items), flags)

    def _first_of(self, items, flags):
        """Return a search for possible starts of a match, or None for any position."""
        while items:
            name, value = str(items[0][0]), items[0][1]
            if name == "SUBPATTERN":
                flags = (flags | value[1]) & ~value[2]
                items = list(value[3])
            elif name in _REPEATS and value[0] > 0:
                items = list(value[2])
            elif name in _ONE and name != "AT":
                return self._piece(items[:1], flags).search
            else:
                return None
        return None

    def states(self, text):
        """Return marks of the choices that failed, for the matches of one text."""
        count = len(self._numbers) * (len(text) + 1)
        if count > MAX_STATES:
            raise PatternError(
                self._pattern,
                f"its {len(self._numbers)} repetitions and alternatives are too many for a "
                f"text of {len(text)} characters; their product must be at most {MAX_STATES}",
            )
        return bytearray(count)

    def run(self, text, start, is_full, states=None):
        """Return the match of the whole text, or the first from ``start`` on, or None."""
        states = self.states(text) if states is None else states
        if is_full:
            return self._match(text, start, True, states)
        while start <= len(text):
            if self._first is not None:
                first = self._first(text, start)
                if first is None:
                    return None
                start = first.start()
            match = self._match(text, start, False, states)
            if match is not None:
                # All that was tried after the end of the match has failed.
                width = len(text) + 1
                states[match.span()[1] :: width] = bytes(len(self._numbers))
                return match
            start += 1
        return None

    def _match(self, text, position, is_full, states):
        code, numbers, width = self._code, self._numbers, len(text) + 1
        ahead = [(self._start, position, None)]
        while ahead:
            at, position, saved = ahead.pop()
            while True:
                kind, what, follow = code[at]
                if kind == _PIECE:
                    piece = what(text, position)
                    if piece is None:
                        break
                    position = piece.end()
                elif kind == _CHOICE:
                    state = numbers[at] * width + position
                    if states[state]:
                        break
                    states[state] = 1
                    for other in what:
                        ahead.append((other, position, saved))
                elif kind == _SAVE:
                    saved = (what, position, saved)
                elif is_full and position + 1 < width:
                    break
                else:
                    return _Match(text, _spans(saved))
                at = follow
        return None


def _is_piece(item):
    return str(item[0]) in _ONE


def _spans(saved):
    """Return ``{group: (begin, end)}`` for the last matches of the groups."""
    ends = {}
    while saved is not None:
        what, position, saved = saved
        ends.setdefault(what, position)
    return {
        group: (ends[group, 0], position)
        for (group, is_end), position in ends.items()
        if is_end
    }
