"""Loops over arrays around functions of numbers, compiled by LLVM: for tests, and for
the scan of errors in benchmarks/ulp.py."""

import ctypes

import llvmlite.binding as llvm
import numpy as np

from tapewright.compiler.targets.native.llvm_writer import POINTER, Writer
from tapewright.compiler.targets.native.math_functions import scalar_function

# this one, one with AVX2 and FMA, one with AVX and without FMA
CPUS = (None, "haswell", "sandybridge")


class Loops:
    """Machine code for ``(name, input dtypes, output dtype)``, each a loop over arrays."""

    def __init__(self, signatures, cpu=None):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.signatures = [
            (n, tuple(map(np.dtype, i)), np.dtype(o)) for n, i, o in signatures
        ]
        features = llvm.get_host_cpu_features().flatten() if cpu is None else ""
        target = llvm.Target.from_default_triple().create_target_machine(
            cpu=cpu or llvm.get_host_cpu_name(), features=features, opt=3
        )
        module = llvm.parse_assembly(self._text())
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        builder = llvm.create_pass_builder(target, options)
        builder.getModulePassManager().run(module, builder)
        self.assembly = target.emit_assembly(module)
        self._engine = llvm.create_mcjit_compiler(module, target)
        self._engine.finalize_object()

    def _text(self):
        writer = Writer()
        for number, (name, inputs, output) in enumerate(self.signatures):
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

    def assembly_of(self, *signature):
        start = self.assembly.index(f"loop{self._number(signature)}:")
        return self.assembly[start : self.assembly.index(".size", start)]

    def __call__(self, name, *arrays, output=None, out=None):
        output = arrays[0].dtype if output is None else np.dtype(output)
        number = self._number((name, [a.dtype for a in arrays], output))
        out = np.empty(arrays[0].shape, output) if out is None else out
        arrays = [np.ascontiguousarray(a) for a in arrays]
        kind = ctypes.CFUNCTYPE(
            None, *[ctypes.c_void_p] * (len(arrays) + 1), ctypes.c_int64
        )
        function = kind(self._engine.get_function_address(f"loop{number}"))
        function(out.ctypes.data, *[a.ctypes.data for a in arrays], out.size)
        return out

    def _number(self, signature):
        name, inputs, output = signature
        inputs, output = tuple(map(np.dtype, inputs)), np.dtype(output)
        return self.signatures.index((name, inputs, output))


def ulps(result, exact):
    """Errors in units of the last place of the exact results, which are long doubles.

    Infinite where one is NaN or infinite and the other is not, or zeros differ in sign.
    """
    dtype = result.dtype
    info, rounded = np.finfo(dtype), exact.astype(dtype)
    _, exponent = np.frexp(exact)
    exponent = np.maximum(exponent, info.minexp + 1) - info.nmant - 1
    error = np.abs(result.astype(np.longdouble) - exact)
    error = np.ldexp(error, -exponent).astype(float)
    finite = np.isfinite(rounded) & np.isfinite(result)
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    zero = (rounded == 0) & (np.signbit(result) != np.signbit(rounded))
    return np.where(zero, np.inf, np.where(finite, error, np.where(same, 0, np.inf)))
