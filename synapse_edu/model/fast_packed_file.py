"""The file of a packed copy: written once, by one process, and mapped by all.

It holds the matrices one after another, each filled up to a multiple of `ALIGN` bytes, and then
32 bytes: the SHA-256 of the matrices' SHA-256s.  They are checked whenever the file is opened,
which takes half a second a gigabyte: a damaged copy would give wrong numbers in silence.
"""

import contextlib
import hashlib
import mmap
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..ops.fast import repack
from ..ops.fast.jit import UNUSED, source_key
from ..ops.fast.memory import ALIGN, aligned_empty
from ..ops.fast.threads import available

DIGEST = 32  # bytes at the end of the file
DAY = 86_400  # seconds
STALLED = 30  # seconds without a write after which the writer is taken for dead


def packed_size(m, mode):
    """Bytes of one packed matrix and of what fills it up."""
    return -(-repack.packed_bytes(m.format, m.n_out, m.n_in, mode) // ALIGN) * ALIGN


def pack(m, mode, room):
    """Pack one matrix into `room` (packed_size,), zeros behind it."""
    n = repack.packed_bytes(m.format, m.n_out, m.n_in, mode)
    repack.pack(m, mode, room[:n])
    room[n:] = 0
    let_go(m.raw)


def mapped(path, to_pack, nbytes):
    """The packed bytes, mapped from the file at `path`, which is made if need be.

    Parameters
    ----------
    path : Path
    to_pack : list of (Matrix, mode)
    nbytes : int
        Of all packed matrices.

    Returns
    -------
    uint8 (nbytes,)
        Read-only.

    Raises
    ------
    OSError
        Where the file can be neither used nor made: the disk is full, or another process
        that was making it gave up.
    """
    sizes = [packed_size(m, mode) for m, mode in to_pack]
    room = _opened(path, sizes)
    if room is None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _forget(path.parent)  # before, since it may make room
        _write(path, to_pack, nbytes)
        room = _opened(path, sizes)
        if room is None:
            raise OSError(f"{path} could not be completed")
    with contextlib.suppress(OSError):  # somebody else's file is used, but not marked
        os.utime(path)
    return room


def _opened(path, sizes):
    """The file's packed bytes, or None if it is absent or not what was written."""
    try:
        if path.stat().st_size != sum(sizes) + DIGEST:
            return None
        room = np.memmap(path, np.uint8, "r")  # (nbytes + DIGEST,)
    except FileNotFoundError:
        return None
    ends = np.cumsum(sizes)  # (matrices,)
    with ThreadPoolExecutor(available()) as pool:
        every = pool.map(lambda i: _digest(room[ends[i] - sizes[i] : ends[i]]), range(len(sizes)))
        found = hashlib.sha256(b"".join(every)).digest()
    return room[:-DIGEST] if found == room[-DIGEST:].tobytes() else None


def _digest(packed):
    digest = hashlib.sha256(packed).digest()
    let_go(packed)
    return digest


def _write(path, to_pack, nbytes):
    """Make the file, or wait for the process that is making it."""
    part = path.with_suffix(".part")
    try:
        file = open(part, "xb")  # one process only
    except FileExistsError:
        return _write(path, to_pack, nbytes) if _stalled(part) else None
    try:
        with file:
            if shutil.disk_usage(path.parent).free < 1.1 * nbytes:
                raise OSError("the disk would be full")
            _say(f"Packing the weights for speed, once: {nbytes / 1e6:,.0f} MB in {path}.")
            every = []
            for m, mode in to_pack:
                room = aligned_empty(packed_size(m, mode))  # (packed_size,)
                pack(m, mode, room)
                # Written, not mapped: a full disk is an error here, and a signal there.
                file.write(room)
                every.append(hashlib.sha256(room).digest())
            file.write(hashlib.sha256(b"".join(every)).digest())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _stalled(part):
    """Wait until another process is done with its `part`; True if it died, and `part` is gone."""
    _say("Another process is packing the weights; waiting for it.")
    size, since = -1, time.monotonic()
    try:
        while time.monotonic() - since < STALLED:
            if size != (now := part.stat().st_size):
                size, since = now, time.monotonic()
            time.sleep(0.1)
        part.unlink()
    except FileNotFoundError:
        return False
    return True


def _forget(folder):
    """Delete packed copies that another version of this code made and nobody used for a day.

    They take as much room as their models.  A copy that is in use stays usable, and a version
    that still wants one makes it anew.  What a killed process left half done goes too.
    """
    now = time.time()
    for path in [*folder.glob("*.packed"), *folder.glob("*.part")]:
        other = not path.name.startswith(source_key()[:16])
        limit = 20 * STALLED if path.suffix == ".part" else DAY if other else UNUSED
        with contextlib.suppress(OSError):  # gone, or open where open files cannot be deleted
            if now - path.stat().st_mtime > limit:
                path.unlink()


def _say(text):
    print(text, file=sys.stderr, flush=True)


def let_go(raw):
    """Tell the system that a mapped tensor's pages are not needed for now.

    They stay in the system's cache of files, and no longer count as memory of this process.
    """
    base = raw
    while isinstance(base, np.ndarray):
        base = base.base
    if not isinstance(base, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    whole = np.frombuffer(base, np.uint8)
    first = raw.ctypes.data - whole.ctypes.data
    start = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
    stop = (first + raw.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if stop > start:
        base.madvise(mmap.MADV_DONTNEED, start, stop - start)
