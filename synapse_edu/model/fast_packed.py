"""Weights packed for the kernels: in memory, or in a file that processes share.

A small model is packed into memory.  The packed copy of a large one goes to a file of its own,
once, and is mapped: then thirty processes share one copy.  Where the kernels read the model file's
own bytes, nothing is packed at all.
"""

import contextlib
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import platformdirs

from ..ops.fast import repack
from ..ops.fast.jit import source_key
from ..ops.fast.kernels import mode_of
from ..ops.fast.memory import aligned_empty
from ..ops.fast.threads import available
from . import fast_packed_file
from .fast_packed_file import let_go, pack, packed_size

IN_MEMORY = 512 * 2**20  # bytes up to which the packed copy stays in memory
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
            m.raw.setflags(write=False)  # a change would be seen by the reference only
            mode = mode_of(m.format, numerics)
            if repack.usable_as_stored(m, mode):
                self._addresses[id(m)] = m.raw.ctypes.data
            else:
                to_pack.append((m, mode))
        sizes = [packed_size(m, mode) for m, mode in to_pack]
        self.nbytes = sum(sizes)
        room = self._room(to_pack)
        start = 0
        for (m, _), size in zip(to_pack, sizes, strict=True):
            self._addresses[id(m)] = room[start : start + size].ctypes.data
            start += size
        self._kept.append(room)

    def address(self, matrix):
        return self._addresses[id(matrix)]

    def reads_file(self, matrix):
        """Whether the kernels read the matrix's own bytes, in the model file."""
        return self._addresses.get(id(matrix)) == matrix.raw.ctypes.data

    def _room(self, to_pack):
        """The packed bytes of all matrices, one after another."""
        if self.nbytes > IN_MEMORY or (self.nbytes and os.environ.get(ENV_SHARED)):
            with contextlib.suppress(OSError):  # a full disk, or a folder that cannot be written
                path = _folder() / f"{_identity(to_pack)}.packed"
                room = fast_packed_file.mapped(path, to_pack, self.nbytes)  # (nbytes,)
                self.path = path
                return room
        room = aligned_empty(self.nbytes)  # (nbytes,)
        start = 0
        for m, mode in to_pack:
            size = packed_size(m, mode)
            pack(m, mode, room[start : start + size])
            start += size
        return room


def _folder():
    if given := os.environ.get(ENV_SHARED):
        return Path(os.path.expanduser(given))
    return platformdirs.user_cache_path("synapse_edu", appauthor=False) / "packed"


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
