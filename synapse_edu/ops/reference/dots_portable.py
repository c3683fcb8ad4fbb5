"""Dot products in the order of llama.cpp's portable C code.

Float rows: one float64 sum, left to right, of products rounded to float32.  Quantized rows: the
integer dot product of each block is exact, and the blocks are added left to right in float32.
So an integer dot product may be computed in any way that is exact: here by a float32 matrix
product whose sums stay below 2^24, where float32 still holds every integer.

Source: ggml-cpu/quants.c, ``ggml_vec_dot_*_generic``; vec.cpp, ``ggml_vec_dot_f32``.
"""

import numpy as np

from ...formats.decode import values

F32 = np.float32
WIDE = 1024  # products from which a step of all sums at once beats one sum after the other


def float_dot(w, x, exact=False):
    """Products of float rows w (m, k) with float rows x (n, k): float32 of shape (n, m).

    `exact` keeps the products in float64, unrounded (the order ``"float64"``).
    """
    kind = np.float64 if exact else F32  # of each product, before it is added
    with np.errstate(over="ignore", invalid="ignore"):
        if len(x) * len(w) >= WIDE:
            return _all_sums_at_once(w.T.astype(kind, order="C"), x.T.astype(kind, order="C"))
        out = np.empty((len(x), len(w)), F32)  # (n, m)
        for i, row in enumerate(x):
            out[i] = _sum_in_order(np.multiply(w, row, dtype=kind))  # (m,) from (m, k)
    return out


def _all_sums_at_once(w, x):
    """The same sums, taken a column at a step: float32 (n, m) from w (k, m) and x (k, n)."""
    sums = np.zeros((x.shape[1], w.shape[1]))  # (n, m), float64
    for column, factors in zip(w, x, strict=True):
        sums += factors[:, None] * column  # (n, m)
    return sums.astype(F32)


def _sum_in_order(terms):
    """Float64 sums along the last axis, left to right: shape (m,) from (m, k).

    NumPy's `sum` adds in pairs; `accumulate` cannot, because it gives every partial sum.  A sum
    in C starts from 0, so one of nothing but negative zeros is +0: hence the 0 added here.
    """
    if terms.shape[-1] == 0:
        return np.zeros(terms.shape[:-1])  # (m,)
    return np.add.accumulate(terms, axis=-1, dtype=np.float64)[..., -1] + 0.0  # (m,)


def blocks_dot(format, w, y):
    """Products of quantized rows.

    Parameters
    ----------
    format : str
    w : Blocks
        Weight rows taken apart, m rows.
    y : Activations
        n rows in the partner format.

    Returns
    -------
    ndarray of float32, shape (n, m)
    """
    with np.errstate(over="ignore", invalid="ignore"):  # inf and NaN scales of a damaged file
        if w.scales is None:
            return _simple(format, w, y)
        return {"Q2_K": _q2_k, "IQ4_XS": _iq4_xs}.get(format, _lanes)(w, y)


def integer_dot(a, b):
    """Exact integer products of groups: (g, n, m) from a (m, g, k) and b (n, g, k).

    `a` may already hold scale · code.  Every sum here stays below 2^24 in size: 32 codes of a
    Q6_K lane reach 32 · 4096 · 127 = 16 646 144.
    """
    left = b.astype(F32).transpose(1, 0, 2)  # (g, n, k)
    right = a.astype(F32).transpose(1, 2, 0)  # (g, k, m)
    return left @ right  # (g, n, m), integers


def _simple(format, w, y):
    """Formats of 32 elements with one scale: one rounded term a block."""
    isum = integer_dot(w.codes, y.codes)  # (n_block, n, m)
    s = np.zeros(isum.shape[1:], F32)  # (n, m)
    for i in range(isum.shape[0]):
        dx, dy = w.d[:, i], y.d[:, i, None]  # (m,), (n, 1)
        if format == "Q4_0":
            s += (isum[i] * dx) * dy
        elif w.m is not None:
            s += (dx * dy) * isum[i] + w.m[:, i] * y.s[:, i, None]
        else:
            s += (dx * dy) * isum[i]
    return s


def _min_sums(w, y):
    """Exact sums of minimum · activation codes: (n, m, n_block), as float32 integers."""
    per_sub = w.mins.shape[-1]
    sums = y.sums.reshape(*y.sums.shape[:2], per_sub, -1).sum(-1)  # (n, n_block, n_sub)
    return integer_dot(w.mins, sums)  # (n_block, n, m)


def _q2_k(w, y):
    """Q2_K: one term a block, the minima taken off inside it."""
    isum = integer_dot(w.scaled, y.codes)  # (n_block, n, m)
    msum = _min_sums(w, y)  # (n_block, n, m)
    s = np.zeros(isum.shape[1:], F32)  # (n, m)
    for i in range(isum.shape[0]):
        yd = y.d[:, i, None]  # (n, 1)
        s += (yd * w.d[:, i]) * isum[i] - (yd * w.dmin[:, i]) * msum[i]
    return s


def _lanes(w, y):
    """Q3_K to Q6_K: eight float sums, one for each element index mod 8, joined at the end."""
    m, n_block, _ = w.codes.shape
    # element e of a block goes to lane e % 8; a group is one lane of one block
    a = w.scaled.reshape(m, n_block, 32, 8).swapaxes(2, 3).reshape(m, n_block * 8, 32)
    b = y.codes.reshape(-1, n_block, 32, 8).swapaxes(2, 3).reshape(-1, n_block * 8, 32)
    lanes = integer_dot(a, b).reshape(n_block, 8, -1, m)  # (n_block, 8, n, m)
    sums = np.zeros(lanes.shape[1:], F32)  # (8, n, m)
    s = np.zeros(lanes.shape[2:], F32)  # (n, m)
    msum = _min_sums(w, y) if w.mins is not None else None  # (n_block, n, m)
    for i in range(n_block):
        yd = y.d[:, i, None]  # (n, 1)
        sums += (w.d[:, i] * yd) * lanes[i]
        if msum is not None:
            s -= (w.dmin[:, i] * yd) * msum[i]
    for lane in range(8):
        s += sums[lane]
    return s


def _iq4_xs(w, y):
    """IQ4_XS: one rounded term for each sub-block of 32."""
    m, n_block, _ = w.codes.shape
    a = w.codes.reshape(m, n_block * 8, 32)  # (m, n_block · 8, 32)
    b = y.codes.reshape(-1, n_block * 8, 32)  # (n, n_block · 8, 32)
    isum = integer_dot(a, b)  # (n_block · 8, n, m)
    s = np.zeros(isum.shape[1:], F32)  # (n, m)
    for i in range(isum.shape[0]):
        block, sub = divmod(i, 8)
        d = w.d[:, block] * y.d[:, block, None]  # (n, m)
        s += (d * w.scales[:, block, sub].astype(F32)) * isum[i]
    return s


def float64_blocks(w, y):
    """One sequential float64 sum over all elements of decoded weights and activations.

    For experiments that keep the activations rounded but change the order of summation.
    """
    x = y.codes.astype(F32) * y.d[..., None]  # (n, n_block, block)
    with np.errstate(over="ignore", invalid="ignore"):
        weights = values(w)  # (m, n_block, block)
    return float_dot(weights.reshape(len(weights), -1), x.reshape(len(x), -1), exact=True)
