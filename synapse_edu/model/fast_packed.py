"""Weights packed for the kernels: in memory, or in a file that processes share.

A small model is packed into memory.  The packed copy of a large one goes to a file of its own,
once, and is mapped: then thirty processes share one copy.  Where the kernels read the model file's
own bytes, nothing is packed at all.
"""

import contextlib
import hashlib
import mmap
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import platformdirs

from ..atomic import replacing
from ..ops.fast import repack
from ..ops.fast.jit import UNUSED, source_key
from ..ops.fast.kernels import mode_of
from ..ops.fast.memory import ALIGN, aligned_empty
from ..ops.fast.threads import available

IN_MEMORY = 512 * 2**20  # bytes up to which the packed copy stays in memory
DAY = 86_400  # seconds
ENV_SHARED = "SYNAPSE_PACKED"  # a folder where models of every size are packed, for a class


class Packed:
    """Where each matrix of a model lies for the kernels.

    Parameters
    ----------
    matrices : list of Matrix
    numerics : Numerics

    Attributes
    ----------
    nbytes : int
        Of the packed copy.
    path : Path or None
        Its file, if it has one.
    """

    def __init__(self, matrices, numerics):
        # by identity: a matrix made by hand may have no name of its own
        self._kept, self._addresses, self.path = list(matrices), {}, None
        to_pack = []
        for m in {id(m): m for m in matrices}.values():
            mode = mode_of(m.format, numerics)
            if repack.usable_as_stored(m, mode):
                self._addresses[id(m)] = m.raw.ctypes.data
            else:
                to_pack.append((m, mode))
        sizes = [_size(m, mode) for m, mode in to_pack]
        self.nbytes = sum(sizes)
        room = self._room(to_pack)
        start = 0
        for (m, _), size in zip(to_pack, sizes, strict=True):
            self._addresses[id(m)] = room[start : start + size].ctypes.data
            start += size
        self._kept.append(room)

    def address(self, matrix):
        return self._addresses[id(matrix)]

    def _room(self, to_pack):
        """The packed bytes of all matrices, one after another."""
        if self.nbytes > IN_MEMORY or (self.nbytes and os.environ.get(ENV_SHARED)):
            try:
                return self._in_file(to_pack, _folder())
            except OSError:  # a full disk, or a folder that cannot be written
                pass
        room = aligned_empty(self.nbytes)  # (nbytes,)
        _fill(room, to_pack)
        return room

    def _in_file(self, to_pack, folder):
        path = folder / f"{_identity(to_pack)}.packed"
        if not (path.exists() and path.stat().st_size == self.nbytes):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            free = os.statvfs(folder) if hasattr(os, "statvfs") else None
            if free and free.f_bavail * free.f_frsize < 1.1 * self.nbytes:
                raise OSError("no room")
            print(
                f"Packing the weights for speed, once: {self.nbytes / 1e6:,.0f} MB in {path}.",
                file=sys.stderr,
                flush=True,
            )
            with replacing(path) as part:
                room = np.memmap(part, np.uint8, "w+", shape=(self.nbytes,))
                _fill(room, to_pack)
                room.flush()
                del room
        self.path = path
        room = np.memmap(path, np.uint8, "r")
        with contextlib.suppress(OSError):  # somebody else's file is used, but not marked
            os.utime(path)
        _forget(folder)
        return room


def _folder():
    if given := os.environ.get(ENV_SHARED):
        return Path(os.path.expanduser(given))
    return platformdirs.user_cache_path("synapse_edu", appauthor=False) / "packed"


def _size(m, mode):
    return -(-repack.packed_bytes(m.format, *m.shape, mode) // ALIGN) * ALIGN


def _fill(room, to_pack):
    start = 0
    for m, mode in to_pack:
        size, n = _size(m, mode), repack.packed_bytes(m.format, *m.shape, mode)
        repack.pack(m, mode, room[start : start + n])
        let_go(m.raw)
        start += size


def _identity(to_pack):
    """Names a packed copy: this code, and the weights' layout and every byte of them.

    Reading them all takes half a second a gigabyte.  Dates and names of files would be quicker,
    and wrong for a file that was replaced by one of the same size.
    """

    def digest_of(item):
        m, mode = item
        digest = hashlib.sha256(f"{m.name}|{m.format}|{m.shape}|{mode}|".encode())
        digest.update(repack.layout(m.format, mode).encode())
        digest.update(np.ascontiguousarray(m.raw))
        let_go(m.raw)
        return digest.digest()

    with ThreadPoolExecutor(available()) as pool:
        every = b"".join(pool.map(digest_of, to_pack))
    return f"{source_key()[:16]}-{hashlib.sha256(every).hexdigest()[:32]}"


def _forget(folder):
    """Delete packed copies that another version of this code made and nobody used for a day.

    They take as much room as their models.  A copy that is in use stays usable, and a version
    that still wants one makes it anew.
    """
    for path in folder.glob("*.packed"):
        old = not path.name.startswith(source_key()[:16])
        try:
            if time.time() - path.stat().st_mtime > (DAY if old else UNUSED):
                path.unlink()
        except OSError:  # gone already, or open on a system that keeps open files
            pass


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
