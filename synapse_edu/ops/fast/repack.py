"""Weights as the kernels want them: packed once, read for every token."""

import numpy as np

from ...errors import BadArgument
from ...formats.layout import row_bytes
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
    return padded_rows(n_out) * row_bytes(format, n_in)


def usable_as_stored(matrix, mode="blocks"):
    """Whether the kernels read the file's own bytes, so that nothing need be packed."""
    raw = matrix.raw
    return matrix.n_out % ROW_UNIT == 0 and raw.flags.c_contiguous and raw.ctypes.data % 4 == 0


def pack(matrix, mode, out):
    """Write a matrix into `out` as the kernels of its format and mode read it.

    Parameters
    ----------
    matrix : Matrix
    mode : {"blocks", "synapse", "float32"}
    out : ndarray of uint8, shape (packed_bytes,)
        Aligned to 64 bytes.
    """
    n = packed_bytes(matrix.format, matrix.n_out, matrix.n_in, mode)
    if out.dtype != np.uint8 or out.shape != (n,) or out.ctypes.data % ALIGN:
        raise BadArgument(f"{matrix.name}: pack needs {n} bytes aligned to {ALIGN}.")
    rows = out.reshape(-1, row_bytes(matrix.format, matrix.n_in))  # (padded rows, row_bytes)
    rows[: matrix.n_out] = matrix.raw
    rows[matrix.n_out :] = 0
