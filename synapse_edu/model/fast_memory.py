"""The memory of the fast backend: packed weights, and what the threads compute in.

Every address in the table points into an array that `Memory` holds.
"""

import numpy as np

from ..ops.fast.attention import LANES, MOST_ROWS, TILE
from ..ops.fast.attention_products import addresses, kind_of
from ..ops.fast.barrier import BYTES, yield_address
from ..ops.fast.feedforward import exp_kind
from ..ops.fast.kernels import for_format, mode_of
from ..ops.fast.memory import aligned_empty
from ..ops.fast.repack import padded_rows
from . import fast_table as T

F32 = np.float32


def _bits(x):
    return int(F32(x).view(np.uint32))


def _whole_lines(n_bytes):
    """Rounded up to whole cache lines, and one more."""
    return -(-n_bytes // 64) * 64 + 64


def _zeroed(n_bytes):
    """Aligned bytes; zero, so that padding is no NaN."""
    room = aligned_empty(_whole_lines(n_bytes))
    room[:] = 0
    return room


def _stride(n):
    """Numbers from one token's row to the next: an odd number of cache lines.

    Kernels write the same columns of many rows.  Rows a power of two apart would all fall into
    the same few places of the first cache, and push each other out.
    """
    return (-(-n // 16) | 1) * 16


class Memory:
    """Tables and buffers for one model, one number of threads, and up to `batch` tokens a call.

    Attributes
    ----------
    table : ndarray of int64, shape (fast_table.SIZE,)
    layers : ndarray of int64, shape (n_layer, numbers of a layer's record)
    """

    def __init__(self, weights, packed, config, numerics, n_threads, batch):
        self.config, self.batch, self._kept = config, batch, {}
        self.table = np.zeros(T.SIZE, np.int64)  # (SIZE,)
        self._matrices = {id(m): m for m in (*matrices_of(weights), weights.output)}
        self._kernels = {
            key: for_format(m.format, mode_of(m.format, numerics))
            for key, m in self._matrices.items()
        }
        self._sizes(numerics, n_threads)
        self._records(weights, packed)
        self._shared()
        self._own(n_threads)
        self.n_positions = self._counted = 0

    def _room(self, place, n_bytes):
        """Zeroed bytes under an address in the table."""
        return self._put(place, _zeroed(n_bytes))

    def _put(self, place, room):
        self._kept[place], self.table[place] = room, room.ctypes.data
        return room

    def _sizes(self, numerics, n_threads):
        c, t = self.config, self.table
        t[T.N_LAYER], t[T.N_EMBD], t[T.N_FF], t[T.N_VOCAB] = c.n_layer, c.n_embd, c.n_ff, c.n_vocab
        t[T.N_HEAD], t[T.N_HEAD_KV], t[T.HEAD_DIM] = c.n_head, c.n_head_kv, c.head_dim
        t[T.N_ROT], t[T.NEOX] = c.rope.n_rot, c.rope.layout != "normal"
        t[T.EPS], t[T.SCALE] = _bits(c.rms_eps), _bits(F32(1) / np.sqrt(F32(c.head_dim)))
        kind = kind_of(numerics)
        t[T.EXP_KIND], t[T.HALF], t[T.WIDE] = exp_kind(numerics), kind == "half", kind != "rounded"
        t[T.ITEMSIZE] = 2 if numerics.cache == "float16" else 4
        t[T.N_THREADS], t[T.GIVE_WAY] = n_threads, yield_address()
        self.place = self._room(T.PLACE, BYTES)
        n_group = c.n_head // c.n_head_kv
        kernels = np.array(addresses(kind, c.head_dim, n_group), np.int64)  # (SIZE,)
        self._kept["kernels"], t[T.KERNELS] = kernels, kernels.ctypes.data

    def _records(self, weights, packed):
        """The records of the layers and of the output matrix."""
        self._kept["packed"] = packed
        layers = np.zeros((len(weights.layers), T.LAYER // 8), np.int64)
        for record, layer in zip(layers, weights.layers, strict=True):
            record[T.ATTN_NORM] = self._vector(layer.attn_norm)
            record[T.FFN_NORM] = self._vector(layer.ffn_norm)
            for i, role in enumerate(T.ROLES):
                bias = getattr(layer, f"{role}_bias")
                start = 4 + T.MATRIX // 8 * i
                record[start : start + 5] = self._matrix(getattr(layer, role), bias, packed)
        output = np.array(self._matrix(weights.output, weights.output_bias, packed), np.int64)
        self.layers = layers
        self._kept["output"] = output
        self.table[T.LAYERS], self.table[T.OUTPUT] = layers.ctypes.data, output.ctypes.data
        self.table[T.OUTPUT_NORM] = self._vector(weights.output_norm)

    def _vector(self, x):
        """Address of a float32 vector; 0 for None."""
        if x is None:
            return 0
        x = np.ascontiguousarray(x, F32)
        self._kept[f"vector {len(self._kept)}"] = x
        return x.ctypes.data

    def _matrix(self, matrix, bias, packed):
        k = self._kernels[id(matrix)]
        return (
            packed.address(matrix), self._vector(bias), k.quantize_batch, k.matvec, k.matmat
        )  # fmt: skip

    def _shared(self):
        c, t, n = self.config, self.table, self.batch
        q, kv = padded_rows(c.n_embd_head), padded_rows(c.n_embd_kv)
        t[T.QKV_STRIDE], t[T.K_AT], t[T.V_AT] = _stride(q + 2 * kv), 4 * q, 4 * (q + kv)
        t[T.EMBD_STRIDE], t[T.FF_STRIDE] = _stride(c.n_embd), _stride(c.n_ff)
        t[T.HEADS_STRIDE], t[T.VOCAB_STRIDE] = _stride(q), padded_rows(c.n_vocab)
        self.x = self._room(T.X, 4 * n * t[T.EMBD_STRIDE])
        self._room(T.X2, 4 * n * t[T.EMBD_STRIDE])
        self._room(T.QKV, 4 * n * t[T.QKV_STRIDE])
        self._room(T.HEADS, 4 * n * t[T.HEADS_STRIDE])
        for place in (T.GATE, T.UP, T.GATED):
            self._room(place, 4 * n * t[T.FF_STRIDE])
        self._room(T.ACTIVATIONS, self._most("activation_bytes", n))

    def _most(self, what, n):
        """The largest of something that the kernels ask for, over the matrices."""
        return max(getattr(self._kernels[id(m)], what)(m.n_in, n) for m in self._each())

    def _each(self):
        return self._matrices.values()

    def _own(self, n_threads):
        c, t = self.config, self.table
        scratch = max(self._most("scratch_bytes", n) for n in (1, self.batch))
        n_group = c.n_head // c.n_head_kv
        self._n_rows = max(MOST_ROWS, -(-n_group // LANES) * LANES)
        products = 8 * c.head_dim * (8 + self._n_rows)  # keys, queries
        weighing = 8 * self._n_rows * (c.head_dim + TILE)
        t[T.NORMED_AT] = _whole_lines(scratch)
        t[T.OWN_AT] = t[T.NORMED_AT] + _whole_lines(4 * 4 * c.n_embd)  # four rows at once
        t[T.ATTENTION_AT] = t[T.OWN_AT] + _whole_lines(self._most("activation_bytes", 1))
        t[T.OWN_SCORES_AT] = t[T.ATTENTION_AT] + _whole_lines(max(products, weighing))

    def make_room(self, n_ctx):
        """Room for the scores of as many positions as a cache has."""
        if n_ctx <= self.n_positions:
            return
        t, stride = self.table, -(-n_ctx // 8) * 8 + 8
        own = _whole_lines(int(t[T.OWN_SCORES_AT]) + 4 * self._n_rows * stride)
        scores = _zeroed(4 * self.config.n_head_kv * self._n_rows * stride)
        work = _zeroed(int(t[T.N_THREADS]) * own)
        # An interruption may come between any two lines: until the last one, everything is
        # made anew by the next call.
        self._counted, self.n_positions = self.counted(), 0
        t[T.S_STRIDE], t[T.S_ROWS], t[T.WORK_BYTES] = stride, self._n_rows, own
        self._put(T.SCORES, scores)
        self._put(T.WORK, work)
        self.n_positions = n_ctx

    def wanted(self, rows):
        """New room for the logits of some tokens of a call: float32 (len(rows), n_vocab)."""
        t, stride = self.table, int(self.table[T.VOCAB_STRIDE])
        rows = np.array(rows, np.int64)  # (n_wanted,)
        room = aligned_empty(4 * len(rows) * stride)
        self._kept["wanted"], self._kept[T.LOGITS] = rows, room
        t[T.WANTED], t[T.N_WANTED], t[T.LOGITS] = rows.ctypes.data, len(rows), room.ctypes.data
        return room.view(F32).reshape(len(rows), stride)[:, : self.config.n_vocab]

    def stream(self, n):
        """The rows of the residual stream that a call starts from, (n, n_embd) float32."""
        stride = int(self.table[T.EMBD_STRIDE])
        rows = self.x[: 4 * n * stride].view(F32).reshape(n, stride)
        return rows[:, : self.config.n_embd]

    def counted(self):
        """Multiply-accumulates of all matrix products so far."""
        if not self.n_positions:
            return self._counted
        n = int(self.table[T.WORK_BYTES])  # each thread counts at the start of its own room
        starts = range(0, n * int(self.table[T.N_THREADS]), n)
        room = self._kept[T.WORK]
        return self._counted + sum(int(room[i : i + 8].view(np.int64)[0]) for i in starts)


def matrices_of(weights):
    """Every matrix of the layers."""
    return [getattr(layer, role) for layer in weights.layers for role in T.ROLES]
