"""The forward pass, step by step: the one place where it is written.

`forward` is a generator.  It yields each step after computing it; ``send(array)`` puts another
value in its place, and the rest of the pass runs on that.  Run to its end it is the reference
backend; stopped on the way it is a stepper, a recorder, or an experiment.
"""

from dataclasses import dataclass, field

import numpy as np

from ..errors import BadArgument
from ..ops.reference import attention
from ..ops.reference.embedding import embedding
from ..ops.reference.feedforward import swiglu
from ..ops.reference.matmul import matmul
from ..ops.reference.norm import rms_norm
from ..ops.reference.rope import angles, rotate
from . import steps
from .spec import StepSpec

F32 = np.float32


@dataclass(frozen=True, eq=False)
class Step:
    """One computed step.

    Attributes
    ----------
    name : str
        The step's name, as in `steps.STEPS`.
    layer : int or None
        None outside the layers.
    value : ndarray of float32
        Read-only.  Shape ``spec.shape(config, position)``, after a leading axis of tokens if
        the walk was given a list of ids.
    spec : StepSpec
    position : int
        Position of the token; of the first token of a batch.
    llama_cpp_name : str
        Name of the same tensor in llama.cpp's graph, such as ``"Qcur-0.ROPE"``; empty for the
        few that have none there.
    """

    name: str
    layer: int | None
    value: np.ndarray = field(repr=False)
    spec: StepSpec = field(repr=False)
    position: int
    llama_cpp_name: str


def forward(weights, config, numerics, ids, cache, rows=None, single=False):
    """Run tokens through the model, yielding every step.

    Parameters
    ----------
    weights : checkpoint weights, with `.layers`
    config : Config
    numerics : Numerics
    ids : sequence of int, shape (n,)
    cache : KVCache
        The tokens go to its next n positions.  They count as used when the generator ends, and
        not before: a walk that is given up leaves the cache as it was.
    rows : sequence of int, optional
        Which of the n tokens need logits; None means all.  The others are dropped in the last
        layer, after attention.
    single : bool
        n is 1, and the values are yielded without the axis of tokens.

    Yields
    ------
    Step

    Returns
    -------
    ndarray of float32, shape (len(rows), n_vocab) or, if `single`, (n_vocab,)
        The logits, as ``StopIteration.value``.
    """
    run = _Pass(config, numerics, weights.rope_freqs, ids, cache, single)
    x = yield from run.offer("embedding", None, embedding(weights.token_embd, ids))  # (n, n_embd)
    for layer, w in enumerate(weights.layers):
        last = layer == config.n_layer - 1
        y = yield from _attention(run, w, layer, x, need=not last or rows is None or len(rows) > 0)
        if y is None:  # nobody needs logits: the keys and values are all there is to compute
            run.commit()
            return np.empty((0, config.n_vocab), F32)
        if last and rows is not None:
            x, y = x[list(rows)], y[list(rows)]  # (len(rows), n_embd)
        x = yield from run.add("attn_residual", layer, x, y)  # (n, n_embd)
        y = yield from _feed_forward(run, w, layer, x)  # (n, n_embd)
        x = yield from run.add("layer_output", layer, x, y)  # (n, n_embd)
    h = yield from run.norm("output_norm", None, weights.output_norm, x)  # (n, n_embd)
    logits = yield from run.product("logits", None, weights.output, weights.output_bias, h)
    run.commit()
    return logits[0] if single else logits


def _attention(run, w, layer, x, need=True):
    """First half of a layer: (n, n_embd) → (n, n_embd), or None if not `need`."""
    c, n = run.config, len(x)
    h = yield from run.norm("attn_norm", layer, w.attn_norm, x)  # (n, n_embd)
    q = yield from run.product("q", layer, w.attn_q, w.attn_q_bias, h)  # (n, n_head · head_dim)
    k = yield from run.product("k", layer, w.attn_k, w.attn_k_bias, h)  # (n, n_head_kv · head_dim)
    v = yield from run.product("v", layer, w.attn_v, w.attn_v_bias, h)  # (n, n_head_kv · head_dim)

    q = run.turn(q.reshape(n, c.n_head, c.head_dim))  # (n, n_head, head_dim)
    q = yield from run.offer("q_rope", layer, q)
    k = run.turn(k.reshape(n, c.n_head_kv, c.head_dim))  # (n, n_head_kv, head_dim)
    k = yield from run.offer("k_rope", layer, k)
    if c.attn_temperature_scale:
        q = attention.temperature(
            q, run.positions, c.attn_temperature_scale, c.rope.n_ctx_orig
        )  # (n, n_head, head_dim)
        q = yield from run.offer("q_temperature", layer, q)

    v = v.reshape(n, c.n_head_kv, c.head_dim)  # (n, n_head_kv, head_dim)
    keys, values = run.store(layer, k, v)  # (n_head_kv, n_kv, head_dim)
    if not need:
        return None
    s = attention.scores(q, keys, run.numerics)  # (n, n_head, n_kv)
    s = yield from run.offer("scores", layer, s)
    scale = F32(1) / np.sqrt(F32(c.head_dim))
    p = attention.softmax(s, run.numerics, scale, run.positions + 1)  # (n, n_head, n_kv)
    p = yield from run.offer("probabilities", layer, p)
    o = attention.weighted_values(p, values, run.numerics)  # (n, n_head, head_dim)
    o = yield from run.offer("attention", layer, o)
    o = yield from run.offer("heads", layer, o.reshape(n, -1))  # (n, n_head · head_dim)
    return (
        yield from run.product("attn_output", layer, w.attn_output, w.attn_output_bias, o)
    )  # (n, n_embd)


def _feed_forward(run, w, layer, x):
    """Second half of a layer: (n, n_embd) → (n, n_embd)."""
    h = yield from run.norm("ffn_norm", layer, w.ffn_norm, x)  # (n, n_embd)
    gate = yield from run.product("ffn_gate", layer, w.ffn_gate, w.ffn_gate_bias, h)  # (n, n_ff)
    up = yield from run.product("ffn_up", layer, w.ffn_up, w.ffn_up_bias, h)  # (n, n_ff)
    a = yield from run.offer("ffn_swiglu", layer, swiglu(gate, up, run.numerics))  # (n, n_ff)
    return (yield from run.product("ffn_down", layer, w.ffn_down, w.ffn_down_bias, a))


class _Pass:
    """What the steps of one pass share, and how a step is offered to the reader."""

    def __init__(self, config, numerics, rope_freqs, ids, cache, single):
        self.config, self.numerics = config, numerics
        self.ids, self.cache, self.single = ids, cache, single
        self.positions = np.arange(cache.n, cache.n + len(ids))  # (n,)
        # The same angles in every layer, for queries and keys: (n, n_rot / 2) each.
        self.cos, self.sin = angles(self.positions, config.rope, rope_freqs, numerics)
        self.edited = False
        self.ticket = cache.begin(len(ids))

    def offer(self, name, layer, value, has_bias=False):
        """Yield a step; return its value, or a copy of what the reader sent instead."""
        spec = steps.BY_NAME[name]
        shown = (value[0] if self.single else value).view()
        shown.flags.writeable = False
        cpp_name = spec.llama_cpp_name(layer, self.config.architecture, has_bias)
        sent = yield Step(name, layer, shown, spec, int(self.positions[0]), cpp_name)
        if sent is None:
            return value
        sent = np.asarray(sent)
        if sent.shape != shown.shape or sent.dtype != F32:
            raise BadArgument(
                f"Step {name!r} holds float32 of shape {shown.shape}; {sent.dtype} of shape "
                f"{sent.shape} was sent. Send an array of that shape, .astype(np.float32)."
            )
        self.edited = True
        return sent.reshape(value.shape).copy()

    def product(self, name, layer, weight, bias, x):
        """Matrix product, and the bias if there is one."""
        y = matmul(weight, x, self.numerics)  # (n, n_out)
        y = yield from self.offer(name, layer, y, bias is not None)
        if bias is not None:
            y = yield from self.add(f"{name}_bias", layer, y, bias)
        return y

    def add(self, name, layer, a, b):
        with np.errstate(over="ignore", invalid="ignore"):
            total = a + b
        return (yield from self.offer(name, layer, total))

    def norm(self, name, layer, weight, x):
        """RMSNorm, as its two steps."""
        scaled, normed = rms_norm(x, weight, self.config.rms_eps)  # (n, n_embd)
        other = yield from self.offer(f"{name}_scaled", layer, scaled)
        if other is not scaled:
            with np.errstate(over="ignore", invalid="ignore"):
                normed = other * weight
        return (yield from self.offer(name, layer, normed))

    def turn(self, x):
        return rotate(x, self.cos, self.sin, self.config.rope, self.numerics)

    def store(self, layer, k, v):
        return self.cache.store(self.ticket, layer, k, v)

    def commit(self):
        self.cache.commit(self.ticket, self.ids, self.edited)


def run(generator):
    """Run a walk to its end and return the logits."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value
