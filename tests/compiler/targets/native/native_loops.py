"""Loops over arrays around functions of numbers, as machine code; errors in ulp."""

import ctypes
import dataclasses
import functools
import platform
from unittest import mock

import numpy as np

from tapewright.compiler.targets.native.jit import engine
from tapewright.compiler.targets.native.llvm_writer import POINTER, Writer
from tapewright.compiler.targets.native.math_functions import scalar_function

# this one, one with AVX2 and FMA, one with AVX and without FMA; any Arm has FMA
CPUS = (None, "haswell", "sandybridge")
if platform.machine().lower() in ("aarch64", "arm64"):
    CPUS = (None, "generic", "cortex-a53")


class Loops:
    """Machine code for ``(name, input dtypes, output dtype)``, each a loop over arrays."""

    def __init__(self, signatures, cpu=None):
        self.signatures = [
            (n, tuple(map(np.dtype, i)), np.dtype(o)) for n, i, o in signatures
        ]
        self._text = module_of(self.signatures)
        self._host = engine.host()
        if cpu is not None:
            self._host = dataclasses.replace(self._host, cpu=cpu, features=())
        with mock.patch.object(engine, "host", lambda: self._host):
            self._address = engine.compiled(self._text).address

    @functools.cached_property
    def _optimized(self):
        """The module after all passes, and the machine that it is for."""
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple().create_target_machine(
            cpu=self._host.cpu,
            features=",".join(self._host.features),
            opt=3,
        )
        module = llvm.parse_assembly(self._text)
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        builder = llvm.create_pass_builder(target, options)
        builder.getModulePassManager().run(module, builder)
        return module, target

    @functools.cached_property
    def _assembly(self):
        module, target = self._optimized
        return target.emit_assembly(module)

    def assembly_of(self, *signature):
        start = self._assembly.index(f"loop{self._number(signature)}:")
        return self._assembly[start : self._assembly.index(".size", start)]

    def __call__(self, name, *arrays, output=None, out=None):
        output = arrays[0].dtype if output is None else np.dtype(output)
        number = self._number((name, [a.dtype for a in arrays], output))
        out = np.empty(arrays[0].shape, output) if out is None else out
        arrays = [np.ascontiguousarray(a) for a in arrays]
        pointers = [a.ctypes.data for a in (out, *arrays)]
        kind = ctypes.CFUNCTYPE(
            None, *[ctypes.c_void_p] * len(pointers), ctypes.c_int64
        )
        kind(self._address(f"loop{number}"))(*pointers, out.size)
        return out

    def _number(self, signature):
        name, inputs, output = signature
        inputs, output = tuple(map(np.dtype, inputs)), np.dtype(output)
        return self.signatures.index((name, inputs, output))


def module_of(signatures):
    """The text of a module with a function ``loop0``, ``loop1``, ... each."""
    writer = Writer()
    for number, (name, inputs, output) in enumerate(signatures):
        parameters = [(f"x{i}", POINTER, "noalias") for i in range(len(inputs) + 1)]
        parameters.append(("n", np.int64))
        with writer.function(f"loop{number}", parameters) as (*pointers, n):
            with writer.loop(0, n) as i:
                args = [
                    writer.load(writer.at(p, i, d), d)
                    for p, d in zip(pointers[1:], inputs)
                ]
                value = scalar_function(writer, name, args, output)
                assert value.dtype == output, (name, inputs, output, value.dtype)
                writer.store(value, writer.at(pointers[0], i, output))
            writer.ret()
    return writer.text()


def ulps(result, exact):
    """Errors in units of the last place of the exact results, which are wider floats.

    Infinite where one is NaN or infinite and the other is not, or zeros differ in sign.
    """
    info, rounded = np.finfo(result.dtype), exact.astype(result.dtype)
    error = np.abs(result - exact)
    if exact.dtype == np.float64:  # by its bits, as a scan spends its time here
        exponent = exact.view(np.uint64) & np.uint64(0x7FF << 52)
        exponent = np.maximum(exponent, np.uint64((1023 + info.minexp) << 52))
        error *= (np.uint64((2 * 1023 + info.nmant) << 52) - exponent).view(float)
    else:
        _, exponent = np.frexp(exact)
        exponent = np.maximum(exponent, info.minexp + 1) - info.nmant - 1
        error = np.ldexp(error, -exponent).astype(float)
    finite = np.isfinite(rounded) & np.isfinite(result)
    if not finite.all():
        same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
        error[~finite] = np.where(same[~finite], 0, np.inf)
    if not rounded.all():
        error[(rounded == 0) & (np.signbit(result) != np.signbit(rounded))] = np.inf
    return error
