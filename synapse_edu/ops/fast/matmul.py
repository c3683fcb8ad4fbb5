"""Matrix products by compiled kernels: the twin of ``ops.reference.matmul``."""

import weakref

import numpy as np

from ...errors import BadArgument
from . import repack
from .jit import njit
from .kernels.calls import call_matmat, call_matvec, call_quantize, call_quantize_batch
from .kernels.registry import for_format, mode_of
from .memory import aligned_empty

_PACKED = weakref.WeakKeyDictionary()  # Matrix → its packed copies; they go when it goes


@njit
def _one(kernels, w, x, y, out, n_in, n_rows, scratch):
    quantize, _, matvec, _ = kernels
    call_quantize(quantize, x, y, n_in)
    call_matvec(matvec, w, y, out, n_in, 0, n_rows, scratch)


@njit
def _many(kernels, w, x, y, out, n_in, n_rows, n_tokens, scratch):
    _, quantize, _, matmat = kernels
    for t in range(n_tokens):
        call_quantize_batch(quantize, x + 4 * n_in * t, y, n_in, t, n_tokens)
    call_matmat(matmat, w, y, out, n_in, 0, n_rows, n_tokens, n_rows, scratch)


def packed(weight, mode):
    """The packed bytes of a Matrix, made once and kept with it."""
    copies = _PACKED.setdefault(weight, {})
    if mode not in copies:
        room = aligned_empty(repack.packed_bytes(weight.format, *weight.shape, mode))
        repack.pack(weight, mode, room)
        copies[mode] = room
    return copies[mode]


def matmul(weight, x, numerics):
    """Product of a weight matrix with activation rows.

    Parameters
    ----------
    weight : Matrix
        Shape (n_out, n_in), in any format.  Its packed copy is kept as long as it is.
    x : ndarray of float32, shape (n, n_in)
        One row a token.
    numerics : Numerics
        ``"llama.cpp"``, ``"synapse"`` or ``"textbook"``.

    Returns
    -------
    ndarray of float32, shape (n, n_out)
    """
    x = np.ascontiguousarray(x, np.float32)  # (n, n_in)
    if x.ndim != 2 or x.shape[1] != weight.n_in:
        raise BadArgument(
            f"{weight.name}: rows of {weight.n_in} numbers are needed, not an array of {x.shape}."
        )
    mode = mode_of(weight.format, numerics)
    k = for_format(weight.format, mode)
    n, n_in, n_rows = x.shape[0], weight.n_in, repack.padded_rows(weight.n_out)
    out = np.empty((n, n_rows), np.float32)  # (n, padded n_out)
    if out.size:
        w = packed(weight, mode)
        y = aligned_empty(k.activation_bytes(n_in, n))
        scratch = aligned_empty(k.scratch_bytes(n_in, n))
        at = [a.ctypes.data for a in (w, x, y, out)]
        table = (k.quantize, k.quantize_batch, k.matvec, k.matmat)
        if n == 1:
            _one(table, *at, n_in, n_rows, scratch.ctypes.data)
        else:
            _many(table, *at, n_in, n_rows, n, scratch.ctypes.data)
    return out[:, : weight.n_out]
