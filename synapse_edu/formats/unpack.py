"""Blocks → integer codes and scales, as the dot products need them."""

from dataclasses import dataclass

import numpy as np

from ..errors import BadArgument
from .layout import format_of

# IQ4_NL and IQ4_XS: the sixteen levels, denser near zero, as weights are.
IQ4_LEVELS = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8
)  # (16,)
# MXFP4: twice the values of a 4-bit float with two exponent bits and one fraction bit.
MXFP4_LEVELS = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)  # (16,)


@dataclass(frozen=True)
class Blocks:
    """Rows taken apart.  A value is ``d·scale·code``, plus ``m``, or minus ``dmin·min``.

    Attributes
    ----------
    codes : ndarray of int8, shape (..., n_block, block)
    d : ndarray of float32, shape (..., n_block)
    m : ndarray of float32, shape (..., n_block), or None
        Q4_1 and Q5_1: what code 0 stands for.
    scales, mins : ndarray of int32, shape (..., n_block, n_sub), or None
        Integer scale and minimum of each sub-block.
    dmin : ndarray of float32, shape (..., n_block), or None
    """

    codes: np.ndarray
    d: np.ndarray
    m: np.ndarray | None = None
    scales: np.ndarray | None = None
    dmin: np.ndarray | None = None
    mins: np.ndarray | None = None

    @property
    def scaled(self):
        """scale · code of every element, exactly: int16, shape (..., n_block, block)."""
        per_sub = self.codes.reshape(*self.scales.shape, -1)  # (..., n_block, n_sub, block / n_sub)
        return (per_sub * self.scales[..., None].astype(np.int16)).reshape(self.codes.shape)


def blocks_of(raw, format):
    """View bytes (..., row_bytes) as the format's structure, shape (..., n_block)."""
    known = format_of(format)
    raw = np.ascontiguousarray(raw)  # (..., row_bytes)
    if raw.dtype != np.uint8 or raw.ndim == 0 or raw.shape[-1] % known.nbytes:
        raise BadArgument(
            f"{format}: rows must be bytes, a multiple of {known.nbytes}; "
            f"these are {raw.dtype} of shape {raw.shape}."
        )
    return raw.view(known.dtype)


def unpack(raw, format):
    """Take rows of a quantized format apart.

    Parameters
    ----------
    raw : ndarray of uint8, shape (..., row_bytes)
    format : str
        A format with blocks; F32, F16 and BF16 have no codes.

    Returns
    -------
    Blocks
    """
    if format not in UNPACKERS:
        raise BadArgument(f"{format} has no integer codes to unpack.")
    return UNPACKERS[format](blocks_of(raw, format))


def _half(field):
    """A float16 field of one element as float32, exactly.  Shape (..., n_block)."""
    with np.errstate(invalid="ignore"):  # a signalling NaN in a damaged file
        return field[..., 0].astype(np.float32)  # (..., n_block)


def _nibbles(qs):
    """Low nibbles, then high nibbles: shape (..., 2·n) from bytes (..., n)."""
    return np.concatenate([qs & 15, qs >> 4], -1)  # (..., 2n)


def _fifth_bits(qh):
    """Bit j of each 32-bit word as 0 or 16: shape (..., n_block, 32)."""
    return ((qh >> np.arange(32, dtype=np.uint32)) & 1).astype(np.uint8) << 4  # (..., 32)


def _q4_0(b):
    return Blocks(_nibbles(b["qs"]).view(np.int8) - np.int8(8), _half(b["d"]))


def _q4_1(b):
    return Blocks(_nibbles(b["qs"]).view(np.int8), _half(b["d"]), m=_half(b["m"]))


def _q5_0(b):
    codes = _nibbles(b["qs"]) | _fifth_bits(b["qh"])  # (..., 32)
    return Blocks(codes.view(np.int8) - np.int8(16), _half(b["d"]))


def _q5_1(b):
    codes = _nibbles(b["qs"]) | _fifth_bits(b["qh"])  # (..., 32)
    return Blocks(codes.view(np.int8), _half(b["d"]), m=_half(b["m"]))


def _q8_0(b):
    return Blocks(b["qs"], _half(b["d"]))


def _iq4_nl(b):
    return Blocks(IQ4_LEVELS[_nibbles(b["qs"])], _half(b["d"]))


def _mxfp4(b):
    # half of the shared power of two, since the levels are doubled: 2^(e-128)
    d = np.ldexp(np.float32(1), b["e"][..., 0].astype(np.int32) - 128)  # (..., n_block)
    return Blocks(MXFP4_LEVELS[_nibbles(b["qs"])], d)


def _bit_planes(packed, width, n_part):
    """Bytes whose bit groups belong to n_part runs: part k holds bits [k·width, (k+1)·width).

    Shape (..., n_part, n) from (..., n).
    """
    shifts = (np.arange(n_part, dtype=np.uint8) * width)[:, None]  # (n_part, 1)
    return (packed[..., None, :] >> shifts) & np.uint8((1 << width) - 1)  # (..., n_part, n)


def _two_bits(qs):
    """Q2_K, Q3_K: byte l of a half holds elements l, l+32, l+64 and l+96 of 128."""
    halves = qs.reshape(*qs.shape[:-1], 2, 32)  # (..., 2, 32)
    codes = _bit_planes(halves, 2, 4)  # (..., 2, 4, 32)
    return codes.reshape(*qs.shape[:-1], 256)  # (..., 256)


def _q2_k(b):
    scales = b["scales"]
    return Blocks(
        _two_bits(b["qs"]).view(np.int8),
        _half(b["d"]),
        scales=(scales & 15).astype(np.int32),
        dmin=_half(b["dmin"]),
        mins=(scales >> 4).astype(np.int32),
    )


def _q3_k(b):
    low = _two_bits(b["qs"]).view(np.int8)  # (..., 256)
    high = _bit_planes(b["hmask"], 1, 8).reshape(low.shape).view(np.int8)  # (..., 256)
    s = b["scales"]
    nibbles = _nibbles(s[..., :8])  # (..., 16)
    top = _bit_planes(s[..., 8:], 2, 4).reshape(nibbles.shape)  # (..., 16)
    scales = (nibbles | top << 4).astype(np.int32) - 32  # (..., 16)
    return Blocks(low - np.int8(4) * (1 - high), _half(b["d"]), scales=scales)


def six_bit_scales(packed):
    """Eight scales and eight minima of six bits each, from Q4_K's and Q5_K's twelve bytes.

    The first four of each sit in the low six bits of bytes 0–3 and 4–7.  The last four have their
    low nibbles in bytes 8–11 and their top two bits in the spare bits of bytes 0–7.

    Returns
    -------
    scales, mins : ndarray of int32, shape (..., 8)
    """
    a, b, c = packed[..., 0:4], packed[..., 4:8], packed[..., 8:12]  # (..., 4) each
    scales = np.concatenate([a & 63, (c & 15) | (a >> 6) << 4], -1)  # (..., 8)
    mins = np.concatenate([b & 63, (c >> 4) | (b >> 6) << 4], -1)  # (..., 8)
    return scales.astype(np.int32), mins.astype(np.int32)


def _k_nibbles(qs):
    """Q4_K, Q5_K: of each 32 bytes, the low nibbles are 32 elements, the high the next 32."""
    return _nibbles(qs.reshape(*qs.shape[:-1], 4, 32)).reshape(*qs.shape[:-1], 256)


def _q4_k(b):
    scales, mins = six_bit_scales(b["scales"])
    codes = _k_nibbles(b["qs"]).view(np.int8)  # (..., 256)
    return Blocks(codes, _half(b["d"]), scales=scales, dmin=_half(b["dmin"]), mins=mins)


def _q5_k(b):
    scales, mins = six_bit_scales(b["scales"])
    high = _bit_planes(b["qh"], 1, 8).reshape(*b.shape, 256)  # (..., 256)
    codes = (_k_nibbles(b["qs"]) | high << 4).view(np.int8)  # (..., 256)
    return Blocks(codes, _half(b["d"]), scales=scales, dmin=_half(b["dmin"]), mins=mins)


def _q6_k(b):
    ql = b["ql"].reshape(*b.shape, 2, 64)  # (..., 2, 64)
    low = np.concatenate([ql & 15, ql >> 4], -1).reshape(*b.shape, 256)  # (..., 256)
    qh = b["qh"].reshape(*b.shape, 2, 32)  # (..., 2, 32)
    high = _bit_planes(qh, 2, 4).reshape(low.shape)  # (..., 256)
    codes = (low | high << 4).view(np.int8) - np.int8(32)  # (..., 256)
    return Blocks(codes, _half(b["d"]), scales=b["scales"].astype(np.int32))


def _iq4_xs(b):
    low = b["scales_l"][..., None] >> np.array([0, 4], np.uint8) & 15  # (..., 4, 2)
    shifts = 2 * np.arange(8, dtype=np.uint16)  # (8,)
    high = ((b["scales_h"] >> shifts) & 3).astype(np.uint8)  # (..., 8)
    scales = (low.reshape(high.shape) | high << 4).astype(np.int32) - 32  # (..., 8)
    qs = b["qs"].reshape(*b.shape, 8, 16)  # (..., 8, 16)
    codes = IQ4_LEVELS[_nibbles(qs)].reshape(*b.shape, 256)  # (..., 256)
    return Blocks(codes, _half(b["d"]), scales=scales)


UNPACKERS = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "IQ4_NL": _iq4_nl,
    "MXFP4": _mxfp4,
    "Q2_K": _q2_k,
    "Q3_K": _q3_k,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
    "IQ4_XS": _iq4_xs,
}
