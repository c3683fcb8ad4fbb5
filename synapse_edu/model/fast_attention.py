"""Compiled pieces of a pass: keys and values into the cache, and attention, shared by threads."""

from numba import uint32

from ..ops.fast.attention import (
    LANES,
    MOST_ROWS,
    gather_queries,
    score_rows,
    softmax_row,
    weigh_rows,
)
from ..ops.fast.attention_products import SIZE, WIDTH
from ..ops.fast.half import float_of, float_to_half
from ..ops.fast.jit import inner
from ..ops.fast.memory import f32_at, i64_at, u16_at
from ..ops.fast.rope import rotate_row
from . import fast_table as T
from .fast_linear import own, share, wait


@inner
def kernels_of(t):
    return i64_at(t[T.KERNELS], SIZE)


@inner
def _store(row, cache, n, half):
    x = f32_at(row, n)
    if half:
        y = u16_at(cache, n)
        for i in range(n):
            y[i] = float_to_half(x[i])
    else:
        z = f32_at(cache, n)
        for i in range(n):
            z[i] = x[i]


@inner
def _heads_of(t, token, g):
    """Addresses of a token's queries of group g, and of its key and value."""
    row, head = t[T.QKV] + 4 * token * t[T.QKV_STRIDE], 4 * t[T.HEAD_DIM]
    n_group = t[T.N_HEAD] // t[T.N_HEAD_KV]
    return row + g * n_group * head, row + t[T.K_AT] + g * head, row + t[T.V_AT] + g * head


@inner
def turn_and_store(t, number, layer):
    """RoPE, the temperature of queries, and the new rows of the cache; shared by token and head."""
    record = i64_at(layer, 4)
    dim, n_rot, heads = t[T.HEAD_DIM], t[T.N_ROT], t[T.N_HEAD_KV]
    n_group = t[T.N_HEAD] // heads
    for item in range(number, t[T.N] * heads, t[T.N_THREADS]):
        token, g = item // heads, item % heads
        q, k, v = _heads_of(t, token, g)
        cos, sin = t[T.COS] + 2 * token * n_rot, t[T.SIN] + 2 * token * n_rot
        rotate_row(q, cos, sin, n_group, dim, n_rot, t[T.NEOX])
        rotate_row(k, cos, sin, 1, dim, n_rot, t[T.NEOX])
        if t[T.TEMPERATURE]:
            factor = f32_at(t[T.TEMPERATURE], token + 1)[token]
            queries = f32_at(q, n_group * dim)
            for i in range(n_group * dim):
                queries[i] = queries[i] * factor
        place = (g * t[T.N_CTX] + t[T.POSITION] + token) * dim * t[T.ITEMSIZE]
        _store(k, record[T.K_CACHE] + place, dim, t[T.HALF])
        _store(v, record[T.V_CACHE] + place, dim, t[T.HALF])


@inner
def _scores(t, queries_at, cache, token, rows, s, positions, work):
    """Scores of some rows of one group at some positions, twelve rows at a time."""
    dim, n_group = t[T.HEAD_DIM], t[T.N_HEAD] // t[T.N_HEAD_KV]
    stride, table = dim * t[T.ITEMSIZE], kernels_of(t)
    token_stride, queries = 4 * t[T.QKV_STRIDE], work + 64 * dim
    for first in range(0, rows, MOST_ROWS):
        last = min(first + MOST_ROWS, rows)
        n_block = -(-(last - first) // LANES)
        gather_queries(
            queries_at, token_stride, (first, last), n_group, dim, n_block, queries,
            t[T.HALF], t[T.WIDE],
        )  # fmt: skip
        score_rows(
            table, cache, queries, s + 4 * first * t[T.S_STRIDE], dim, positions[0], positions[1],
            stride, t[T.S_STRIDE], last - first, work,
        )  # fmt: skip


@inner
def attend_together(t, number, layer):
    """One token, all threads: positions are shared for scores, rows for soft-max, elements after.

    So the work divides evenly whatever the number of heads.
    """
    record, dim, work = i64_at(layer, 4), t[T.HEAD_DIM], own(t, number) + t[T.ATTENTION_AT]
    n_kv, n_head, heads, nt = t[T.POSITION] + 1, t[T.N_HEAD], t[T.N_HEAD_KV], t[T.N_THREADS]
    n_group, head_bytes = n_head // heads, t[T.N_CTX] * dim * t[T.ITEMSIZE]
    group_bytes = 4 * t[T.S_ROWS] * t[T.S_STRIDE]
    first, last = share(n_kv, 8, number, nt)
    if first < last:
        for g in range(heads):
            q, _, _ = _heads_of(t, 0, g)
            s, cache = t[T.SCORES] + g * group_bytes, record[T.K_CACHE] + g * head_bytes
            _scores(t, q, cache, 0, n_group, s, (first, min(last, n_kv)), work)
    wait(t)
    scale = float_of(uint32(t[T.SCALE]))
    for h in range(number, n_head, nt):
        s = t[T.SCORES] + h // n_group * group_bytes + 4 * (h % n_group) * t[T.S_STRIDE]
        softmax_row(s, n_kv, n_kv, scale, t[T.EXP_KIND], t[T.HALF])
    wait(t)
    width = kernels_of(t)[WIDTH]
    chunks = -(-dim // width)
    first, last = share(heads * chunks, 1, number, nt)
    for g in range(first // chunks, heads):
        e0, e1 = max(0, first - g * chunks) * width, min(dim, (last - g * chunks) * width)
        if e0 >= e1:
            break
        weigh_rows(
            kernels_of(t), record[T.V_CACHE] + g * head_bytes, t[T.SCORES] + g * group_bytes,
            t[T.S_STRIDE], t[T.HEADS] + 4 * g * n_group * dim, 0, (e0, e1), n_group,
            (n_group, n_kv, dim, dim * t[T.ITEMSIZE]), work, t[T.WIDE],
        )  # fmt: skip


@inner
def attend_apart(t, number, layer):
    """Many tokens: a thread takes some neighbouring tokens of one key/value head at a time.

    Their queries meet the keys together, up to twelve rows, so that each key is widened once.
    """
    record, dim, work = i64_at(layer, 4), t[T.HEAD_DIM], own(t, number) + t[T.ATTENTION_AT]
    n, heads = t[T.N], t[T.N_HEAD_KV]
    n_group, head_bytes = t[T.N_HEAD] // heads, t[T.N_CTX] * dim * t[T.ITEMSIZE]
    s, scale = own(t, number) + t[T.OWN_SCORES_AT], float_of(uint32(t[T.SCALE]))
    per = max(1, MOST_ROWS // n_group)
    batches = -(-n // per)
    for item in range(number, batches * heads, t[T.N_THREADS]):
        token, g = item // heads * per, item % heads
        rows, n_kv = min(per, n - token) * n_group, t[T.POSITION] + min(token + per, n)
        q, _, _ = _heads_of(t, token, g)
        _scores(t, q, record[T.K_CACHE] + g * head_bytes, token, rows, s, (0, n_kv), work)
        for r in range(rows):
            visible = t[T.POSITION] + token + r // n_group + 1
            row = s + 4 * r * t[T.S_STRIDE]
            softmax_row(row, visible, n_kv, scale, t[T.EXP_KIND], t[T.HALF])
        out = t[T.HEADS] + 4 * (token * t[T.HEADS_STRIDE] + g * n_group * dim)
        weigh_rows(
            kernels_of(t), record[T.V_CACHE] + g * head_bytes, s, t[T.S_STRIDE], out,
            4 * t[T.HEADS_STRIDE], (0, dim), n_group, (rows, n_kv, dim, dim * t[T.ITEMSIZE]),
            work, t[T.WIDE],
        )  # fmt: skip
