"""The forward pass as one compiled function: some tokens from the embedding to the logits.

It is `walk.forward` once more, in the same order, for threads that meet between its parts.  Read
that one first: there every line says what it computes; here it says who computes it.
"""

from ..ops.fast.feedforward import swiglu_row
from ..ops.fast.jit import inner, njit
from ..ops.fast.memory import f32_at, i64_at
from . import fast_table as T
from .fast_attention import attend_apart, attend_together, turn_and_store
from .fast_linear import add, linear, prepare, table_at, wait


@inner
def _quantizer(matrix):
    return i64_at(matrix, 5)[T.QUANTIZE]


@inner
def _queries_keys_values(t, number, layer):
    n, n_embd, dim, norm = t[T.N], t[T.N_EMBD], t[T.HEAD_DIM], i64_at(layer, 4)[T.ATTN_NORM]
    widths = (t[T.N_HEAD] * dim, t[T.N_HEAD_KV] * dim, t[T.N_HEAD_KV] * dim)
    offsets, before, y = (0, t[T.K_AT], t[T.V_AT]), 0, 0
    for i in range(3):
        matrix = layer + T.Q + T.MATRIX * i
        quantizer = _quantizer(matrix)
        if quantizer != before:
            y = prepare(
                t, number, n, t[T.X], t[T.EMBD_STRIDE], n_embd, norm, quantizer, before != 0
            )
        before = quantizer
        shape, out = (widths[i], n_embd), t[T.QKV] + offsets[i]
        linear(t, number, matrix, y, out, shape, t[T.QKV_STRIDE], n)


@inner
def _onto_the_stream(t, number, matrix, rows, stride, n_in, source, target):
    """A product added to the residual stream: target = source + W · rows."""
    n, embd_stride = t[T.N], t[T.EMBD_STRIDE]
    y = prepare(t, number, n, rows, stride, n_in, 0, _quantizer(matrix), False)
    first, last = linear(t, number, matrix, y, target, (t[T.N_EMBD], n_in), embd_stride, n)
    for token in range(n):
        at = 4 * token * embd_stride
        add(target + at, source + at, first, last)


@inner
def _feed_forward(t, number, layer):
    n, stride, shape = t[T.N], t[T.FF_STRIDE], (t[T.N_FF], t[T.N_EMBD])
    gate, up, norm = layer + T.FFN_GATE, layer + T.FFN_UP, i64_at(layer, 4)[T.FFN_NORM]
    quantizer, rows = _quantizer(gate), t[T.X2]
    y = prepare(t, number, n, rows, t[T.EMBD_STRIDE], t[T.N_EMBD], norm, quantizer, False)
    first, last = linear(t, number, gate, y, t[T.GATE], shape, stride, n)
    if _quantizer(up) != quantizer:
        quantizer = _quantizer(up)
        y = prepare(t, number, n, rows, t[T.EMBD_STRIDE], t[T.N_EMBD], norm, quantizer, True)
    linear(t, number, up, y, t[T.UP], shape, stride, n)
    for token in range(n):
        at = 4 * (token * stride + first)
        if first < last:  # not in place: LLVM lays a loop into registers if nothing overlaps
            swiglu_row(
                t[T.GATE] + at, t[T.UP] + at, t[T.GATED] + at, last - first,
                t[T.N_FF] - last, t[T.EXP_KIND],
            )  # fmt: skip


@inner
def _logits(t, number):
    """Logits of the wanted tokens; their rows of the stream are first put together."""
    n, stride, n_embd = t[T.N_WANTED], t[T.EMBD_STRIDE], t[T.N_EMBD]
    wanted = i64_at(t[T.WANTED], n)
    for i in range(number, n, t[T.N_THREADS]):
        row = f32_at(t[T.X2] + 4 * i * stride, n_embd)
        row[:] = f32_at(t[T.X] + 4 * wanted[i] * stride, n_embd)
    wait(t)
    output = t[T.OUTPUT]
    y = prepare(t, number, n, t[T.X2], stride, n_embd, t[T.OUTPUT_NORM], _quantizer(output), False)
    shape = (t[T.N_VOCAB], n_embd)
    linear(t, number, output, y, t[T.LOGITS], shape, t[T.VOCAB_STRIDE], n)


@njit
def run(table, number):
    """What thread `number` does of a pass; `table` is the address of a `fast_table`."""
    t = table_at(table)
    for i in range(t[T.N_LAYER]):
        layer = t[T.LAYERS] + i * T.LAYER
        _queries_keys_values(t, number, layer)
        wait(t)
        turn_and_store(t, number, layer)
        wait(t)
        if i == t[T.N_LAYER] - 1 and t[T.N_WANTED] == 0:
            return  # nobody needs logits: keys and values are all there is to compute
        if t[T.N] == 1:
            attend_together(t, number, layer)
        else:
            attend_apart(t, number, layer)
        wait(t)
        _onto_the_stream(
            t, number, layer + T.ATTN_OUTPUT, t[T.HEADS], t[T.HEADS_STRIDE],
            t[T.N_HEAD] * t[T.HEAD_DIM], t[T.X], t[T.X2],
        )  # fmt: skip
        wait(t)
        _feed_forward(t, number, layer)
        wait(t)
        _onto_the_stream(
            t, number, layer + T.FFN_DOWN, t[T.GATED], t[T.FF_STRIDE], t[T.N_FF], t[T.X2], t[T.X]
        )
        wait(t)
    _logits(t, number)
