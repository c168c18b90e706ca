"""LLVM: compile the text of a module to machine code for this CPU, and load it.

This is the only file that imports llvmlite, an optional dependency, and only when a
module is first compiled. `availability` returns why nothing can be compiled; `compiled`
compiles.
"""

import collections
import contextlib
import contextvars
import functools
import hashlib
import os
import re
import threading
import weakref

from tapewright import __version__
from tapewright.core.hardware.cpu import numpy_features
from tapewright.core.hardware.openblas import ctypes
from tapewright.core.settings import config

from . import object_cache
from .host import describe_host

# LLVM's major version; llvmlite 0.45 is the first with its passes and linker.
MINIMUM = 20

# O3 takes 3 % longer than O2 and gives the same loops; without unrolling a module takes 15 %
# less, but loops over a few entries stay loops.
SPEED_LEVEL = CODEGEN_LEVEL = 2

_lock = threading.RLock()  # over all of LLVM's global state, from module to library
if hasattr(os, "register_at_fork"):  # a fork waits until no module is being compiled
    os.register_at_fork(
        before=_lock.acquire,
        after_in_parent=_lock.release,
        after_in_child=_lock.release,
    )

_dropped = collections.deque()  # of libraries, what is still to be closed


@contextlib.contextmanager
def _exclusive():
    """Hold the lock."""
    with _lock:
        yield
        _close_dropped()


def _drop(*parts):
    """Leave the parts of a library to the next compilation, which closes them in order.

    Code that drops the last reference, or the garbage collector, must not wait for the
    lock; and only ``with`` releases it for certain if an interrupt arrives.
    """
    _dropped.append(parts)


def _close_dropped():
    """Close dropped libraries."""
    with _lock:
        while _dropped:
            for part in _dropped.popleft():  # closing one may drop other libraries
                part.close()


def compiled(
    text, name="module", symbols=None, level=SPEED_LEVEL, kernels=(), exported=()
):
    """Return the `Library` of a module, compiled now or read from the cache on disk.

    Args:
        text: LLVM IR, without triple and data layout.
        name: Name for messages and debuggers.
        symbols: Addresses of the functions that the modules declare, by name, in
            addition to the C library; they are bound at load time and are not part of
            the cached code.
        level: Optimization level of LLVM's passes. Text that already keeps its vectors
            and values in registers needs no passes, which take most of the time.
        kernels: Pairs ``(text, level)`` of further modules of the library. Each is
            compiled and cached by itself, so programs that have a kernel in common
            compile it once.
        exported: Names of functions of the kernels that get an address, as do those of
            the module itself.

    Raises:
        RuntimeError: If LLVM rejects a text or a function is not found, or if code is
            compiled for another CPU.
    """
    if _other_host.get() is not None:
        raise RuntimeError(f"module {name!r} would be loaded, but is for another CPU")
    codes = _object_codes([(text, level), *kernels], name, symbols or {})
    return Library(codes, [*_DEFINED.findall(text), *exported], name, symbols)


def _object_codes(modules, name, symbols):
    """Read the object code of modules from the cache, and compile what is missing."""
    cache, prefix = object_cache.current(), maker()
    keys = [
        hashlib.sha256(f"{prefix}\0O{level}\0{text}".encode()).digest()
        for text, level in modules
    ]
    codes = [cache.load(key) for key in keys]
    missing = [n for n, code in enumerate(codes) if code is None]
    if missing:
        _check_calls([text for text, _ in modules], name, symbols)
    for n, code in zip(missing, _compile([(*modules[n], name) for n in missing])):
        cache.store(keys[n], code)
        codes[n] = code
    return codes


def _check_calls(texts, name, symbols):
    """Raise a RuntimeError if modules declare functions that are not found."""
    known = {*symbols, *[each for text in texts for each in _DEFINED.findall(text)]}
    declared = dict.fromkeys([n for text in texts for n in _DECLARED.findall(text)])
    missing = [each for each in declared if not _found(each, known)]
    if missing:
        listed = ", ".join(missing)
        raise RuntimeError(f"module {name!r} calls undefined functions: {listed}")


def _compile(modules):
    """Compile modules on up to `config.threads` threads; return their object code.

    Args:
        modules: Triples of a text, the level of LLVM's passes and a name for messages.

    Raises:
        RuntimeError: If LLVM rejects a text.
    """
    threads = min(config.threads(), len(modules))
    if threads < 2:
        return [object_code(text, name, level) for text, level, name in modules]
    from concurrent.futures import ThreadPoolExecutor

    # The longest first, so that no thread is left alone with one in the end.
    order = sorted(range(len(modules)), key=lambda n: -len(modules[n][0]))
    codes = [None] * len(modules)

    def compile_one(n):
        text, level, name = modules[n]
        codes[n] = _object_code(text, name, level)

    with _exclusive(), ThreadPoolExecutor(threads) as pool:
        _llvm(), host()
        list(pool.map(compile_one, order))  # raises the first error
    return codes


# Functions of a module that others may call.
_DEFINED = re.compile(
    r"^define (?!(?:[^@\n]* )?(?:private|internal) )[^@\n]*@([\w.$-]+)\(", re.MULTILINE
)

_DECLARED = re.compile(r"^declare [^@\n]*@(?!llvm\.)([\w.$-]+)\(", re.MULTILINE)


def _found(name, known):
    if name in known or _llvm().address_of_symbol(name) is not None:
        return True
    # LLVM looks through this process only once something has been loaded into it.
    return os.name == "posix" and hasattr(ctypes.CDLL(None), name)


def object_code(text, name="module", level=SPEED_LEVEL):
    """Compile a module to the bytes of an object file for `host`."""
    with _exclusive():
        return _object_code(text, name, level)


def _object_code(text, name, level):
    """Compile a module; the caller, or the thread that started it, holds the lock.

    Each module has its own LLVM context, so several threads can compile at a time.
    """
    with _llvm().create_context() as context:
        with _optimized(text, name, level, context) as module:
            return _emitted(_passes(host(), level, CODEGEN_LEVEL)[0], module)


def _optimized(text, name, level, context):
    """Parse a text and return the module optimized by LLVM's passes."""
    llvm, (machine, builder) = _llvm(), _passes(host(), level, CODEGEN_LEVEL)
    try:
        module = llvm.parse_assembly(text, context)
    except RuntimeError as error:
        raise _refused(name, error) from None
    try:
        module.name = name
        module.triple = host().triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        module.close()
        raise _refused(name, error) from None
    _run(builder.getModulePassManager(), module, builder)
    return module


def _run(passes, module, builder):
    """Run passes over a module, then free the pass manager."""
    _unlocked("LLVMPY_RunNewModulePassManager")(passes, module, builder)
    # llvmlite 0.50 forgets to: ObjectRef's empty method hides that of the base.
    _llvm().newpassmanagers.NewPassManager._dispose(passes)
    passes.detach()


def joined_object_code(modules, exported):
    """Compile modules for `host` to the bytes of one object file.

    Each module is optimized by itself, so that its functions are the same machine code
    as in a `Library`.

    Args:
        modules: Pairs ``(text, level)``, as for `compiled`.
        exported: Names of the functions that other object files may call. All others
            are left out where nothing calls them.

    Returns:
        The bytes, and the names of the functions that other files must define.

    Raises:
        RuntimeError: If LLVM rejects a text.
    """
    with _exclusive():
        llvm = _llvm()
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        with llvm.create_context() as context, contextlib.ExitStack() as stack:
            whole, *others = [
                stack.enter_context(_optimized(text, "library", level, context))
                for text, level in modules
            ]
            for other in others:
                whole.link_in(other)
            for each in (*whole.functions, *whole.global_variables):
                if not each.is_declaration and each.name not in exported:
                    each.linkage = "internal"
            machine, builder = _passes(host(), 0, CODEGEN_LEVEL)
            unused = llvm.create_new_module_pass_manager()
            unused.add_global_dead_code_eliminate_pass()
            _run(unused, whole, builder)
            missing = [each.name for each in whole.functions if each.is_declaration]
            missing = [name for name in missing if not name.startswith("llvm.")]
            return _emitted(machine, whole), missing


def _emitted(machine, module):
    """Generate code; return the bytes of an object file."""
    library = _llvm().ffi.lib
    with _llvm().ffi.OutputString() as error:
        emit = _unlocked("LLVMPY_TargetMachineEmitToMemory")
        buffer = emit(machine, module, True, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        start = library.LLVMPY_GetBufferStart(buffer)
        return ctypes.string_at(start, library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


def _unlocked(name):
    """Return a C function of llvmlite without llvmlite's lock, which serializes threads."""
    function = getattr(_llvm().ffi.lib, name)
    return getattr(function, "_cfn", function)


def _refused(name, error):
    return RuntimeError(f"LLVM refuses module {name!r}: {error}")


class Library:
    """Machine code in memory, which is freed when the object is dropped.

    A holder of an address must keep the library alive, too.
    """

    # A linker each: one for all would keep 10 KB of each library that it ever held.
    def __init__(self, codes, names, name="module", symbols=None):
        self.name, self._names, self._tracker = name, names, None
        with _exclusive():
            llvm = _llvm()
            builder = llvm.JITLibraryBuilder()
            for code in codes:
                builder.add_object_img(code)
            builder.add_current_process()
            for symbol, address in (symbols or {}).items():
                builder.import_symbol(symbol, address)
            for symbol in names:
                builder.export_symbol(symbol)
            with _target_machine(host(), CODEGEN_LEVEL) as machine:
                linker = llvm.create_lljit_compiler(
                    machine, use_jit_link=True, suppress_errors=True
                )
            try:
                # LLVM knows it by a name of ours: `name` may be empty, or any text.
                self._tracker = builder.link(linker, "library")
            except RuntimeError as error:
                message = f"module {name!r} cannot be loaded: {error}"
                raise RuntimeError(message) from None
        # In a cycle of garbage the parts would be finalized in any order: here they are
        # kept, to be closed in this one.
        weakref.finalize(self, _drop, self._tracker, linker).atexit = False

    def address(self, symbol):
        """Return the address of a function.

        Raises:
            LookupError: If the module defines no function of this name.
        """
        if symbol not in self._names:
            raise LookupError(
                f"module {self.name!r} defines no function {symbol!r}; "
                f"it defines {', '.join(self._names)}"
            )
        return self._tracker[symbol]


# --- this machine


@functools.cache
def availability():
    """Return None if modules can be compiled and run here, else the reason why not."""
    if ctypes is None:
        return "this Python has no ctypes"
    try:
        llvm = _llvm()
    except ModuleNotFoundError:
        return "llvmlite is not installed (pip install llvmlite)"
    except Exception as error:  # whatever it is: NumPy does without
        return f"llvmlite cannot be loaded: {error}"
    version = llvm.llvm_version_info
    if version[0] < MINIMUM:
        return (
            f"LLVM {_dotted(version)} is too old, {MINIMUM} is needed: update llvmlite"
        )
    try:
        return host().why_unavailable or _why_unavailable()
    except Exception as error:
        return f"a test function could not be compiled: {error}"


_other_host = contextvars.ContextVar("other_host", default=None)


def host():
    """Return the `Host` that modules are compiled for: usually this process's CPU.

    Code that writes CPU-specific instructions queries it, too.
    """
    return _other_host.get() or this_cpu()


@contextlib.contextmanager
def compiling_for(other):
    """Write and compile code for another `Host` in this thread; it cannot be loaded."""
    token = _other_host.set(other)
    try:
        yield
    finally:
        _other_host.reset(token)


@functools.cache
def this_cpu():
    """Return the `Host` of this process's CPU."""
    llvm = _llvm()
    features = dict(llvm.get_host_cpu_features())
    cpu, used = llvm.get_host_cpu_name(), numpy_features()
    return describe_host(llvm.get_process_triple(), cpu, features, used)


def vector_registers():
    """Return the bytes of a vector register of this CPU, and the number of registers."""
    return host().vector_registers


def converts_halves():
    """Return whether this CPU has instructions that convert float16 to and from float32."""
    return host().converts_halves


def description():
    """Return a short description of the compiler, its target and the cache folder."""
    version = _dotted(_llvm().llvm_version_info[:2])
    return f"LLVM {version}, {host().cpu}, cache {object_cache.current().note}"


def _dotted(version):
    return ".".join([str(part) for part in version])


@functools.cache
def _llvm():
    """``llvmlite.binding``, ready to compile for this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _target_machine(host, level):
    target, features = _llvm().Target.from_triple(host.triple), host.features
    return target.create_target_machine(
        cpu=host.cpu,
        features=",".join(features),
        opt=level,
        jit=True,
        **_MEMORY,
    )


# Code and its constants lie in one block, so that constants can be operands by their
# distance from the instruction.
_MEMORY = {"reloc": "pic", "codemodel": "small"}


def _passes(host, level, codegen_level):
    """Return LLVM's target machine for a `Host`, and the builder of its passes.

    Each thread has its own.
    """
    made, key = vars(_own), (host, level, codegen_level)
    if key not in made:
        llvm, machine = _llvm(), _target_machine(host, codegen_level)
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = options.slp_vectorization = level > 0
        options.loop_interleaving = options.loop_unrolling = level > 0
        made[key] = machine, llvm.create_pass_builder(machine, options)
    return made[key]


_own = threading.local()


def maker():
    """Return everything besides the text that determines the machine code."""
    llvm = _llvm()
    import llvmlite

    return "\0".join(
        [
            *(__version__, llvmlite.__version__, _dotted(llvm.llvm_version_info)),
            *(host().triple, host().cpu, *host().features),
            *(f"{CODEGEN_LEVEL}", str(_MEMORY)),
        ]
    )


# Adds up 1.5 * n for n below 1000: a loop, vectors, constants and calls.
_TEST = """
declare double @llvm.floor.f64(double)
declare double @tapewright_test_input(double)
define void @fill(ptr %out, i64 %n) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x = uitofp i64 %i to double
  %y = fmul double %x, 1.5
  %z = call double @llvm.floor.f64(double %y)
  %to = getelementptr inbounds double, ptr %out, i64 %i
  store double %z, ptr %to
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
define double @call(double %x) nounwind {
  %y = call double @tapewright_test_input(double %x)
  %z = fadd double %y, 1.0
  ret double %z
}
"""


def _why_unavailable():
    """Compile and run a loop and a call; return a description of wrong results."""
    _llvm().executionengine.check_jit_execution()
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    given = function(lambda x: 2 * x)
    address = ctypes.cast(given, ctypes.c_void_p).value
    library = compiled(_TEST, "self_test", {"tapewright_test_input": address})
    out = (ctypes.c_double * 37)()
    fill = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    fill(library.address("fill"))(ctypes.addressof(out), len(out))
    called = function(library.address("call"))(20.5)
    if list(out) != [i * 3 // 2 for i in range(len(out))] or called != 42:
        return "a test function computes the wrong numbers"
    return None
