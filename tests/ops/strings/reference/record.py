"""Writes ``strings.json``: what TensorFlow's string ops give, and where they raise.

Needs TensorFlow, which tapewright does not:

    python tests/ops/strings/reference/record.py

A case is a call, written down as Python: ``s`` is the namespace of the ops. Its result
is nested lists; bytes are text with one character for each.
"""

import json
import pathlib
import random

ODD = ["", "aB", "Äß é", "\t x \v\n", b"\xff\x80a", "İΣ ς", "日本語", "a\0b"]
NUMBERS = ["1", " -2.5e3 ", "+7.", ".5", "inf", "-NaN", "1e-50", "16777217"]
WIDE = [bytes(random.Random(n).choices(range(256), k=n)) for n in range(70)]
WIDE += [bytes(random.Random(n).choices(range(256), k=n)) for n in (127, 128, 129, 300)]
REPLACED = [
    ("b*", "-"),
    ("", "-"),
    ("(?:|c)", "."),
    ("[^a]", "_"),
    (".", "_"),
    ("(a)|b", r"<\1\0\\>"),
    (r"\s+", " "),
    (r"[\W]", "."),
    (r"(?i)[a-b]+", "x"),
    (r"[[:punct:]]", ""),
    (r'[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']', ""),
    ("b$", "!"),
    ("(?m)^", "> "),
    (r"\x61|\x{e9}|\142", "E"),
    (r"(?P<w>\w+?)c{0,2}\b", r"(\1)"),
    ("[^é-ü]", "n"),
    ("{", "["),
    ("a{,2}", "q"),
    (r"(?s)a.", "2"),
    ("[]a]", "s"),
    ("<br />", " "),
]
TEXTS = [
    "abc",
    "",
    "bb cc\n",
    "AB_é-{x}\vab\n",
    "a{,2}]b",
    b"\xff\xe9b",
    "hi<br />(it's)!",
]
INVALID = ["(", "a**", "(?=a)", r"\1", "a++", "[b-a]", "a{1001}", r"\Z", "[[:no:]]"]

CASES = [
    *[f"s.{op}({ODD})" for op in ("lower", "upper", "strip", "length")],
    # TensorFlow drops what follows a NUL with this encoding
    *[f"s.{op}({ODD[:-1]}, encoding='utf-8')" for op in ("lower", "upper")],
    f"s.length({ODD}, unit='UTF8_CHAR')",
    "s.lower('A', encoding='latin-1')",
    "s.substr(['word', 'other'], 1, 2)",
    "s.substr(['word', 'other'], [-1, 5], [9, 1])",
    "s.substr([['ab'], ['cd']], 0, -1)",
    "s.substr('ab', 3, 1)",
    "s.substr('ab', -3, 1)",
    "s.substr(['日本語', 'aé'], 1, 1, unit='UTF8_CHAR')",
    "s.substr(['日本語', 'aé'], -2, 5, unit='UTF8_CHAR')",
    "s.substr('aé', 2, 1, unit='UTF8_CHAR')",
    "s.substr('aé', 3, 1, unit='UTF8_CHAR')",
    "s.join([['a', 'b'], ['c', 'd']], separator='-')",
    "s.join(['x', ['c', 'd']])",
    "s.reduce_join([['a', 'b'], ['c', 'd']])",
    "s.reduce_join([['a', 'b'], ['c', 'd']], axis=[0, 1], separator='+')",
    "s.reduce_join([['a', 'b'], ['c', 'd']], axis=[1, 0], separator='+')",
    "s.reduce_join([['a', 'b'], ['c', 'd']], axis=-1, keepdims=True)",
    "s.reduce_join([['a', 'b'], ['c', 'd']], axis=0)",
    "s.reduce_join('a')",
    *[f"s.regex_replace({TEXTS}, {p!r}, {r!r})" for p, r in REPLACED],
    *[f"s.regex_full_match({TEXTS}, {p!r})" for p, _ in REPLACED],
    f"s.regex_replace({TEXTS}, 'b', 'X', replace_global=False)",
    *[f"s.regex_full_match('a', {p!r})" for p in INVALID],
    "s.split('a b  c ')",
    "s.split('a,b,,c', ',')",
    "s.split('a b  c', maxsplit=1)",
    "s.split([' a b', '', 'c\\vd'])",
    "s.split(['a--b', '', '--'], sep='--', maxsplit=1)",
    "s.bytes_split(['ab', '', 'é'])",
    f"s.unicode_split({ODD}, 'UTF-8')",
    "s.unicode_split('é', 'UTF-8')",
    f"s.unicode_split({ODD}, 'UTF-8', errors='ignore')",
    "s.unicode_split(b'\\xff', 'UTF-8', errors='strict')",
    *[f"s.unicode_decode({text!r}, 'UTF-8')" for text in ODD],
    "s.unicode_decode(b'a\\xe3\\x81b\\xf0\\x80', 'UTF-8', replacement_char=63)",
    "s.unicode_decode('a\\tb', 'UTF-8', replace_control_characters=True)",
    "s.unicode_encode([[104, 233], [55296, 26085]], 'UTF-8')",
    "s.unicode_encode([104, 233], 'UTF-16-BE')",
    "s.unicode_encode([-1, 97], 'UTF-8', errors='ignore')",
    "s.unicode_encode([-1, 97], 'UTF-8', errors='strict')",
    f"s.unicode_transcode({ODD}, 'UTF-8', 'UTF-16-BE')",
    "s.unicode_transcode([b'\\xe9\\xff'], 'ISO-8859-1', 'UTF-8')",
    "s.unicode_transcode(['é\\x07'], 'US-ASCII', 'UTF-8')",
    "s.unicode_transcode(['a\\x07b'], 'UTF-8', 'UTF-8', errors='ignore', "
    "replace_control_characters=True)",
    "s.as_string([1, -20])",
    "s.as_string([1, -20], width=5, fill='0')",
    "s.as_string([True, False])",
    "s.as_string([1.5, -1e10, 1e-7])",
    "s.as_string([1.5, -1e10, 1e-7], precision=2)",
    "s.as_string([1.5, -1e10, 1e-7], scientific=True)",
    "s.as_string([1.5, -1e10, 1e-7], shortest=True, width=8)",
    "s.as_string([1.5, -1e10], width=20, fill='-')",
    "s.as_string([1 + 2j])",
    "s.as_string(['a'])",
    "s.as_string([1], precision=2)",
    f"s.to_number({NUMBERS})",
    f"s.to_number({NUMBERS}, 'float64')",
    "s.to_number(['1', ' -20 ', '+3'], 'int32')",
    "s.to_number('9223372036854775807', 'int64')",
    *[f"s.to_number({x!r})" for x in ("", "a", "1_0", "1 2", "1e39")],
    *[f"s.to_number({x!r}, 'int32')" for x in ("1.5", "2147483648", "")],
    *[f"s.to_hash_bucket_fast({WIDE}, {n})" for n in (7, 2**63 - 1)],
    f"s.to_hash_bucket_strong({WIDE}, {2**63 - 1}, [123, 456])",
    f"s.to_hash_bucket({WIDE}, {2**63 - 1})",
    "s.to_hash_bucket_fast('a', 0)",
    "s.ngrams(['a', 'b', 'c'], 2)",
    "s.ngrams([['a', 'b', 'c'], ['d', 'e', 'f']], (1, 3), separator='+')",
    "s.ngrams(s.split(['a b c', 'd', '']), 2)",
    "s.ngrams(s.split(['a b c', 'd', '']), (2, 3), preserve_short_sequences=True)",
    "s.ngrams(s.split(['a b c', 'd', '']), 3, pad_values=('<', '>'))",
    "s.ngrams(s.split(['a b c', 'd', '']), (2, 4), pad_values='p', padding_width=1)",
    "s.ngrams(s.split(['a', '']), 5, pad_values='p', padding_width=1, "
    "preserve_short_sequences=True)",
    "s.ngrams(['a'], 2)",
    *[f"s.as_string(['é', ''], width=4, fill={fill!r})" for fill in ("", "-", "0")],
    *[
        f"s.as_string([float(x) for x in ('nan', '-inf', '1')], width=8, fill={fill!r})"
        for fill in ("0", "+", "-")
    ],
    "s.as_string([complex('nan+1j')], width=5, fill='0', precision=1)",
    "s.as_string([True], width=9, fill='0')",
    "s.join([])",
    "s.join([[], 'a'])",
    "s.join([[], []])",
    "s.regex_replace('ab', '(?<n>a)', 'x')",
    "s.format('{} of {}', [[1.5, 0.1], 'é'])",
    "s.format('%t{}%t', ([True], s.as_string([1, 2])), placeholder='%t')",
    *[f"s.format('a {{}}', [[*range(8)]], summarize={n})" for n in (None, 1, -1)],
    f"s.format('{{}}', [{ODD[:4] + ODD[5:]!r}], summarize=-1)",
    "s.format('text', [])",
    "s.format('{}', [[[1.0, 2.0], [3.0, 4.0]]])",
    *[f"s.format({x!r}, [1])" for x in ("{}{}", "")],
]


def plain(value):
    """Nested lists of numbers and text."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


if __name__ == "__main__":
    import tensorflow as tf

    found = []
    for case in CASES:
        try:
            value = eval(case, {"s": tf.strings})
        except Exception as error:
            found.append({"error": type(error).__name__})
            continue
        rows = isinstance(value, tf.RaggedTensor)
        value_list = value.to_list() if rows else value.numpy()
        value_list = (
            value_list if rows or isinstance(value_list, bytes) else value_list.tolist()
        )
        found.append({"dtype": value.dtype.name, "value": plain(value_list)})
    path = pathlib.Path(__file__).with_name("strings.json")
    path.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")
