"""Weights as the kernels want them: packed once, read for every token."""

import functools

import numpy as np

from ...errors import BadArgument
from .kernels.families import family
from .kernels.registry import ROW_UNIT
from .memory import ALIGN


def padded_rows(n_out):
    """Rows rounded up to whole units."""
    return -(-n_out // ROW_UNIT) * ROW_UNIT


def packed_bytes(format, n_out, n_in, mode="blocks"):
    """Bytes of a packed matrix.

    Parameters
    ----------
    format : str
    n_out, n_in : int
    mode : {"blocks", "synapse", "float32"}
    """
    return family(format, mode).packed_bytes(padded_rows(n_out), n_in)


def layout(format, mode="blocks"):
    """Name of the packed layout: a packed copy may be kept and shared under this name.

    ``"rows"`` is the file's own order.
    """
    return family(format, mode).layout


def usable_as_stored(matrix, mode="blocks"):
    """Whether the kernels read the matrix's own bytes, so that nothing need be packed."""
    raw = matrix.raw
    whole = matrix.n_out % ROW_UNIT == 0 and raw.flags.c_contiguous
    return whole and layout(matrix.format, mode) == "rows" and raw.ctypes.data % 4 == 0


@functools.cache
def _packer(format, mode):
    return family(format, mode).packer()


def pack(matrix, mode, out):
    """Write a matrix into `out` as the kernels of its format and mode read it.

    Parameters
    ----------
    matrix : Matrix
    mode : {"blocks", "synapse", "float32"}
    out : ndarray of uint8, shape (packed_bytes,)
        Aligned to 64 bytes.
    """
    n_out, n_in = matrix.shape
    n = packed_bytes(matrix.format, n_out, n_in, mode)
    if out.dtype != np.uint8 or out.shape != (n,) or out.ctypes.data % ALIGN:
        raise BadArgument(f"{matrix.name}: pack needs {n} bytes aligned to {ALIGN}.")
    raw = np.ascontiguousarray(matrix.raw)  # (n_out, row_bytes)
    if layout(matrix.format, mode) == "rows":
        out[: raw.size] = raw.reshape(-1)
        out[raw.size :] = 0
    elif n_out:
        addresses = raw.ctypes.data, out.ctypes.data
        _packer(matrix.format, mode)(*addresses, n_out, padded_rows(n_out), n_in)
