"""The reason why functions cannot be compiled for a GPU in this process, if there is one."""

import functools

PROBE = 'extern "C" __global__ void probe(int* x) { x[0] = 1; }'


@functools.cache
def why_unavailable(xp):
    """Return None if CUDA graphs can be built with a module, else the reason why not.

    ``xp`` is CuPy, or a module like it.
    """
    if not hasattr(xp, "RawModule") or not hasattr(xp, "cuda"):
        return f"{xp.__name__} cannot compile functions"
    try:
        xp.RawModule(code=PROBE, backend="nvrtc").get_function("probe")
    except Exception as error:  # NVRTC is missing, or too old for the GPU
        return f"NVRTC cannot compile: {error}"
    from .products import cublaslt  # with ctypes

    try:
        cublaslt.library()
    except (ImportError, OSError, RuntimeError) as error:
        return f"cublasLt cannot be loaded: {error}"
    return None
