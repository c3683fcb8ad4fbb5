"""float32 → bytes: how a row is quantized into each format.

The rules are ggml's (``quantize_row_*_ref`` in ggml-quants.c): the same scales, the same codes,
the same bytes, for finite input.  Formats whose encoders search over many candidate scales (Q2_K,
Q3_K, IQ4_NL, IQ4_XS, MXFP4) are decoded here but not made, except Q4_K and Q6_K in `encode_k`.
"""

import numpy as np

from ..errors import BadArgument, UnsupportedModel
from .activations import bf16_bits, half_away
from .layout import format_of

F32 = np.float32


def encode(x, format):
    """Encode rows.

    Parameters
    ----------
    x : ndarray of float32, shape (..., n)
    format : str

    Returns
    -------
    ndarray of uint8, shape (..., row_bytes)

    Examples
    --------
    >>> encode(np.full(32, 2.0, np.float32), "Q8_0").tolist()[:4]
    [8, 36, 127, 127]
    """
    known = format_of(format)
    x = np.ascontiguousarray(x, F32)  # (..., n)
    if x.ndim == 0 or x.shape[-1] % known.block:
        raise BadArgument(f"{format} rows hold blocks of {known.block} elements, not {x.shape}.")
    if not np.isfinite(x).all() and not known.is_float:
        raise BadArgument(f"{format} cannot hold infinities or NaNs.")
    if format in ("Q4_K", "Q6_K"):
        from . import encode_k

        make = getattr(encode_k, format.lower())
    elif format in ENCODERS:
        make = ENCODERS[format]
    else:
        raise UnsupportedModel(f"{format} is decoded here but not made; choose {', '.join(MADE)}.")
    blocks = x.reshape(*x.shape[:-1], -1, known.block)  # (..., n_block, block)
    out = np.zeros(blocks.shape[:-1], known.dtype)  # (..., n_block)
    with np.errstate(over="ignore"):  # beyond float16's range becomes infinite, as in ggml
        make(blocks, out)
    return out.view(np.uint8).reshape(*x.shape[:-1], -1)  # (..., row_bytes)


def _f32(x, out):
    out["x"] = x


def _f16(x, out):
    out["x"] = x.astype(np.float16)


def _bf16(x, out):
    out["x"] = bf16_bits(x)


def _inverse(d):
    """1/d where d is not 0, else 0: float32."""
    with np.errstate(divide="ignore"):
        return np.where(d != 0, F32(1) / d, F32(0))


def _pack_nibbles(codes):
    """Codes 0–15 (..., 2n) → bytes (..., n): the first half low, the second half high."""
    half = codes.shape[-1] // 2
    return codes[..., :half] | codes[..., half:] << 4  # (..., n)


def _signed_extreme(x):
    """The value of largest size in each block, with its sign: (..., n_block)."""
    at = np.abs(x).argmax(-1)[..., None]  # (..., n_block, 1): the first of the largest
    return np.take_along_axis(x, at, -1)[..., 0]  # (..., n_block)


def _truncated(scaled, offset, top):
    """floor(scaled + offset) for positive sums, at most `top`, as uint8."""
    return np.minimum((scaled + F32(offset)).astype(np.int32), top).astype(np.uint8)


def _symmetric(x, out, top, store):
    """Q4_0 and Q5_0: the extreme becomes code 0, so its sign decides the scale's."""
    half = (top + 1) // 2
    d = _signed_extreme(x) / F32(-half)  # (..., n_block)
    scaled = x * _inverse(d)[..., None]  # (..., n_block, 32)
    out["d"][..., 0] = d.astype(np.float16)
    store(_truncated(scaled, half + 0.5, top), out)


def _affine(x, out, top, store):
    """Q4_1 and Q5_1: code 0 is the least value, the top code the greatest."""
    least = x.min(-1)  # (..., n_block)
    d = (x.max(-1) - least) / F32(top)  # (..., n_block)
    scaled = (x - least[..., None]) * _inverse(d)[..., None]  # (..., n_block, 32)
    out["d"][..., 0], out["m"][..., 0] = d.astype(np.float16), least.astype(np.float16)
    store(_truncated(scaled, 0.5, top), out)


def _store4(codes, out):
    out["qs"] = _pack_nibbles(codes)


def _store5(codes, out):
    out["qs"] = _pack_nibbles(codes & 15)
    bits = (codes >> 4).astype(np.uint32) << np.arange(32, dtype=np.uint32)  # (..., 32)
    out["qh"][..., 0] = bits.sum(-1, dtype=np.uint32)


def _q8_0(x, out):
    d = np.abs(x).max(-1) / F32(127)  # (..., n_block)
    out["d"][..., 0] = d.astype(np.float16)
    out["qs"] = half_away(x * _inverse(d)[..., None]).astype(np.int8)


ENCODERS = {
    "F32": _f32,
    "F16": _f16,
    "BF16": _bf16,
    "Q4_0": lambda x, out: _symmetric(x, out, 15, _store4),
    "Q4_1": lambda x, out: _affine(x, out, 15, _store4),
    "Q5_0": lambda x, out: _symmetric(x, out, 31, _store5),
    "Q5_1": lambda x, out: _affine(x, out, 31, _store5),
    "Q8_0": _q8_0,
}
MADE = (*ENCODERS, "Q4_K", "Q6_K")
