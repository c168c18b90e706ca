"""Compile CUDA C for GPUs by NVRTC, which needs no GPU."""

import functools

__all__ = ["ARCHITECTURES", "compile_for", "missing"]

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
OPTIMIZED = "sm_90"


@functools.cache
def missing():
    """Why NVRTC cannot be used, or an empty string."""
    try:
        from cuda import pathfinder

        pathfinder.load_nvidia_dynamic_lib("nvrtc")
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
    except (ImportError, RuntimeError, OSError) as error:
        return f"NVRTC is not installed ({error})"
    return ""


def compile_for(source, arch, options=()):
    """The machine code of a source for an architecture, such as "sm_90".

    All passes run for `OPTIMIZED` alone: they take most of the time, and it does not depend
    on them what the compiler refuses.
    Raises: ``ValueError`` with what the compiler says.
    """
    if missing():
        raise RuntimeError(missing())
    from cupy_backends.cuda.libs import nvrtc

    if arch != OPTIMIZED and nvrtc.getVersion() >= (12, 9):
        options = (*options, "--Ofast-compile=max")
    program = nvrtc.createProgram(source, "kernels.cu", (), ())
    try:
        nvrtc.compileProgram(program, (f"--gpu-architecture={arch}", *options))
        return nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError:
        log = nvrtc.getProgramLog(program)
        raise ValueError(f"NVRTC refuses the source for {arch}:\n{log}") from None
    finally:
        nvrtc.destroyProgram(program)
