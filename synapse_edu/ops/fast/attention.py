"""Attention in compiled code: the twin of ``ops.reference.attention``.

The work on one key/value head is cut into three parts, so that threads can share it whatever the
number of heads: scores by ranges of positions, soft-max by rows, values by elements of the head.
A *row* is one query head of one token.  Rows lie in units of four, a register of float64.
"""

import numpy as np
from numba import float32, float64, int32, uint32

from ..reference import attention as reference
from .attention_kernels import LANES, MOST_BLOCKS
from .attention_products import BLOCKS, FEW, N_FEW, VALUES, WIDTH, addresses, kind_of
from .elementary import exp_exact_one, exp_poly_one
from .feedforward import EXACT, exp_kind
from .half import bits_of, float_of, half_round
from .jit import inner, njit
from .kernels.calls import call_matmat
from .memory import aligned_empty, f32_at, f64_at

TILE = 128  # positions whose values stay in the first cache while every row takes them
MOST_ROWS = LANES * MOST_BLOCKS
ONE = np.float32(1)
temperature = reference.temperature  # one product a query; there is nothing to compile


@inner
def _largest(w):
    """The largest number, or NaN if there is one.

    As integers whose order is that of the floats, chosen by value: LLVM lays that into registers.
    """
    top, size = int32(-(2**31)), int32(0)
    for k in range(w.size):
        i = int32(bits_of(w[k]))
        without_sign = int32(i & int32(0x7FFFFFFF))
        size = without_sign if without_sign > size else size
        i = int32(i ^ int32((i >> int32(31)) & int32(0x7FFFFFFF)))
        top = i if i > top else top
    top = int32(top ^ int32((top >> int32(31)) & int32(0x7FFFFFFF)))
    return float32(np.nan) if size > int32(0x7F800000) else float_of(uint32(top))


@inner
def _exponentials(w, top, kind):
    """e^(w - top) in place; their sum in float64, by groups of four as ggml takes them."""
    total, n = 0.0, w.size
    if kind == EXACT:
        for i in range(n):
            w[i] = exp_exact_one(w[i] - top)
            total += float64(w[i])
        return total
    for i in range(n):
        w[i] = exp_poly_one(w[i] - top)
    whole = n - n % 4
    for i in range(0, whole, 4):
        total += float64((w[i] + w[i + 1]) + (w[i + 2] + w[i + 3]))
    if n % 4:  # the cache is longer than the tokens in it: masked positions weigh 0
        a, b, c = w[whole], float32(0), float32(0)
        b = w[whole + 1] if n % 4 > 1 else b
        c = w[whole + 2] if n % 4 > 2 else c
        total += float64((a + b) + (c + float32(0)))
    return total


@inner
def softmax_row(s, n, n_all, scale, kind, to_half):
    """Scores → probabilities in place: `n` visible positions of `n_all`; the rest weigh 0.

    ggml: ``ggml_compute_forward_soft_max_f32`` (ops.cpp).
    """
    w = f32_at(s, n)
    for i in range(n):
        w[i] = w[i] * scale
    total = _exponentials(w, _largest(w), kind)
    factor = float32(1.0 / total)
    for i in range(n):
        w[i] = half_round(w[i] * factor) if to_half else w[i] * factor
    f32_at(s, n_all)[n:] = float32(0) * factor  # 0, or NaN as everything in the row


@inner
def gather_queries(q, token_stride, rows, n_group, head_dim, n_block, out, half, wide):
    """Queries as `scores` reads them: (head_dim, 4·n_block) float64 or float32, rounded if `half`.

    `rows` are the first and the last+1; row ``t·n_group + h`` is head h, of those that share the
    key/value head, of token t.  What is left of the registers is 0.
    """
    n_rows, (first, last) = LANES * n_block, rows
    o64, o32 = f64_at(out, head_dim * n_rows), f32_at(out, head_dim * n_rows)
    for r in range(n_rows):
        here = first + r < last
        t, h = ((first + r) // n_group, (first + r) % n_group) if here else (0, 0)
        row = f32_at(q + t * token_stride + 4 * h * head_dim, head_dim)
        for e in range(head_dim):
            x = row[e] if here else float32(0)
            x = half_round(x) if half else x
            if wide:
                o64[e * n_rows + r] = float64(x)
            else:
                o32[e * n_rows + r] = x


@inner
def score_rows(table, k, q, s, head_dim, p0, p1, stride, s_stride, n_rows, scratch):
    """Scores of up to twelve rows; `table` holds the addresses of the kernels."""
    kernel = table[FEW] if n_rows <= table[N_FEW] else table[BLOCKS + (n_rows - 1) // LANES]
    call_matmat(kernel, k, q, s, head_dim, p0, p1, stride, s_stride, scratch)


@inner
def weigh_rows(table, v, p, s_stride, out, out_token, places, n_group, shape, work, wide):
    """Weighted values of all rows for some elements of the head.

    Parameters
    ----------
    table : addresses of the kernels
    v, p : addresses of the head's first value, and of the probabilities (rows, s_stride)
    out, out_token : where token 0's heads lie; bytes from one token to the next
    places : (first, last) element, multiples of the kernels' width or the end of the head
    n_group : heads of a token that share the values
    shape : (n_rows, n_kv, head_dim, stride of the values in bytes)
    work : scratch for sums (n_rows, head_dim) and one tile of probabilities
    wide : whether probabilities are taken in float64
    """
    n_rows, n_kv, head_dim, stride = shape
    first, last = places
    sums = f64_at(work, n_rows * head_dim)
    sums[:] = 0
    tile = work + 8 * n_rows * head_dim
    for p0 in range(0, n_kv, TILE):
        n = min(TILE, n_kv - p0)
        for r in range(n_rows):
            _copy(p + 4 * (r * s_stride + p0), tile, r * TILE, n, wide)
        for r in range(0, n_rows, LANES):
            value_rows = table[VALUES - 1 + min(LANES, n_rows - r)]
            at = tile + (8 if wide else 4) * r * TILE
            to = work + 8 * r * head_dim
            for e in range(first, last, table[WIDTH]):
                call_matmat(value_rows, v, at, to, head_dim, p0, p0 + n, stride, TILE, e)
    for r in range(n_rows):
        row = out + (r // n_group) * out_token + 4 * (r % n_group) * head_dim
        target = f32_at(row, head_dim)
        for e in range(first, last):
            target[e] = float32(sums[r * head_dim + e])


@inner
def _copy(source, target, start, n, wide):
    x = f32_at(source, n)
    if wide:
        y = f64_at(target + 8 * start, n)
        for i in range(n):
            y[i] = float64(x[i])
    else:
        z = f32_at(target + 4 * start, n)
        for i in range(n):
            z[i] = x[i]


# --- over arrays: the reference's functions -----------------------------------------------------
@njit
def _scores(table, q, k, out, s, shape, strides, half, wide, work):
    n, n_head_kv, n_group, n_kv, head_dim, n_pad = shape
    k_head, k_row = strides
    queries = work + 64 * head_dim
    for t in range(n):
        for g in range(n_head_kv):
            heads = (t * n_head_kv + g) * n_group
            for first in range(0, n_group, MOST_ROWS):
                last = min(first + MOST_ROWS, n_group)
                n_block = -(-(last - first) // LANES)
                gather_queries(
                    q + 4 * heads * head_dim, 0, (first, last), n_group, head_dim, n_block,
                    queries, half, wide,
                )  # fmt: skip
                score_rows(
                    table, k + g * k_head, queries, s, head_dim, 0, n_kv, k_row, n_pad,
                    last - first, work,
                )  # fmt: skip
                for r in range(last - first):
                    row = f32_at(out + 4 * (heads + first + r) * n_kv, n_kv)
                    row[:] = f32_at(s + 4 * r * n_pad, n_kv)


def scores(q, keys, numerics):
    """Dot product of every query head with every cached key: (n, n_head, n_kv) float32."""
    kind, n_pad = kind_of(numerics), -(-keys.shape[1] // 8) * 8
    q, keys = np.ascontiguousarray(q, np.float32), _rows_contiguous(keys)
    n, n_head, head_dim = q.shape
    n_head_kv, n_kv, _ = keys.shape
    n_group = n_head // n_head_kv
    out = np.empty((n, n_head, n_kv), np.float32)  # (n, n_head, n_kv)
    s = aligned_empty(4 * MOST_ROWS * (n_pad + 8))
    work = aligned_empty(8 * head_dim * (8 + MOST_ROWS))
    shape = (n, n_head_kv, n_group, n_kv, head_dim, n_pad)
    _scores(
        addresses(kind, head_dim, n_group), *(x.ctypes.data for x in (q, keys, out, s)), shape,
        keys.strides[:2], kind == "half", kind != "rounded", work.ctypes.data,
    )  # fmt: skip
    return out


def _rows_contiguous(x):
    """The cache's heads and positions may lie apart; the elements of a head may not."""
    return x if x.strides[2] == x.itemsize else np.ascontiguousarray(x)


@njit
def _softmax(p, n_visible, heads, n_kv, scale, kind):
    for row in range(n_visible.size * heads):
        softmax_row(p + 4 * row * n_kv, n_visible[row // heads], n_kv, scale, kind, False)


def softmax(scores, numerics, scale=1.0, visible=None):
    """Scale, mask, exponentiate, and divide by the sum: (n, heads, n_kv) float32."""
    p = np.array(scores, np.float32, order="C")  # (n, heads, n_kv)
    n, heads, n_kv = p.shape
    seen = np.full(n, n_kv) if visible is None else np.minimum(visible, n_kv)  # (n,)
    kind = exp_kind(numerics)
    _softmax(p.ctypes.data, seen.astype(np.int64), heads, n_kv, np.float32(scale), kind)
    return p


@njit
def _values(table, v, p, out, shape, strides, n_pad, half, wide, work):
    n, n_head_kv, n_group, n_kv, head_dim = shape
    v_head, v_row = strides
    rounded = work + 8 * n_group * (head_dim + TILE)
    for t in range(n):
        for g in range(n_head_kv):
            heads = (t * n_head_kv + g) * n_group
            for r in range(n_group):
                source = f32_at(p + 4 * (heads + r) * n_kv, n_kv)
                target = f32_at(rounded + 4 * r * n_pad, n_kv)
                for i in range(n_kv):
                    target[i] = half_round(source[i]) if half else source[i]
            weigh_rows(
                table, v + g * v_head, rounded, n_pad, out + 4 * heads * head_dim, 0,
                (0, head_dim), n_group, (n_group, n_kv, head_dim, v_row), work, wide,
            )  # fmt: skip


def weighted_values(probabilities, values, numerics):
    """Average of the cached values, weighted by the probabilities: (n, n_head, head_dim)."""
    kind = kind_of(numerics)
    p, values = np.ascontiguousarray(probabilities, np.float32), _rows_contiguous(values)
    (n, n_head, n_kv), (n_head_kv, _, head_dim) = p.shape, values.shape
    n_group, n_pad = n_head // n_head_kv, -(-n_kv // 8) * 8
    out = np.empty((n, n_head, head_dim), np.float32)  # (n, n_head, head_dim)
    work = aligned_empty(n_group * (8 * (head_dim + TILE) + 4 * n_pad) + 64)
    _values(
        addresses(kind, head_dim, n_group), *(x.ctypes.data for x in (values, p, out)),
        (n, n_head_kv, n_group, n_kv, head_dim), values.strides[:2], n_pad, kind == "half",
        kind != "rounded", work.ctypes.data,
    )  # fmt: skip
    return out
