"""`core.patterns`: expected matches are those of ``re`` and of the definition."""

import random
import re

import pytest

from tapewright.core.patterns import Pattern, PatternError, pattern_of

ATOMS = "a b [ab] . a? b* \\b ^ $ [^a]+? a{2} b{1,2} (?i:A)".split()
REPEATS = "* + ? *? +? {2} {1,2} {0,2}? {2,}".split()
EMPTY = "a", "b ", " b", "\n", ""  # texts in which a pattern may match no character


def random_pattern(choose, depth):
    """A pattern in which no repeated part matches the empty text."""
    if depth == 0:
        return choose.choice(ATOMS)
    inner = random_pattern(choose, depth - 1)
    kind = choose.choice(["two", "two", "or", "repeat", "repeat", "group"])
    if kind == "two":
        return inner + random_pattern(choose, depth - 1)
    if kind == "or":
        return f"({inner}|{random_pattern(choose, depth - 1)})"
    if kind == "group":
        return f"({inner})"
    matches = re.compile(f"(?:{inner})").fullmatch
    if any([matches(t, i, i) for t in EMPTY for i in range(len(t) + 1)]):
        return inner
    return f"(?:{inner}){choose.choice(REPEATS)}"


def spans(match, groups):
    return None if match is None else [match.span(n) for n in range(groups + 1)]


def as_program(pattern):
    """A pattern that no text is short enough for ``re`` for."""
    made = Pattern(pattern)
    vars(made).update(_longest_search=-1, _longest_fullmatch=-1)
    return made


def test_programs_find_the_matches_and_groups_of_re():
    choose = random.Random(0)
    for _ in range(1500):
        pattern = random_pattern(choose, choose.randint(1, 3))
        expected, program = re.compile(pattern), as_program(pattern)
        text = "".join(choose.choices("abab \n", k=choose.randint(0, 9)))
        for name in ("search", "fullmatch"):
            ours, theirs = getattr(program, name)(text), getattr(expected, name)(text)
            assert spans(ours, program.groups) == spans(theirs, program.groups), (
                pattern, text, name,
            )  # fmt: skip
        both = [
            [m.span() for m in p.finditer(text)] for p in (program, Pattern(pattern))
        ]
        assert both[0] == both[1], (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "span"),
    [
        ("(a+)+$", "a" * 30_000 + "!", None),
        ("(a|aa)+$", "a" * 30_000 + "!", None),
        ("(.+.+)+!", "a" * 30_000, None),
        (r"(?:\w+\s*)*!", "a " * 15_000, None),
        ("a*a*a*a*a*b", "a" * 20_000, None),
        (r"\s+$", " " * 20_000 + "x", None),
        ("x(a|a|b?)*y", "x" + "ab" * 15_000 + "y", (0, 30_002)),
        ("(?:a?){100}a{100}", "a" * 100, (0, 100)),
    ],
)
def test_matching_takes_linear_time(pattern, text, span):
    match = Pattern(pattern).search(text)
    assert (None if match is None else match.span()) == span


def test_finding_all_matches_takes_linear_time():
    # Each match looks for a b to the end of the text, in vain.
    matches = [m.span() for m in Pattern("a(?:.*b)?").finditer("a" * 5000)]
    assert matches == [(n, n + 1) for n in range(5000)]


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("^(?!.*norm).*kernel$", "block/dense/kernel", True),
        ("^(?!.*norm).*kernel$", "block/norm/kernel", False),
        (r"(?<=block_)\d+", "block_12/kernel", True),
        (r"(\w)\1", "dense_aa", True),
        (r"(\w)\1", "dens", False),
        ("(?i)DENSE", "my_dense", True),
    ],
)
def test_patterns_for_paths_may_look_around_and_back(pattern, path, matches):
    assert (pattern_of(pattern).search(path) is not None) == matches


@pytest.mark.parametrize("pattern", [r"(?:(\w+)\1)*x", "(?:(?=.*a)a|b)*c"])
def test_looking_around_is_refused_where_it_could_take_long(pattern):
    with pytest.raises(PatternError, match="lookaround, back references"):
        Pattern(pattern).search("ab" * 500)


@pytest.mark.parametrize(
    "pattern", ["(", "a{2,1}", "*", "((a{1000}){1000}){1000}", "a{99999}", "(" * 5000,
                r"(?:(?:\b{1000}){1000}){1000}", "a" * 20_000],
)  # fmt: skip
def test_patterns_that_are_wrong_or_too_long_are_refused(pattern):
    with pytest.raises(ValueError, match="the regular expression"):
        Pattern(pattern)


def test_a_text_with_too_many_states_is_refused():
    with pytest.raises(PatternError, match="too many for a text of 1000000 characters"):
        Pattern("(a?){500}b").search("a" * 1_000_000)


@pytest.mark.parametrize("value", [5, None, ["a"], b"a"])
def test_a_pattern_must_be_a_string(value):
    with pytest.raises(TypeError, match="must be a string"):
        pattern_of(value)
