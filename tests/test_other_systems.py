"""What Windows or macOS lacks is not needed: a process without it trains, saves and loads."""

import sys
from importlib.util import find_spec

import pytest

from .forks import Forks

# Names of Python's documentation with "Availability: Unix" or "Linux", as far as a library
# may be tempted; and modules that are not built everywhere.
WINDOWS_HAS_NO = {
    "os": """WCOREDUMP WEXITSTATUS WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WTERMSIG
        O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK
        O_PATH O_SYNC O_TMPFILE POSIX_FADV_DONTNEED POSIX_FADV_SEQUENTIAL
        POSIX_FADV_WILLNEED RTLD_GLOBAL RTLD_LAZY RTLD_LOCAL RTLD_NODELETE RTLD_NOLOAD
        RTLD_NOW chown chroot confstr copy_file_range eventfd fchdir fchmod fchown fork
        forkpty fdatasync getegid geteuid getgid getgroups getloadavg getpgid getpriority
        getrandom getresuid getsid getuid getxattr initgroups killpg lchown lockf major
        memfd_create minor mkfifo mknod nice openpty pathconf pidfd_open pipe2
        posix_fadvise posix_fallocate posix_spawn pread preadv pwrite pwritev
        register_at_fork sched_getaffinity sched_setaffinity sched_yield sendfile setegid
        seteuid setgid setpgid setpriority setsid setuid setxattr splice statvfs sync
        sysconf sysconf_names ttyname uname wait wait3 wait4 waitid""",
    "signal": """ITIMER_REAL SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGPROF
        SIGQUIT SIGRTMAX SIGRTMIN SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 SIG_BLOCK SIG_SETMASK
        SIG_UNBLOCK alarm getitimer pause pthread_kill pthread_sigmask setitimer
        siginterrupt sigpending sigtimedwait sigwait sigwaitinfo""",
    "socket": "AF_UNIX socketpair SO_REUSEPORT send_fds recv_fds",
    "time": "clock_getres clock_gettime clock_settime pthread_getcpuclockid tzset",
    "select": "epoll poll kqueue",
    "modules": """_curses curses crypt fcntl grp nis pty pwd readline resource
        spwd syslog termios tty""",
}
MACOS_HAS_NO = {
    "os": """O_DIRECT O_NOATIME O_PATH O_TMPFILE POSIX_FADV_DONTNEED POSIX_FADV_SEQUENTIAL
        POSIX_FADV_WILLNEED copy_file_range eventfd fdatasync getrandom getresuid getxattr
        memfd_create pidfd_open pipe2 posix_fadvise posix_fallocate sched_getaffinity
        sched_setaffinity setxattr splice""",
    "signal": "SIGRTMAX SIGRTMIN sigtimedwait sigwaitinfo",
    "time": "pthread_getcpuclockid",
    "select": "epoll",
    "modules": "spwd",
}
NO_CTYPES = {
    "modules": "ctypes _ctypes llvmlite"
}  # a Python that was built without libffi

# The standard library reads some of the names when it is imported: it does not do so where
# they are absent. llvmlite looks for the file of the system that it is imported on.
IMPORTS = """
import asyncio, concurrent.futures, gzip, http.client, importlib.metadata, inspect, logging
import multiprocessing, os, pathlib, platform, random, select, shutil, signal, socket
import subprocess, sys, sysconfig, tarfile, tempfile, threading, time, urllib.request
import uuid, zipfile
import h5py, numpy, tqdm
try:
    import llvmlite.binding
except ImportError:
    pass

sysconfig.get_config_vars()
"""
WITHOUT = """
import os, pathlib, select, shutil, signal, socket, sys, time

sys.platform = {system!r}
absent = {absent!r}
for module in absent.pop("modules").split():
    sys.modules[module] = None
for module, names in absent.items():
    for name in names.split():
        if hasattr(sys.modules[module], name):
            delattr(sys.modules[module], name)
shutil._use_fd_functions = shutil.rmtree.avoids_symlink_attacks = False
"""
WORK = """
import numpy as np
import tapewright as tw
from tapewright import keras
from tapewright.__main__ import main

folder = pathlib.Path(os.environ["FOLDER"])
tw.config.show()
tw.config.set_threads(2)
assert tw.config.target() == os.environ["EXPECTED"]
assert os.environ["NOTE"] in tw.config.report()["target"]["note"]
rng = np.random.default_rng(0)
x, y = rng.normal(size=(64, 6, 6, 1)).astype("f4"), rng.integers(0, 3, 64)
model = keras.Sequential([
    keras.layers.Conv2D(4, 3, activation="relu"), keras.layers.Flatten(),
    keras.layers.Dense(3),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
checkpoint = keras.callbacks.ModelCheckpoint(folder / "best.weights.h5",
                                             monitor="loss", save_best_only=True,
                                             save_weights_only=True)
backup = keras.callbacks.BackupAndRestore(folder / "backup")
losses = model.fit(x, y, 16, 3, verbose=0, callbacks=[checkpoint, backup]).history["loss"]
assert losses[-1] < losses[0]

expected = model.predict(x, verbose=0)
for name in ("model.keras", "model.h5"):
    for _ in range(2):  # the second one replaces the first
        model.save(folder / name)
    loaded = keras.models.load_model(folder / name)
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), expected)
for _ in range(2):
    tw.saved_model.save(model, str(folder / "saved"))
np.testing.assert_allclose(tw.saved_model.load(str(folder / "saved"))(x), expected, 1e-5, 1e-6)
assert main(["verify", str(folder / "model.keras")]) == 0
assert main(["show", str(folder / "missing.keras")]) == 2

kernel = tw.Variable(rng.normal(size=(6, 6)).astype("f4"))
traced = tw.function(lambda a: tw.reduce_sum(tw.tanh(a @ kernel)))
np.testing.assert_allclose(traced(x[0, ..., 0]), np.tanh(x[0, ..., 0] @ kernel).sum(), 1e-5)
manager = tw.train.CheckpointManager(tw.train.Checkpoint(v=kernel), folder / "c", 2)
for _ in range(4):
    manager.save()
data = tw.data.Dataset.from_tensor_slices(x).shuffle(8, 1).map(lambda a: a + 1).batch(16)
for _ in range(2):
    assert len(list(data.cache(str(folder / "cache")).prefetch(2))) == 4
with tw.io.TFRecordWriter(str(folder / "records")) as writer:
    writer.write(b"one")
assert list(tw.data.TFRecordDataset([str(folder / "records")])) == [b"one"]
try:
    tw.zeros([1 << 50])
except MemoryError:
    pass
else:
    raise AssertionError("an array of 4 PB was made")
tw.print("ünï", output_stream=f"file://{folder}/printed")
assert (folder / "printed").read_text("utf-8") == "ünï" + os.linesep
print("done")
"""


@pytest.fixture(scope="module")
def forks():
    strict = {"PYTHONWARNINGS": "error", "PYTHONWARNDEFAULTENCODING": "1"}
    with Forks(IMPORTS, {"PATH": "", "TAPEWRIGHT_CACHE": "0", **strict}) as forks:
        yield forks


@pytest.mark.parametrize(
    ("system", "absent", "note"),
    [
        ("win32", WINDOWS_HAS_NO, "BLAS library is not accessible"),
        ("darwin", MACOS_HAS_NO, ""),
        (sys.platform, NO_CTYPES, "this Python has no ctypes"),
    ],
    ids=["Windows", "macOS", "a Python without ctypes"],
)
@pytest.mark.parametrize("target", ["numpy", "auto"])
def test_a_process_without_it_trains_saves_and_loads(
    system, absent, note, target, tmp_path, forks
):
    is_tried = target == "auto" and find_spec("llvmlite")
    expected = "native" if is_tried and not note else "numpy"
    note = note if is_tried else ""
    variables = {"TAPEWRIGHT_TARGET": target, "FOLDER": str(tmp_path)}
    variables |= {"EXPECTED": expected, "NOTE": note}
    code = WITHOUT.format(absent=absent, system=system) + WORK
    assert forks.output(code, **variables).endswith("done\n")
