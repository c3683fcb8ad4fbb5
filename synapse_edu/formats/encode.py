"""float32 → bytes: how a row is quantized into each format.

The rules are ggml's (``quantize_row_*_ref`` in ggml-quants.c): the same scales, the same codes,
the same bytes, down to values near 1e-37, below which the reciprocal of a scale overflows.  Of the
formats whose encoders search over many candidate scales only Q4_K and Q6_K are made (in
`encode_k`); Q2_K, Q3_K, Q5_K, IQ4_NL, IQ4_XS and MXFP4 are decoded here but not made.
"""

import numpy as np

from ..errors import BadArgument, UnsupportedModel
from . import encode_k
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

    Raises
    ------
    BadArgument
        If a quantized format is given infinities, NaNs, or values so large that the scale of a
        block, a float16, would be infinite.
    UnsupportedModel
        If the format is decoded here but not made.

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
    if format not in ENCODERS:
        raise UnsupportedModel(f"{format} is decoded here but not made; choose {', '.join(MADE)}.")
    blocks = x.reshape(*x.shape[:-1], -1, known.block)  # (..., n_block, block)
    out = np.zeros(blocks.shape[:-1], known.dtype)  # (..., n_block)
    with np.errstate(all="ignore"):  # beyond float16's range becomes infinite, as in ggml
        ENCODERS[format](blocks, out)
    if not known.is_float and not all(np.isfinite(out[f]).all() for f in _scales(known)):
        raise BadArgument(
            f"{format}: values as large as {np.abs(x).max():.4g} need a scale above 65504, the "
            "largest float16; divide the row, or choose F32."
        )
    return out.view(np.uint8).reshape(*x.shape[:-1], -1)  # (..., row_bytes)


def _scales(known):
    """The float16 fields of a block: its scales and minima."""
    return [name for name, type_, _ in known.fields if type_ == "<f2"]


def _f32(x, out):
    out["x"] = x


def _f16(x, out):
    out["x"] = x.astype(np.float16)


def _bf16(x, out):
    out["x"] = bf16_bits(x)


def _inverse(d):
    """1/d where that is a finite number, else 0: float32."""
    inverse = F32(1) / d  # (..., n_block)
    return np.where(np.isfinite(inverse), inverse, F32(0))


def _pack_nibbles(codes):
    """Codes 0–15 (..., 2n) → bytes (..., n): the first half low, the second half high."""
    half = codes.shape[-1] // 2
    return codes[..., :half] | codes[..., half:] << 4  # (..., n)


def _signed_extreme(x):
    """The value of largest size in each block, with its sign: (..., n_block).

    Of equals the first counts.  A block of zeros gives +0, whatever the signs of its zeros.
    """
    return _at(x, np.abs(x).argmax(-1)) + F32(0)


def _at(x, index):
    """One element of each block: (..., n_block) from (..., n_block, 32) and (..., n_block)."""
    return np.take_along_axis(x, index[..., None], -1)[..., 0]  # (..., n_block)


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
    least, most = _at(x, x.argmin(-1)), _at(x, x.argmax(-1))  # (..., n_block): the first of equals
    d = (most - least) / F32(top)  # (..., n_block)
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
    "Q4_K": encode_k.q4_k,
    "Q6_K": encode_k.q6_k,
}
MADE = tuple(ENCODERS)
