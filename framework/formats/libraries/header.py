"""The C header of a library: names, sizes and error codes as macros and comments."""

import re

from .driver import CODES, FAILED

# dtype -> the type of C with the same bytes
_TYPES = {
    "float32": "float",
    "float64": "double",
    "bool": "uint8_t",
    **{f"int{n}": f"int{n}_t" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"uint{n}_t" for n in (8, 16, 32, 64)},
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
}
_RESERVED = """
    auto break case char const continue default do double else enum extern float for goto
    if inline int long register restrict return short signed sizeof static struct switch
    typedef union unsigned void volatile while bool true false class new delete this try
    catch throw template typename namespace using public private protected virtual friend
    operator export and or not xor threads index
""".split()

_TEXT = """\
/* {title}: the function {function} as machine code for {cpu}, by tapewright.
 *
 * Call {name}_init once, {name}_run as often as needed, {name}_free at the end, from one
 * thread at a time. Arrays are in C order; those of one call must not overlap. Link with -lm.
 */
#ifndef {upper}_H
#define {upper}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Entries of each array. */
{sizes}

/* Results of the functions. */
enum {{
{codes}
}};

/* Allocate all memory: {memory} bytes. {init} */
int {name}_init(const char *weights_path);

/* Compute the outputs. threads: 1, as other numbers are not supported yet. */
int {name}_run({parameters});

/* Free all memory. */
void {name}_free(void);
{access}
#ifdef __cplusplus
}}
#endif

#endif
"""

_ACCESS = """
/* Variables that {name}_run changes, by their index. */
{listed}

/* Copy the values of a variable to an array, or from it. */
int {name}_get(int index, void *to);
int {name}_set(int index, const void *from);
"""


def header_text(driver, title, cpu, inputs, outputs):
    """Return the text of the header.

    Args:
        driver: The `Driver` of the library.
        title: Name of the header.
        cpu: Name of the CPU.
        inputs: Names of the inputs.
        outputs: Names of the outputs.
    """
    name, program = driver.name, driver.program
    arrays = [
        *[(n, a, "const ") for n, a in zip(inputs, driver.inputs)],
        *[(n, a, "") for n, a in zip(outputs, program.outputs)],
    ]
    codes = [(key, n, text) for n, (key, text) in enumerate(CODES.items())]
    codes += [
        (f"FAILED_{n}", FAILED + n, _failure(each))
        for n, each in enumerate(driver.code.fallible)
    ]
    upper = name.upper()
    return _TEXT.format(
        title=title,
        function=_comment(repr(program.graph.name)),
        cpu=cpu,
        name=name,
        upper=upper,
        sizes="\n".join(
            [
                f"#define {upper}_{n.upper()}_SIZE {a.size} /* {_declared(n, a)} */"
                for n, a, _ in arrays
            ]
        ),
        codes=",\n".join(
            [
                f"  /* {_comment(text)} */\n  {upper}_{key} = {n}"
                for key, n, text in codes
            ]
        ),
        memory=driver.memory_size + (0 if driver.is_inside else len(driver.image)),
        init="The weights are inside: pass NULL."
        if driver.is_inside
        else "Load the weights from a file.",
        parameters=", ".join(
            [*[f"{c}{_type(a)} *{n}" for n, a, c in arrays], "int threads"]
        ),
        access=_access(driver),
    )


def _access(driver):
    if not driver.state:
        return ""
    names = unique([identifier_of(v.path) for v in driver.state])
    listed = [
        f"#define {driver.name.upper()}_VARIABLE_{name.upper()} {n} "
        f"/* {_declared(name, v._array)} */"
        for n, (name, v) in enumerate(zip(names, driver.state))
    ]
    return _ACCESS.format(name=driver.name, listed="\n".join(listed))


def _failure(instruction):
    node = instruction.node
    return f"{instruction.name} rejected its values: {node.name}, {node.line}"


def _type(array):
    if array.dtype.name not in _TYPES:
        raise NotImplementedError(
            f"export_library: C has no type for arrays of {array.dtype.name}"
        )
    return _TYPES[array.dtype.name]


def _declared(name, array):
    sizes = "".join([f"[{n}]" for n in array.shape])
    bits = f" (bits of {array.dtype.name})" if "float16" in array.dtype.name else ""
    return f"{_type(array)} {name}{sizes}{bits}"


def _comment(text):
    """Escape text so that it cannot end a C comment."""
    return " ".join(text.replace("*/", "* /").replace("/*", "/ *").split())


def identifier_of(text):
    """Convert a name to a C identifier."""
    name = re.sub(r"[^0-9A-Za-z_]+", "_", text).strip("_") or "value"
    return f"{name}_" if name in _RESERVED else f"_{name}"[not name[0].isdigit() :]


def unique(names):
    """Make names unique, ignoring case, by appending numbers."""
    taken, results = set(), []
    for name in names:
        number, own = 1, name
        while own.upper() in taken:
            number += 1
            own = f"{name}_{number}"
        taken.add(own.upper())
        results.append(own)
    return results
