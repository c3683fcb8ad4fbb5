"""How every fast function is compiled, and where compiled code is kept.

Compiled code is kept in a private folder named by a hash of what it depends on: the sources of
the computing packages, the versions of Python, Numba and LLVM, and the processor.  Numba's own
cache looks at one source file only, so an edit in an imported module, or a constant taken from
elsewhere, would leave stale code behind.  Where no folder can be written, everything works and
is compiled anew in each process.
"""

import functools
import hashlib
import os
import pickle
import platform
import re
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numba
import platformdirs
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from ...atomic import replacing

if numba.config.DISABLE_JIT:
    raise ImportError("NUMBA_DISABLE_JIT is set")

PACKAGE = Path(__file__).resolve().parents[2]
SOURCES = ("ops", "formats", "model/fast*")  # what compiled code may depend on
UNUSED = 90 * 86_400  # seconds after which code of another version is deleted
# No fastmath: it would reorder sums and drop NaN (the bits are the contract here).
OPTIONS = {"nogil": True, "error_model": "numpy"}


def cpu():
    """Name and features of the processor that Numba compiles for."""
    name = numba.config.CPU_NAME or llvm.get_host_cpu_name()
    features = numba.config.CPU_FEATURES
    if features is None:
        features = llvm.get_host_cpu_features().flatten()
    return name, features


def has_avx2():
    """Whether code is compiled for x86-64 with AVX2 and its half-precision conversions.

    ``NUMBA_CPU_NAME=generic`` makes it False on any machine.
    """
    known = set(cpu()[1].split(","))
    return platform.machine().lower() in ("x86_64", "amd64") and {"+avx2", "+f16c"} <= known


@functools.cache
def source_key():
    """Hash of all that compiled code depends on: 32 hexadecimal digits."""
    digest = hashlib.sha256()
    for pattern in SOURCES:
        found = PACKAGE.glob(pattern)
        files = [f for p in found for f in ([p] if p.is_file() else p.rglob("*.py"))]
        for path in sorted(files):
            digest.update(path.relative_to(PACKAGE).as_posix().encode())
            digest.update(path.read_bytes())
    parts = (platform.python_version(), numba.__version__, llvmlite.__version__, *cpu())
    digest.update("|".join(parts).encode())
    return digest.hexdigest()[:32]


def _private(folder):
    """`folder` made readable by its owner alone, or OSError.

    Compiled code is loaded and run, so nobody else may be able to put a file there.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid"):
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise OSError(f"{folder} belongs to somebody else")
        folder.chmod(0o700)
        for above in folder.resolve().parents:  # whose owner could put another in its place
            found = above.stat()
            others_write = found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX
            if others_write or found.st_uid not in (0, os.getuid()):
                raise OSError(f"others may change {above}")
    with tempfile.TemporaryFile(dir=folder):
        pass
    return folder


def _forget_unused(base):
    """Delete code of other versions that nobody has used for a season."""
    for folder in base.iterdir():
        ours = re.fullmatch("[0-9a-f]{32}", folder.name) and folder.is_dir()
        if ours and time.time() - folder.stat().st_mtime > UNUSED:
            shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def cache_folder():
    """The folder of compiled code, or None where none can be written.

    In this order: ``NUMBA_CACHE_DIR``, the user's cache folder, the system's temporary folder.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    places = [
        lambda: platformdirs.user_cache_path("synapse_edu", appauthor=False),
        lambda: Path(tempfile.gettempdir()) / f"synapse_edu-{user}",  # an error if there is none
    ]
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        places.insert(0, lambda: Path(given) / "synapse_edu")
    for place in places:
        try:
            base = _private(place() / "compiled")
            folder = _private(base / source_key())
            os.utime(folder)  # it was used today
            _forget_unused(base)
            return folder
        except OSError:
            continue
    return None


@functools.cache  # said once in a process
def _announce():
    """Say what takes so long."""
    folder = cache_folder()
    if folder is None:
        what = "the fast code: about 20 s at every start, for no folder can be written to keep it"
    elif any(folder.glob("*.bin")):
        what = "what this model needs, once: some seconds"
    else:
        what = "the fast code, once: about 20 s"
    print(f"Compiling {what}.", file=sys.stderr, flush=True)


class _Cache(NullCache):
    """Compiled versions of one function, a file for each signature, where there is a folder.

    `name` tells functions apart, also those that one factory makes: Numba's own cache would
    look into their closures, where a compiled function has another identity in each process.
    """

    def __init__(self, name):
        self._name = name

    def _path(self, sig, codegen):
        key = f"{self._name}|{sig}|{codegen.magic_tuple()}"
        return cache_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.bin"

    def load_overload(self, sig, target_context):
        target_context.refresh()
        try:
            if cache_folder() is None:
                raise OSError("no folder")
            payload = pickle.loads(self._path(sig, target_context.codegen()).read_bytes())
            return CompileResult._rebuild(target_context, *payload)
        except Exception:  # absent, or damaged: it is compiled anew
            _announce()
            return None

    def save_overload(self, sig, cres):
        if cache_folder() is None or cres.library.has_dynamic_globals or cres.lifted:
            return
        try:
            with replacing(self._path(sig, cres.codegen)) as path:
                path.write_bytes(dumps(cres._reduce()))
        except OSError:  # a full or vanished disk does not stop the computation
            pass


def _cache(function, tag):
    return _Cache(f"{function.__module__}.{function.__qualname__}|{tag}")


def njit(function=None, *, tag=""):
    """Compile a function that Python calls, and keep the code.  It never holds the GIL.

    `tag` tells apart functions that one factory makes; it must be unique among them.
    """
    if function is None:
        return functools.partial(njit, tag=tag)
    dispatcher = numba.njit(**OPTIONS)(function)
    dispatcher._cache = _cache(function, tag)
    return dispatcher


def inner(function):
    """Compile a function that only compiled functions call: kept as a part of its callers."""
    return numba.njit(**OPTIONS)(function)


def address_of(function, signature, tag=""):
    """Compile `function` for C callers, keep the code, and return its address (an int).

    Parameters
    ----------
    function : Python function
    signature : Numba signature
        Such as ``types.void(types.int64)``.  An error inside cannot be passed on to C.
    tag : str
        As for `njit`.
    """
    callback = CFunc(function, (signature.args, signature.return_type), {}, dict(OPTIONS))
    callback._cache = _cache(function, tag)
    callback.compile()
    _KEPT.append(callback)  # the code lives as long as its callback
    return callback.address


_KEPT = []
