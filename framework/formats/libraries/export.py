"""`export_library`: a traced function as a library in machine code, with a C header."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tapewright.compiler.function.concrete_function import ConcreteFunction
from tapewright.compiler.function.function import function as traced
from tapewright.compiler.function.outputs import output_names
from tapewright.compiler.pipeline import stages
from tapewright.compiler.targets.native.availability import availability
from tapewright.core.errors import SavingError
from tapewright.core.hardware.devices import use_module
from tapewright.storage.atomic import writing_whole

from .header import header_text, identifier_of, unique


def export_library(
    function: Any,
    signature: Sequence[Any],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    weights: Literal["beside", "inside"] = "inside",
    target: Literal["aarch64", "x86-64-v3"] | None = None,
) -> None:
    """Write a traced function as a library in machine code, with a header for C.

    The library needs the C library and its mathematics, and nothing else: no Python, no
    NumPy, no BLAS. Next to ``model.so`` the header ``model.h`` declares::

        int model_init(const char *weights_path);
        int model_run(const float *x, float *y, int threads);
        void model_free(void);

    `model_run` has a pointer for each tensor of the arguments and of the result; the
    header lists sizes and error codes. All memory is allocated by `model_init`.
    Variables that the function assigns, such as those of a training step, are kept in
    the library; ``model_get`` and ``model_set`` copy them.

    Args:
        function: A `tw.function`, or a Python function to trace.
        signature: A `TensorSpec` of known sizes for each argument, or a nest of them.
        path: Path of the library. With the ending ``.o`` it is an object file, which
            needs no linker; all others are shared libraries, which the C compiler of
            this machine (``cc``) links.
        name: Prefix of the C names; by default the name of the file.
        weights: ``"inside"`` keeps the values of variables in the library, ``"beside"``
            in a file with the ending ``.weights``, whose path ``model_init`` takes.
        target: CPU that runs the library, by default one like this machine's.
            ``"x86-64-v3"``: any with AVX2; ``"aarch64"``: any 64-bit ARM.

    Raises:
        NotImplementedError: If parts of the function have no machine code; the message
            lists all of them, with the lines of the program that called them.
        ValueError: If an argument is not one of the above, or a size is unknown.
        SavingError: If a file cannot be written, or there is no linker.
        ImportError: If llvmlite is not installed.

    Example:
        >>> f = tw.function(lambda x: tw.nn.softmax(x))
        >>> tw.export_library(f, [tw.TensorSpec([1, 10])], "softmax.o")  # doctest: +SKIP
    """
    if weights not in ("inside", "beside"):
        raise ValueError(
            f"export_library: weights must be 'inside' or 'beside', got {weights!r}"
        )
    reason = availability()
    if reason is not None:
        raise ImportError(f"export_library needs machine code: {reason}")
    from tapewright.compiler.targets.native.jit.engine import (
        compiling_for,
        joined_object_code,
    )
    from tapewright.compiler.targets.native.standalone import STANDALONE, standalone

    from .driver import Driver

    path, host = Path(path), _host(target)
    name = _checked_name(path, name)
    with use_module(np):
        concrete = _concrete(function, signature)
        code = standalone(stages(concrete.graph, STANDALONE), host)
        driver = Driver(code, name, weights == "inside")
        modules, exported = driver.modules()
        with compiling_for(host):
            code, missing = joined_object_code(modules, exported)
    _check_symbols(missing)
    names = _names(concrete, driver)
    title = path.with_suffix(".h").name
    header = header_text(driver, title, target or host.cpu, *names)
    _write(path.with_suffix(".h"), header.encode())
    if weights == "beside":
        _write(path.with_suffix(".weights"), driver.head + driver.image)
    code = driver.with_data(code)
    if path.suffix == ".o":
        _write(path, code)
    else:
        _link(code, path, host)


def _host(target):
    from tapewright.compiler.targets.native.jit.engine import this_cpu
    from tapewright.compiler.targets.native.jit.host import TARGETS

    if target is None:
        return this_cpu()
    if target not in TARGETS:
        known = ", ".join([repr(each) for each in TARGETS])
        raise ValueError(
            f"export_library: target must be None or one of {known}, got {target!r}"
        )
    return TARGETS[target]


def _checked_name(path, name):
    if name is None:
        return identifier_of(path.stem)
    if not re.fullmatch(r"[A-Za-z][0-9A-Za-z_]*", name):
        raise ValueError(
            f"export_library: name must be an identifier of C, got {name!r}"
        )
    return name


def _concrete(function, signature):
    """Return the trace; raise a ValueError if a size is not known."""
    if isinstance(function, ConcreteFunction):
        concrete = function
    else:
        if not hasattr(function, "get_concrete_function"):
            function = traced(function)
        concrete = function.get_concrete_function(*signature)
    for value in concrete.graph.inputs:
        if not all([type(n) is int for n in value.shape]):
            raise ValueError(
                f"export_library: all sizes must be known, but '{value.name}' of "
                f"'{concrete.name}' has the shape {list(value.shape)}"
            )
    return concrete


def _names(concrete, driver):
    """Return the names of inputs and of outputs."""
    inputs = [identifier_of(value.name) for value in concrete.graph.inputs]
    stem, count = "result" if "y" in inputs else "y", len(driver.program.outputs)
    outputs = output_names(concrete.structure, count, stem)
    names = unique([*inputs, *[identifier_of(each) for each in outputs]])
    return names[: len(inputs)], names[len(inputs) :]


def _check_symbols(missing):
    from .driver import C_LIBRARY

    unknown = sorted(set(missing) - C_LIBRARY)
    if unknown:
        raise RuntimeError(
            f"export_library: the code calls {', '.join(unknown)}, which the C library "
            "does not define"
        )


def _write(path, content):
    with writing_whole(path) as temporary:
        Path(temporary).write_bytes(content)


def _link(code, path, host):
    """Link an object file to a shared library."""
    from tapewright.compiler.targets.native.jit.engine import this_cpu

    is_own = host.architecture == this_cpu().architecture
    names = (
        ("cc", "gcc", "clang") if is_own else (f"{host.architecture}-linux-gnu-gcc",)
    )
    linker = next(filter(None, map(shutil.which, names)), None)
    if linker is None:
        raise SavingError(
            path,
            f"a shared library needs a C compiler to link it, and {' or '.join(names)} "
            f"is not installed; write '{path.with_suffix('.o').name}' instead, and link "
            "it where there is one",
        )
    with tempfile.TemporaryDirectory() as folder, writing_whole(path) as temporary:
        object_file = Path(folder, "library.o")
        object_file.write_bytes(code)
        command = [linker, "-shared", "-o", temporary, str(object_file), "-lm"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            raise SavingError(path, f"{linker} failed: {result.stderr}")
