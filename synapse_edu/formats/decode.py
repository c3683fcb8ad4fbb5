"""Bytes → float32: the values that a block stands for, in llama.cpp's own roundings.

Every product and sum below is rounded to float32 once, left to right, as in ggml's
``dequantize_row_*`` (ggml-quants.c).
"""

import numpy as np

from .layout import format_of
from .unpack import blocks_of, unpack


def decode(raw, format):
    """Decode rows.

    Parameters
    ----------
    raw : ndarray of uint8, shape (..., row_bytes)
    format : str

    Returns
    -------
    ndarray of float32, shape (..., n)

    Examples
    --------
    >>> decode(np.array([0, 0x3C, 3] + [0] * 31, np.uint8), "Q8_0")[:2].tolist()
    [3.0, 0.0]
    """
    if format_of(format).is_float:
        return _widen(blocks_of(raw, format)["x"][..., 0], format)
    b = unpack(raw, format)
    with np.errstate(over="ignore", invalid="ignore"):  # a damaged file may hold inf or NaN scales
        x = values(b)  # (..., n_block, block)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])  # (..., n)


def _widen(x, format):
    """Float32 from stored F32, F16 or BF16 numbers: exact."""
    if format == "BF16":  # the upper half of a float32
        return (x.astype(np.uint32) << 16).view(np.float32)  # (..., n)
    with np.errstate(invalid="ignore"):
        return x.astype(np.float32)  # (..., n)


def values(b):
    """The values of `Blocks`, float32 of shape (..., n_block, block)."""
    x = b.codes.astype(np.float32)  # (..., n_block, block)
    if b.scales is None:
        x *= b.d[..., None]
        return x if b.m is None else x + b.m[..., None]
    width = x.shape[-1] // b.scales.shape[-1]  # elements of a sub-block
    per_sub = x.reshape(*b.scales.shape, width)  # (..., n_block, n_sub, width)
    scale = b.d[..., None] * b.scales.astype(np.float32)  # (..., n_block, n_sub)
    per_sub *= scale[..., None]
    if b.mins is not None:
        per_sub -= (b.dmin[..., None] * b.mins.astype(np.float32))[..., None]
    return per_sub.reshape(b.codes.shape)
