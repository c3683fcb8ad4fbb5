"""float32 → Q4_K and Q6_K: sub-blocks whose scales are searched, then rounded themselves.

Both formats quantize twice.  First each sub-block gets the scale that fits it best: a number of
candidates is tried, the codes of each are formed, and the scale that then minimises the weighted
squared error is found in closed form.  Then the scales are rounded to small integers under one
float scale, and the codes are formed again.

All sums are float32, left to right, and for finite input the bytes are ggml's
(``quantize_row_q4_K_ref`` with ``make_qkx2_quants``, ``quantize_row_q6_K_ref`` with
``make_qx_quants``, ggml-quants.c).
"""

import numpy as np

F32 = np.float32
TINY = F32(1e-15)  # sub-blocks below this are all zero


def _sum(terms):
    """Float32 sum along the last axis, left to right, starting from 0: shape (...)."""
    return np.add.accumulate(terms, axis=-1, dtype=F32)[..., -1]


def _nearest(x, low, high):
    """Nearest integers, ties to even, within [low, high], as float32; NaN becomes `high`."""
    return np.fmax(np.fmin(np.rint(x), F32(high)), F32(low))


# --- Q4_K: code · scale − minimum --------------------------------------------------------------
def fit_affine(x, weights, top):
    """The scale and minimum that fit sub-blocks best with codes 0 … top.

    Parameters
    ----------
    x, weights : ndarray of float32, shape (..., n)
        Values, and how much the error of each counts.
    top : int

    Returns
    -------
    scale, minimum : ndarray of float32, shape (...)
        A value is scale · code − minimum; the minimum is not negative.
    codes : ndarray of float32, shape (..., n)
    """
    w_sum, x_sum = _sum(weights), _sum(weights * x)  # (...) each
    low, most = np.minimum(x.min(-1), F32(0)), x.max(-1)  # (...) each
    flat = most == low

    def codes_of(numerator, low):
        inverse = F32(numerator) / np.where(flat, F32(1), most - low)  # (...)
        return inverse, _nearest(inverse[..., None] * (x - low[..., None]), 0, top)

    def error(scale, low, codes):
        off = scale[..., None] * codes + low[..., None] - x  # (..., n)
        return _sum(weights * (off * off))

    inverse, codes = codes_of(top, low)  # (...), (..., n)
    scale = F32(1) / inverse  # (...)
    best = error(scale, low, codes)  # (...)
    for i in range(21):
        # A candidate that was better has moved `low`, and with it the codes of those after it.
        _, tried = codes_of(F32(-1) + F32(0.1) * F32(i) + F32(top), low)  # (..., n)
        wl = weights * tried  # (..., n)
        l_sum, l2_sum, xl_sum = _sum(wl), _sum(wl * tried), _sum(wl * x)  # (...) each
        d = w_sum * l2_sum - l_sum * l_sum  # (...)
        new_scale = (w_sum * xl_sum - x_sum * l_sum) / d  # (...)
        new_low = (l2_sum * x_sum - l_sum * xl_sum) / d  # (...)
        above = new_low > 0  # a minimum below zero cannot be stored
        new_scale = np.where(above, xl_sum / l2_sum, new_scale)
        new_low = np.where(above, F32(0), new_low)
        found = error(new_scale, new_low, tried)  # (...)
        better = (d > 0) & (found < best)
        best, scale = np.where(better, found, best), np.where(better, new_scale, scale)
        low = np.where(better, new_low, low)
        codes = np.where(better[..., None], tried, codes)
    return np.where(flat, F32(0), scale), -low, np.where(flat[..., None], F32(0), codes)


def q4_k(x, out):
    """Fill Q4_K blocks from x, float32 (..., n_block, 256)."""
    sub = x.reshape(*x.shape[:-1], 8, 32)  # (..., n_block, 8, 32)
    size = np.sqrt(_sum(sub * sub) / F32(32))  # (..., n_block, 8)
    scale, minimum, codes = fit_affine(sub, size[..., None] + np.abs(sub), 15)
    scales, d = _six_bits(scale)
    mins, dmin = _six_bits(minimum)
    out["d"][..., 0], out["dmin"][..., 0] = d, dmin
    step = d.astype(F32)[..., None] * scales  # (..., n_block, 8)
    low = dmin.astype(F32)[..., None] * mins  # (..., n_block, 8)
    again = _nearest((sub + low[..., None]) / step[..., None], 0, 15)
    codes = np.where((step != 0)[..., None], again, codes).astype(np.uint8)
    out["scales"] = pack_six_bit_scales(scales.astype(np.uint8), mins.astype(np.uint8))
    pairs = codes.reshape(*x.shape[:-1], 4, 2, 32)  # (..., n_block, 4, 2, 32)
    packed = pairs[..., 0, :] | pairs[..., 1, :] << 4  # (..., n_block, 4, 32)
    out["qs"] = packed.reshape(*x.shape[:-1], 128)


def _six_bits(values):
    """Positive values (..., 8) as integers 0 … 63 under one float16 scale (...)."""
    most = np.maximum(values.max(-1), F32(0)) + F32(0)  # (...): never -0
    inverse = np.where(most > 0, F32(63) / most, F32(0))  # (...)
    return _nearest(inverse[..., None] * values, 0, 63), (most / F32(63)).astype(np.float16)


def pack_six_bit_scales(scales, mins):
    """Eight scales and eight minima of six bits (..., 8) → twelve bytes (..., 12).

    The inverse of `unpack.six_bit_scales`.
    """
    a = scales[..., :4] | (scales[..., 4:] >> 4) << 6  # (..., 4)
    b = mins[..., :4] | (mins[..., 4:] >> 4) << 6  # (..., 4)
    c = (scales[..., 4:] & 15) | (mins[..., 4:] & 15) << 4  # (..., 4)
    return np.concatenate([a, b, c], -1)


# --- Q6_K: code · scale ------------------------------------------------------------------------
def fit_symmetric(x, half):
    """The scale that fits sub-blocks best with codes −half … half − 1.

    Parameters
    ----------
    x : ndarray of float32, shape (..., n)
        The error of a value counts by its square.
    half : int

    Returns
    -------
    scale : ndarray of float32, shape (...)
    codes : ndarray of float32, shape (..., n)
    """
    at = np.abs(x).argmax(-1)[..., None]  # (..., 1): the first of the largest
    extreme = np.take_along_axis(x, at, -1)[..., 0]  # (...)
    zero = np.abs(extreme) < TINY
    extreme = np.where(zero, F32(1), extreme)
    w = x * x  # (..., n)

    def attempt(shift):
        inverse = -(F32(half) + F32(0.1) * F32(shift)) / extreme  # (...)
        codes = _nearest(inverse[..., None] * x, -half, half - 1)  # (..., n)
        return codes, _sum(w * x * codes), _sum(w * codes * codes)

    codes, lx, l2 = attempt(0)
    scale = np.where(l2 != 0, lx / l2, F32(0))  # (...)
    best = scale * lx  # (...)
    for shift in (*range(-9, 0), *range(1, 10)):
        tried, lx, l2 = attempt(shift)
        better = (l2 > 0) & (lx * lx > best * l2)
        scale = np.where(better, lx / l2, scale)
        best = np.where(better, scale * lx, best)
        codes = np.where(better[..., None], tried, codes)
    return np.where(zero, F32(0), scale), np.where(zero[..., None], F32(-half), codes)


def q6_k(x, out):
    """Fill Q6_K blocks from x, float32 (..., n_block, 256)."""
    sub = x.reshape(*x.shape[:-1], 16, 16)  # (..., n_block, 16, 16)
    scale, codes = fit_symmetric(sub, 32)
    at = np.abs(scale).argmax(-1)[..., None]  # (..., n_block, 1)
    largest = np.take_along_axis(scale, at, -1)[..., 0]  # (..., n_block)
    empty = np.abs(largest) < TINY
    inverse = F32(-128) / np.where(empty, F32(1), largest)  # (..., n_block)
    d = (F32(1) / inverse).astype(np.float16)  # (..., n_block)
    scales = _nearest(inverse[..., None] * scale, -128, 127)  # (..., n_block, 16)
    step = d.astype(F32)[..., None] * scales  # (..., n_block, 16)
    again = _nearest(sub / step[..., None], -32, 31)
    codes = np.where((step != 0)[..., None], again, codes)
    stored = (codes + 32).astype(np.uint8).reshape(*x.shape[:-1], 2, 4, 32)
    keep = ~empty
    out["d"][..., 0] = np.where(keep, d, np.float16(0))
    out["scales"] = np.where(keep[..., None], scales, 0).astype(np.int8)
    stored = np.where(keep[..., None, None, None], stored, np.uint8(0))
    low = np.concatenate(
        [stored[..., 0, :] & 15 | (stored[..., 2, :] & 15) << 4,
         stored[..., 1, :] & 15 | (stored[..., 3, :] & 15) << 4], -1,
    )  # fmt: skip
    out["ql"] = low.reshape(*x.shape[:-1], 128)
    high = stored >> 4  # (..., n_block, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]  # (4, 1)
    out["qh"] = np.bitwise_or.reduce(high << shifts, axis=-2).reshape(*x.shape[:-1], 64)
