"""A float32 activation row → the format that meets the weights.

llama.cpp rounds the activations of a quantized product to 8 bits, so that the product is one of
integers.  The two builds differ in how they form the reciprocal of the scale and in where a tie
goes.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import BadArgument

F32 = np.float32


@dataclass(frozen=True)
class Activations:
    """Rows of activations in a partner format.

    Attributes
    ----------
    partner : {"Q8_0", "Q8_1", "Q8_K"}
    codes : ndarray of int8, shape (n, n_block, block)
    d : ndarray of float32, shape (n, n_block)
        Scale of each block; a float16 number for Q8_0 and Q8_1, float32 for Q8_K.
    s : ndarray of float32, shape (n, n_block), or None
        Q8_1: d times the sum of the codes, a float16 number.
    sums : ndarray of int32, shape (n, n_block, 16), or None
        Q8_K: sums of sixteen codes each, for the minima of the weights.
    """

    partner: str
    codes: np.ndarray
    d: np.ndarray
    s: np.ndarray | None = None
    sums: np.ndarray | None = None


def round_to(x, partner):
    """Float32 rows rounded to F32, F16 or BF16 (half to even), as float32 again.

    Returns
    -------
    ndarray of float32, the shape of `x`
    """
    x = np.asarray(x, F32)  # (n, k)
    if partner == "F16":
        with np.errstate(over="ignore"):  # beyond 65504 becomes infinite, as in llama.cpp
            return x.astype(np.float16).astype(F32)
    if partner == "BF16":
        return bf16_bits(x).astype(np.uint32).__lshift__(16).view(F32)
    return x


def bf16_bits(x):
    """The upper 16 bits of float32 numbers, rounded half to even; NaNs stay (quiet) NaNs."""
    bits = np.ascontiguousarray(x, F32).view(np.uint32)  # the shape of x
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(x), (bits >> 16) | 64, rounded).astype(np.uint16)


def quantize(x, partner, order="portable"):
    """Quantize activation rows to 8 bits.

    Parameters
    ----------
    x : ndarray of float32, shape (n, k)
    partner : {"Q8_0", "Q8_1", "Q8_K"}
    order : {"portable", "avx2"}
        Which build's rounding: half away from zero with 1/d, or half to even with 127/amax.

    Returns
    -------
    Activations

    Notes
    -----
    ggml: ``quantize_row_q8_0_ref``, ``quantize_row_q8_1_ref``, ``quantize_row_q8_K_ref``
    (ggml-quants.c); arch/x86/quants.c for AVX2.  A NaN makes the products of its row NaN here.  In
    ggml it makes the maximum forget the elements before it, and its code is undefined in C.
    """
    block = 256 if partner == "Q8_K" else 32
    if partner not in ("Q8_0", "Q8_1", "Q8_K"):
        raise BadArgument(f"quantize: {partner!r}; choose Q8_0, Q8_1 or Q8_K.")
    x = np.asarray(x, F32)  # (n, k)
    if x.ndim != 2 or x.shape[1] % block:
        raise BadArgument(f"{partner} takes rows of a multiple of {block} elements, not {x.shape}.")
    x = x.reshape(x.shape[0], x.shape[1] // block, block)  # (n, n_block, block)
    with np.errstate(all="ignore"):  # infinities and NaNs pass through, as in llama.cpp
        return _q8_k(x) if partner == "Q8_K" else _q8(x, partner, order)


def half_away(x):
    """Round to the nearest integer, ties away from zero (C's roundf), for |x| < 2^23."""
    return np.trunc(x + np.copysign(np.nextafter(F32(0.5), F32(0)), x))


def _codes(x):
    """Integers held as floats → int8 within ±127.

    Where the reciprocal of a tiny scale overflowed they are infinite or NaN, and become 0, as the
    lowest byte of x86's conversion does.
    """
    return np.where(np.isfinite(x), x, F32(0)).astype(np.int8)


def _q8(x, partner, order):
    largest = np.abs(x).max(-1)  # (n, n_block)
    d = largest / F32(127)  # (n, n_block)
    if order == "avx2":
        inverse = np.where(largest != 0, F32(127) / largest, F32(0))  # (n, n_block)
        codes = _codes(np.rint(x * inverse[..., None]))  # (n, n_block, 32)
    else:
        inverse = np.where(d != 0, F32(1) / d, F32(0))  # (n, n_block)
        codes = _codes(half_away(x * inverse[..., None]))  # (n, n_block, 32)
    s = None
    if partner == "Q8_1":  # the sum times the scale before it is rounded to float16
        total = codes.sum(-1, dtype=np.int32).astype(F32)  # (n, n_block)
        s = round_to(total * d, "F16")  # (n, n_block)
    return Activations(partner, codes, round_to(d, "F16"), s=s)


def _q8_k(x):
    at = np.abs(x).argmax(-1)[..., None]  # (n, n_block, 1): the first of the largest
    largest = np.take_along_axis(x, at, -1)[..., 0]  # (n, n_block), signed
    zero = largest == 0
    inverse = np.where(zero, F32(0), F32(-127) / largest)  # (n, n_block)
    codes = _codes(np.minimum(np.rint(x * inverse[..., None]), 127))  # (n, n_block, 256)
    d = np.where(zero, F32(0), F32(1) / inverse)  # (n, n_block)
    sums = codes.reshape(*codes.shape[:2], 16, 16).sum(-1, dtype=np.int32)  # (n, n_block, 16)
    return Activations("Q8_K", codes, d, sums=sums)
