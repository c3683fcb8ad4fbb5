"""The fast backend: the same bits as the reference, from compiled code.

One compiled function runs a whole token, or a batch of them, on every thread (`fast_pass`).  This
class keeps its memory, cuts prompts into batches, and brings the results back.
"""

import numpy as np

from ..numerics import PRESETS
from ..ops.fast import threads
from ..ops.fast.jit import cache_folder
from ..ops.fast.kernels import for_format, mode_of
from ..ops.reference.attention import temperature
from ..ops.reference.embedding import embedding
from ..ops.reference.rope import angles
from . import fast_table as T
from .fast_memory import Memory, matrices_of
from .fast_packed import Packed, let_go
from .fast_pass import run

BATCH = 64  # tokens computed together
MOST_THREADS = 4  # by default: decoding is limited by memory long before that
AHEAD = 512  # positions whose angles are made at once
LET_GO = 8  # rows of the table of tokens after which the file's pages are let go
COMMON = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "F16", "F32")
SERVED = ("textbook", "synapse", "llama.cpp")


def serves(numerics):
    """Whether the kernels compute these Numerics: a preset with either storage of the cache."""
    same = [
        PRESETS[name].replace(cache=cache, name="")
        for name in SERVED
        for cache in ("float16", "float32")
    ]
    return numerics.replace(name="") in same


class Fast:
    """Numba, meant to be used.  See `backends` for its two methods.

    The matrices are packed when the first token is computed.  From then on they cannot be written
    to: a change would not be seen.  Make a new model of changed copies instead.

    The bits are the reference's for every number.  Where that has NaN, this has NaN; which of the
    many NaNs it is, no formula says, and the two may differ.
    """

    name = "fast"

    def __init__(self, weights, config, numerics, n_threads=None):
        self.weights, self.config, self.numerics = weights, config, numerics
        default = min(threads.available(), MOST_THREADS)
        self.team = threads.Team(threads.checked(n_threads, default))
        self._memory = self._packed = self._angles = None
        self._n_rows_read = 0

    @property
    def macs(self):
        """Multiply-accumulates of the matrix products executed so far."""
        return self._memory.counted() if self._memory else 0

    def prefill(self, ids, cache, rows):
        with self.team.alone():  # one pass at a time, also of several on one cache
            ticket, parts = cache.begin(len(ids)), []
            for first in range(0, len(ids), BATCH):
                part = ids[first : first + BATCH]
                wanted = [r - first for r in rows if first <= r < first + len(part)]
                parts.append(self._pass(part, cache, cache.start_of(ticket) + first, wanted))
            cache.commit(ticket, ids)
        return np.concatenate(parts)  # (len(rows), n_vocab)

    def decode(self, id, cache):
        with self.team.alone():
            ticket = cache.begin(1)
            logits = self._pass([id], cache, cache.start_of(ticket), [0])  # (1, n_vocab)
            cache.commit(ticket, [id])
        return logits[0]  # (n_vocab,)

    def _pass(self, ids, cache, position, wanted):
        """Run some tokens from a position on; logits of the `wanted` ones among them."""
        n, memory = len(ids), self._ready(cache.n_ctx)
        table, layers = memory.table, memory.layers
        memory.stream(n)[:] = self._embedding(ids)  # (n, n_embd)
        logits = memory.wanted(wanted)  # (len(wanted), n_vocab)
        for place, x in ((T.K_CACHE, cache.k), (T.V_CACHE, cache.v)):
            layers[:, place] = x.ctypes.data + np.arange(len(x)) * x.strides[0]  # (n_layer,)
        table[T.N], table[T.POSITION], table[T.N_CTX] = n, position, cache.n_ctx
        self._turn(table, position, n)
        memory.place[:] = 0  # a process forked from the middle of a pass has threads counted there
        self.team.run(run, table.ctypes.data)
        return logits

    def _embedding(self, ids):
        """Rows of the table of tokens, which is read from the model file, packed or not.

        The system maps the neighbours of each row too, a megabyte and more: without letting go,
        a batch of tokens would bring much of the table into memory a second time, beside its
        packed copy.
        """
        table, parts = self.weights.token_embd, []
        for first in range(0, len(ids), LET_GO):
            part = ids[first : first + LET_GO]
            parts.append(embedding(table, part))  # (≤ LET_GO, n_embd)
            self._n_rows_read += len(part)
            if self._n_rows_read >= LET_GO and not self._packed.reads_file(table):
                let_go(table.raw)
                self._n_rows_read = 0
        return np.concatenate(parts)  # (n, n_embd)

    def _ready(self, n_ctx):
        """The memory, made on first use: weights packed, kernels compiled."""
        if self._memory is None:
            every = [*matrices_of(self.weights), self.weights.output]
            self._packed = Packed(every, self.numerics)
            self._memory = Memory(
                self.weights, self._packed, self.config, self.numerics, self.team.n_threads, BATCH
            )
        self._memory.make_room(n_ctx)
        return self._memory

    def _turn(self, table, position, n):
        """Cosines, sines and the queries' temperature, for the positions of a call."""
        c = self.config
        if self._angles is None or len(self._angles[0]) < position + n:
            p = np.arange(-(-(position + n) // AHEAD) * AHEAD)  # (n_positions,)
            cos, sin = angles(p, c.rope, self.weights.rope_freqs, self.numerics)
            scale, one = c.attn_temperature_scale, np.ones((len(p), 1, 1), np.float32)
            warm = temperature(one, p, scale, c.rope.n_ctx_orig) if scale else one[:0]
            self._angles = [np.ascontiguousarray(x, np.float32) for x in (cos, sin, warm)]
        cos, sin, warm = self._angles
        table[T.COS], table[T.SIN] = (x[position:].ctypes.data for x in (cos, sin))
        table[T.TEMPERATURE] = warm[position:].ctypes.data if warm.size else 0


def compile_ahead(formats=None):
    """Compile all that a model needs, so that the first token need not wait.

    Parameters
    ----------
    formats : sequence of str, optional
        Of the weights; by default those of the models people load: Q4_0 to Q8_0, Q4_K to Q6_K,
        F16 and F32.

    Returns
    -------
    Path or None
        The folder that holds the compiled code; None where none can be written.
    """
    from .load import load

    model = load("built-in", backend="fast", n_threads=1)
    model.decode(0, model.new_cache(8))
    for format in COMMON if formats is None else formats:
        for_format(format, mode_of(format, model.numerics))
    return cache_folder()
