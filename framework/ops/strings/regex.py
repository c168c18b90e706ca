"""Regular expressions in RE2 syntax, translated to Python's for `core.patterns`.

The translation accepts the same sets of characters (``\\s`` without the vertical tab,
``\\w`` and ``(?i)`` for ASCII, ``$`` only at the very end, bytes that are not UTF-8
matched by no class), and rejects what RE2 rejects. Matches agree with RE2, which
prefers the leftmost one as Perl does, and also take linear time.
"""

from __future__ import annotations

import functools
import re

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.patterns import Pattern, PatternError
from tapewright.core.text import to_bytes, to_text
from tapewright.core.typing import TensorLike

from .entries import map_numbers, map_text, string_op

__all__ = ["regex_full_match", "regex_replace"]

NO_UTF8 = r"\udc80-\udcff"  # as `to_text` gives bytes that are no UTF-8
DIGIT, SPACE, WORD = "0-9", r"\t\n\f\r ", "0-9A-Za-z_"
# Sets of characters, and their complements without `NO_UTF8`.
SETS = {
    "d": DIGIT,
    "s": SPACE,
    "w": WORD,
    "D": r"\x00-/:-\udc7f\udd00-\U0010ffff",
    "S": r"\x00-\x08\x0b\x0e-\x1f!-\udc7f\udd00-\U0010ffff",
    "W": r"\x00-/:-@\[-\^`{-\udc7f\udd00-\U0010ffff",
}
POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": DIGIT,
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": WORD,
    "xdigit": "0-9A-Fa-f",
}
CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
ASSERTIONS = {"A": r"\A", "z": r"\Z", "b": r"\b", "B": r"\B"}
COUNT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
FLAGS = re.compile(r"\(\?([ims]+)\)")
NAME = re.compile(r"\(\?P<([A-Za-z_]\w*)>", re.ASCII)
MAX_COUNT = 1000  # of repetitions, in RE2


@string_op(
    name="regex_full_match",
    type_name="RegexFullMatch",
    result_dtype=dtypes.bool,
    may_raise=True,
)
def regex_full_match(xp, input: TensorLike, pattern: str):
    """Test whether each string matches ``pattern`` as a whole.

    Args:
        input: Strings, of any shape.
        pattern: Regular expression in RE2 syntax.

    Raises:
        InvalidArgumentError: If the pattern is invalid, or has ``\\p``, ``\\C``,
            ``\\Q`` or flags inside, which are not supported.

    Example:
        >>> tw.strings.regex_full_match(["abc", "abcd"], "a.c").numpy()
        array([ True, False])
    """
    match = compiled(pattern).fullmatch
    return map_numbers(lambda text: match(to_text(text)) is not None, input, np.bool_)


@string_op(name="regex_replace", type_name="RegexReplace", may_raise=True)
def regex_replace(
    xp, input: TensorLike, pattern: str, rewrite: str, replace_global: bool = True
):
    """Replace the matches of ``pattern`` in each string with ``rewrite``.

    Args:
        input: Strings, of any shape.
        pattern: Regular expression in RE2 syntax; see `regex_full_match`.
        rewrite: Replacement, in which ``\\1`` to ``\\9`` are the groups, ``\\0`` the
            match, and ``\\\\`` a backslash.
        replace_global: If False, replace the first match only.

    Example:
        >>> tw.strings.regex_replace("a1b22", "([0-9]+)", r"<\\1>").numpy()
        b'a<1>b<22>'
    """
    matcher = compiled(pattern)
    parts = _rewrite_parts(rewrite, matcher.groups)

    def replaced(text):
        text = to_text(text)
        return to_bytes(_replaced(matcher.finditer(text), parts, text, replace_global))

    return map_text(replaced, input)


def _replaced(matches, parts, text, replace_global):
    """Return ``text`` with its matches replaced."""
    out, at = [], 0
    for match in matches:
        begin, end = match.span()
        out.append(text[at:begin])
        out += [part if type(part) is str else match[part] or "" for part in parts]
        at = end
        if not replace_global:
            break
    return "".join(out) + text[at:]


def _rewrite_parts(rewrite, groups):
    """Split ``rewrite`` into texts and group numbers.

    Raises:
        ValueError: If it has another escape.
    """
    parts = []
    for piece in re.findall(r"\\.?|[^\\]+", rewrite, re.DOTALL):
        if piece[0] != "\\":
            parts.append(piece)
        elif piece == r"\\":
            parts.append("\\")
        elif piece[1:] in set("0123456789") and int(piece[1:]) <= groups:
            parts.append(int(piece[1:]))
        else:
            raise InvalidArgumentError(
                f"regex_replace: rewrite {rewrite!r} has {piece!r}; a backslash must "
                f"be followed by a backslash, or by a group number from 0 to {groups}"
            )
    return parts


@functools.lru_cache(maxsize=256)
def compiled(pattern: str) -> Pattern:
    """Translate the pattern to Python's syntax, for `to_text` of strings.

    Raises:
        InvalidArgumentError: If RE2 or this translation rejects it.
    """
    return Pattern(*_Translation(pattern).result(), pattern)


def _refuse(pattern, reason):
    raise PatternError(pattern, reason)


class _Translation:
    """Translator of RE2 syntax to the syntax of ``re``, from left to right."""

    def __init__(self, pattern):
        self.pattern, self.at, self.out = pattern, 0, []
        self.flags = re.ASCII
        if match := FLAGS.match(pattern):
            self.at = match.end()
            for flag in match[1]:
                self.flags |= getattr(re, flag.upper())
            if "i" in match[1] and not pattern.isascii():
                _refuse(pattern, "(?i) is supported for ASCII alone")

    def result(self):
        """Return the pattern and the flags for ``re.compile``."""
        pattern, repeatable = self.pattern, False
        while self.at < len(pattern):
            character = pattern[self.at]
            if character in "*+?" or COUNT.match(pattern, self.at):
                if not repeatable:
                    _refuse(pattern, f"nothing to repeat before position {self.at}")
                self._repetition()
                repeatable = False
                continue
            repeatable = character not in "(|^"
            self._item(character)
        return "".join(self.out), self.flags

    def _item(self, character):
        if character == "\\":
            self._escape()
        elif character == "[":
            self._set()
        elif character == "(":
            self._group()
        else:
            self.at += 1
            if character == ".":
                every = "" if self.flags & re.DOTALL else r"\n"
                character = f"[^{every}{NO_UTF8}]"
            elif character == "$":
                character = "$" if self.flags & re.MULTILINE else r"\Z"
            elif character not in ")|^":
                character = re.escape(character)
            self.out.append(character)

    def _repetition(self):
        match = COUNT.match(self.pattern, self.at)
        text = match[0] if match else self.pattern[self.at]
        if match and max(int(n) for n in match.groups() if n) > MAX_COUNT:
            _refuse(self.pattern, f"more than {MAX_COUNT} repetitions")
        self.at += len(text)
        if self.pattern[self.at : self.at + 1] == "?":
            self.at, text = self.at + 1, text + "?"
        self.out.append(text)

    def _group(self):
        pattern, start = self.pattern, self.at
        if pattern.startswith("(?:", start):
            text = "(?:"
        elif match := NAME.match(pattern, start):
            self.at += len(match[0])
            self.out.append(f"(?P<{match[1]}>")
            return
        elif pattern.startswith("(?", start):
            _refuse(pattern, f"{pattern[start : start + 4]!r} is not supported")
        else:
            text = "("
        self.at += len(text)
        self.out.append(text)

    def _escape(self):
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter in ASSERTIONS and letter:
            self.out.append(ASSERTIONS[letter])
            self.at += 2
        elif letter in SETS and letter:
            self.out.append(f"[{SETS[letter]}]")
            self.at += 2
        else:
            self.out.append(re.escape(self._character()))

    def _character(self):
        """Return the next character, which may be escaped."""
        pattern, at = self.pattern, self.at
        self.at += 1
        if pattern[at] != "\\":
            return pattern[at]
        letter = pattern[at + 1 : at + 2]
        self.at += 1
        if letter in CONTROLS:
            return CONTROLS[letter]
        if match := re.compile(
            r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})|(0[0-7]{0,2}|[1-7][0-7]{1,2})"
        ).match(pattern, at + 1):
            self.at = match.end()
            code = int(match[3], 8) if match[3] else int(match[1] or match[2], 16)
            if code < 0x110000 and not 0xD800 <= code < 0xE000:
                return chr(code)
        elif letter and ord(letter) < 128 and not letter.isalnum():
            return letter
        _refuse(pattern, f"the escape {pattern[at : at + 4]!r} is not supported")

    def _set(self):
        pattern = self.pattern
        self.at += 1
        negated = pattern.startswith("^", self.at)
        self.at += negated
        parts, first = [], True
        while first or not pattern.startswith("]", self.at):
            if self.at >= len(pattern):
                _refuse(pattern, "a ']' is missing")
            first = False
            parts.append(self._part_of_set())
        self.at += 1
        start = f"[^{NO_UTF8}" if negated else "["
        self.out.append(f"{start}{''.join(parts)}]")

    def _part_of_set(self):
        pattern = self.pattern
        if pattern.startswith("[:", self.at):
            match = re.compile(r"\[:(\w+):\]").match(pattern, self.at)
            if match is None or match[1] not in POSIX:
                _refuse(pattern, f"there is no set {pattern[self.at :][:12]!r}")
            self.at = match.end()
            return POSIX[match[1]]
        letter = pattern[self.at + 1 : self.at + 2]
        if pattern[self.at] == "\\" and letter and letter in SETS:
            self.at += 2
            return SETS[letter]
        low = high = self._character()
        rest = pattern[self.at : self.at + 2]
        if rest[:1] == "-" and rest[1:] not in ("", "]"):
            self.at += 1
            high = self._character()
            if high < low:
                _refuse(pattern, f"the range {low}-{high} is empty")
        return re.escape(low) if low == high else f"{re.escape(low)}-{re.escape(high)}"
