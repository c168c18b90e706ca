"""Functions in CUDA C, compiled: one module for the launches of a program.

CuPy compiles it with NVRTC for the current GPU, and caches the result in its kernel
cache folder, ``CUPY_CACHE_DIR``.
"""

import functools

from .kernel import Launch, function_source
from .prelude import PRELUDE

OPTIONS = ("--std=c++11",)
WORDS = 128  # that one launch writes


def source_of(steps):
    """The source of all functions that are launched, each once."""
    launches = {step.name: step for step in steps if type(step) is Launch}
    functions = [function_source(each) for each in launches.values()]
    return "\n".join([PRELUDE, *functions])


def compiled(xp, steps):
    """Return the functions of launches by name, for arrays of the module ``xp``."""
    names = {step.name for step in steps if type(step) is Launch}
    if not names:
        return {}
    module = xp.RawModule(code=source_of(steps), options=OPTIONS, backend="nvrtc")
    return {name: module.get_function(name) for name in names}


@functools.cache
def numbers_function(xp, count):
    """Return a function that writes ``count`` words, its arguments, to an address.

    They are passed as launch arguments: no copy from the host has to be awaited.
    """
    words = ", ".join([f"long long n{i}" for i in range(count)])
    writes = "".join([f"  to[{i}] = n{i};\n" for i in range(count)])
    name = f"write_{count}_numbers"
    source = (
        f'extern "C" __global__ void {name}(long long* to, {words})\n{{\n{writes}}}\n'
    )
    module = xp.RawModule(code=source, options=OPTIONS, backend="nvrtc")
    return module.get_function(name)


@functools.cache
def copy_function(xp, count):
    """Return a function that copies ``count`` pieces of memory, a block of threads each.

    Its arguments are, for each, the source, the target, and the number of bytes.
    """
    code = copy_source(count)
    module = xp.RawModule(code=code, options=OPTIONS, backend="nvrtc")
    return module.get_function(f"copy_{count}_pieces")


def copy_source(count):
    """Return the source of `copy_function`."""
    words = ", ".join(
        [f"long long from{i}, long long to{i}, long long size{i}" for i in range(count)]
    )
    cases = "".join(
        [
            f"      case {i}: from = from{i}; to = to{i}; size = size{i}; break;\n"
            for i in range(count)
        ]
    )
    return f"""extern "C" __global__ void copy_{count}_pieces({words})
{{
  for (unsigned int piece = blockIdx.x; piece < {count}; piece += gridDim.x) {{
    long long from = 0, to = 0, size = 0;
    switch (piece) {{
{cases}    }}
    if (((from | to | size) & 7) == 0)
      for (long long i = threadIdx.x; i < size / 8; i += blockDim.x)
        ((long long*)to)[i] = ((const long long*)from)[i];
    else
      for (long long i = threadIdx.x; i < size; i += blockDim.x)
        ((char*)to)[i] = ((const char*)from)[i];
  }}
}}
"""
