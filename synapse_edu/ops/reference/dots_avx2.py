"""Dot products in the order of llama.cpp's AVX2 build, for studying what the order changes.

An AVX2 register holds eight float32 lanes.  Each lane sums its own share, with fused
multiply-adds, and the lanes are joined at the end.  Which elements a lane gets, how many
registers are used, and how they are joined depends on the format, on how many tokens are in the
batch, and on whether the weights were repacked.  This is the reference for that order; it need
not be fast.

Source: ggml-cpu/arch/x86/quants.c, vec.cpp, repack.cpp, llamafile/sgemm.cpp, tiled/.
"""

import numpy as np

from ...formats.activations import quantize, round_to
from ...formats.decode import decode
from ...formats.layout import FORMATS
from ...formats.unpack import unpack
from .dots_portable import integer_dot
from .elementary import fma

F32 = np.float32
REPACKED = ("Q4_0", "Q4_K", "IQ4_NL", "MXFP4")  # interleaved eight rows at a time when loaded
TILED_FROM = 8  # tokens from which K formats take the tiled product
GEMM_GROUP = 4  # tokens that the repacked Q4_K product takes together


def matmul(weight, x, numerics):
    """Product of a Matrix with rows x (n, n_in), as `matmul.matmul`: (n, n_out) float32."""
    known = FORMATS[weight.format]
    if known.is_float or numerics.activations == "float32":
        partner = known.partner if numerics.activations == "partner" else "F32"
        w = decode(weight.raw, weight.format)  # (n_out, n_in)
        kind = weight.format if known.is_float else "F32"
        tiled = len(x) >= 2 and weight.n_in % 8 == 0 and weight.n_out % 4 == 0
        return _floats(w, round_to(x, partner), kind, tiled)
    y = quantize(x, known.partner, "avx2")
    w = unpack(weight.raw, weight.format)
    with np.errstate(over="ignore", invalid="ignore"):
        if numerics.repack and weight.format in REPACKED and weight.n_out % 8 == 0:
            return _repacked(weight.format, w, y)
        if w.scales is None:
            return _simple(weight.format, w, y)
        return _tiled(w, y) if len(x) >= TILED_FROM else _k(weight.format, w, y)


def float_dot(w, x, batch):
    """Attention's products: rows w (m, k) of the cache with rows x (n, k).

    The cache is padded to a multiple of 256 positions, so its length never leaves the tiled path.
    """
    kind = "F16" if w.dtype == np.float16 else "F32"
    return _floats(w.astype(F32), x, kind, batch >= 2 and w.shape[1] % 8 == 0)


def hsum8(a):
    """The lanes of a register joined: (..., 8) → (...)."""
    t = a[..., 4:] + a[..., :4]  # (..., 4)
    return (t[..., 0] + t[..., 2]) + (t[..., 1] + t[..., 3])


# --- float rows --------------------------------------------------------------------------------
def _floats(w, x, kind, tiled):
    out = np.empty((len(x), len(w)), F32)  # (n, m)
    with np.errstate(over="ignore", invalid="ignore"):
        for i, row in enumerate(x):
            out[i] = _one_register(w, row) if tiled else _four_registers(w, row, kind)
    return out


def _one_register(w, x):
    """The tiled product: one register, eight elements at a step."""
    acc = np.zeros((len(w), 8), F32)  # (m, 8)
    for k in range(0, w.shape[1], 8):
        acc = fma(w[:, k : k + 8], x[k : k + 8], acc)
    return hsum8(acc)


def _four_registers(w, x, kind):
    """The plain product: four registers, 32 elements at a step, then what is left over."""
    k = w.shape[1]
    whole = k - k % 32
    acc = np.zeros((len(w), 32), F32)  # (m, 4 registers · 8 lanes)
    for at in range(0, whole, 32):
        acc = fma(w[:, at : at + 32], x[at : at + 32], acc)
    a = acc.reshape(-1, 4, 8)  # (m, 4, 8)
    lanes = (a[:, 0] + a[:, 2]) + (a[:, 1] + a[:, 3])  # (m, 8)
    if kind == "BF16":
        s = hsum8(lanes)  # (m,)
    else:
        t = lanes[:, :4] + lanes[:, 4:]  # (m, 4)
        s = (t[:, 0] + t[:, 1]) + (t[:, 2] + t[:, 3])  # (m,)
    if kind != "F32":  # left-over products are added in float64
        terms = np.concatenate([s[:, None], w[:, whole:] * x[whole:]], 1)  # (m, 1 + left)
        return np.add.accumulate(terms, axis=1, dtype=np.float64)[:, -1].astype(F32)
    for j in range(whole, k):
        if j < k - k % 4:  # the compiler vectorised these, and did not fuse them
            s = s + w[:, j] * x[j]
        else:
            s = fma(w[:, j], x[j], s)
    return s


# --- quantized rows ----------------------------------------------------------------------------
def _lane_groups(codes):
    """(rows, n_block, block) → (rows, n_block · 8, block / 8): lane l has the elements whose
    index mod 32 is 4l to 4l + 3."""
    rows, n_block, block = codes.shape
    lanes = codes.reshape(rows, n_block, block // 32, 8, 4).transpose(0, 1, 3, 2, 4)
    return lanes.reshape(rows, n_block * 8, block // 8)


def _lane_sums(a, b):
    """Exact integer dot products by block and lane: (n_block, n, m, 8)."""
    n_block = a.shape[1]
    sums = integer_dot(_lane_groups(a), _lane_groups(b))  # (n_block · 8, n, m)
    return sums.reshape(n_block, 8, *sums.shape[1:]).transpose(0, 2, 3, 1)


def _simple(format, w, y):
    """Formats of 32 elements with one scale."""
    lanes = _lane_sums(w.codes, y.codes)  # (n_block, n, m, 8)
    n_block, n, m, _ = lanes.shape
    d = [w.d[:, i] * y.d[:, i, None] for i in range(n_block)]  # (n, m) each
    if format == "MXFP4" or (format == "IQ4_NL" and n == 1):
        return _even_and_odd(lanes, d)
    acc, extra = np.zeros((n, m, 8), F32), np.zeros((n, m), F32)
    for i in range(n_block):
        acc = fma(d[i][..., None], lanes[i], acc)
        if w.m is not None:
            extra = fma(w.m[:, i], y.s[:, i, None], extra)
    return hsum8(acc) if w.m is None else hsum8(acc) + extra


def _even_and_odd(lanes, d):
    """One register for even blocks, one for odd ones; a last single block is added plainly.

    That last step is C, not intrinsics, and whether a compiler fuses it is its choice: the
    recorded build did not, and another build with other options did.
    """
    n_block, n, m, _ = lanes.shape
    acc = np.zeros((2, n, m, 8), F32)  # (even and odd, n, m, 8)
    for i in range(n_block - n_block % 2):
        acc[i % 2] = fma(d[i][..., None], lanes[i], acc[i % 2])
    s = hsum8(acc[0] + acc[1])  # (n, m)
    return s + d[-1] * lanes[-1].sum(-1) if n_block % 2 else s


def _k(format, w, y):
    """K formats, fewer than eight tokens: one register, one fused step a block of 256."""
    lanes = _q6_k_lanes(w, y) if format == "Q6_K" else _lane_sums(w.scaled, y.codes)
    n_block, n, m, _ = lanes.shape
    acc = np.zeros((n, m, 8), F32)  # (n, m, 8)
    mins = {"Q4_K": 4, "Q5_K": 1}.get(format, 0)
    extra = np.zeros((n, m, max(1, mins)), F32)  # (n, m, lanes of the minima)
    for i in range(n_block):
        yd = y.d[:, i, None]  # (n, 1)
        if w.mins is not None:
            dmin = -(yd * w.dmin[:, i])[..., None]  # (n, m, 1)
            if format == "Q2_K":
                acc = fma(dmin, _min_lanes(w, y, i, 8), acc)
            else:
                extra = fma(dmin, _min_lanes(w, y, i, mins), extra)
        acc = fma((yd * w.d[:, i])[..., None], lanes[i], acc)
    s = hsum8(acc)  # (n, m)
    if format == "Q4_K":
        return s + ((extra[..., 0] + extra[..., 2]) + (extra[..., 1] + extra[..., 3]))
    return s + extra[..., 0] if format == "Q5_K" else s


def _q6_k_lanes(w, y):
    """Q6_K is stored as codes 0 to 63.  The 32 is taken off by sub-block sums, and lane l takes
    those of sub-blocks 2l and 2l + 1, which are not the elements it has: (n_block, n, m, 8)."""
    lanes = _lane_sums(w.scaled, y.codes).astype(np.float64)  # (n_block, n, m, 8)
    n_block = lanes.shape[0]
    ones = np.ones_like(w.codes).reshape(*w.scales.shape, -1) * w.scales[..., None].astype(np.int16)
    own = _lane_sums(ones.reshape(w.codes.shape), y.codes)  # (n_block, n, m, 8): of the lane
    sums = y.sums[:, None].astype(np.float64) * w.scales  # (n, m, n_block, 16)
    pair = sums.reshape(*sums.shape[:2], n_block, 8, 2).sum(-1).transpose(2, 0, 1, 3)
    return (lanes + 32 * (own - pair)).astype(F32)


def _min_lanes(w, y, i, n_lanes):
    """Exact sums of minimum · activation sums of block i, cut into lanes: (n, m, n_lanes)."""
    mins = w.mins[:, i].astype(np.float64)  # (m, n_sub)
    sums = y.sums[:, i].reshape(len(y.sums), mins.shape[1], -1).sum(-1)  # (n, n_sub)
    terms = sums[:, None].astype(np.float64) * mins  # (n, m, n_sub), exact
    return terms.reshape(*terms.shape[:2], n_lanes, -1).sum(-1).astype(F32)


def _tiled(w, y):
    """K formats, eight tokens or more: whole blocks, the minimum fused into each."""
    isum = integer_dot64(w.scaled, y.codes)  # (n_block, n, m)
    s = np.zeros(isum.shape[1:], F32)  # (n, m)
    for i in range(isum.shape[0]):
        term = w.d[:, i] * isum[i]  # (n, m)
        if w.mins is not None:
            term = fma(-w.dmin[:, i], _min_lanes(w, y, i, 1)[..., 0], term)
        s = fma(term, y.d[:, i, None], s)
    return s


def integer_dot64(a, b):
    """As `integer_dot`, for sums that need more than 24 bits; rounded to float32 once."""
    left = b.transpose(1, 0, 2).astype(np.float64)  # (g, n, k)
    right = a.transpose(1, 2, 0).astype(np.float64)  # (g, k, m)
    return (left @ right).astype(F32)  # (g, n, m)


# --- repacked rows -----------------------------------------------------------------------------
def _repacked(format, w, y):
    """One float sum for each output, blocks in order."""
    if format == "Q4_K":
        n = len(y.codes)
        together = n - n % GEMM_GROUP
        parts = [_repacked_q4_k(w, _rows(y, slice(0, together)), 4)] if together else []
        if n > together:
            parts.append(_repacked_q4_k(w, _rows(y, slice(together, n)), 1))
        return np.concatenate(parts)  # (n, m)
    isum = integer_dot(w.codes, y.codes)  # (n_block, n, m)
    s = np.zeros(isum.shape[1:], F32)  # (n, m)
    for i in range(isum.shape[0]):
        s = fma(isum[i], w.d[:, i] * y.d[:, i, None], s)
    return s


def _rows(y, index):
    return type(y)(y.partner, y.codes[index], y.d[index], sums=y.sums[index])


def _repacked_q4_k(w, y, n_parts):
    """Q4_K: a chain for the products and one for the minima; `n_parts` steps a block."""
    m, n_block, _ = w.codes.shape
    a = w.scaled.reshape(m, n_block * n_parts, -1)  # (m, n_block · n_parts, elements)
    b = y.codes.reshape(len(y.codes), n_block * n_parts, -1)  # (n, n_block · n_parts, elements)
    isum = integer_dot64(a, b)  # (n_block · n_parts, n, m)
    s, least = np.zeros(isum.shape[1:], F32), np.zeros(isum.shape[1:], F32)  # (n, m) each
    for i in range(n_block):
        yd = y.d[:, i, None]  # (n, 1)
        d, dmin = w.d[:, i] * yd, w.dmin[:, i] * yd  # (n, m) each
        minima = _min_lanes(w, y, i, n_parts)  # (n, m, n_parts)
        for part in range(n_parts):
            s = fma(isum[i * n_parts + part], d, s)
            least = fma(minima[..., part], dmin, least)
    return s - least
