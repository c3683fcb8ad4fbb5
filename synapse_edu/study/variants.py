"""One small transformer, and the choices that could have been made otherwise.

A `Design` names each choice.  `logits` is the forward pass of any of them; it reads like the
formulas, and autograd differentiates it.  With the choices of Llama it is the pass of `backward`:
same parameters, same numbers.
"""

import zlib
from dataclasses import dataclass, fields

import autograd.numpy as anp
import numpy as np
from autograd import value_and_grad

from ..config import Rope
from ..errors import BadArgument
from . import pieces
from .backward import document_mask, rope_tables

F32 = np.float32
CHOICES = {
    "norm_place": ("pre", "post", "none"),
    "norm": ("rms", "layer"),
    "positions": ("rope", "learned", "none"),
    "ffn": ("swiglu", "relu", "gelu"),
}


@dataclass(frozen=True)
class Design:
    """Every choice about one model; the defaults are Llama's.

    Attributes
    ----------
    n_vocab, n_ctx_train : int
        Tokens in the vocabulary; positions for which a learned table has rows.
    n_layer, n_embd, n_head, n_head_kv, n_ff : int
    norm_place : {"pre", "post", "none"}
        x + f(norm(x)); norm(x + f(x)); x + f(x).
    norm : {"rms", "layer"}
    positions : {"rope", "learned", "none"}
    ffn : {"swiglu", "relu", "gelu"}
        Three matrices, the first two multiplied with each other; or two.
    tied : bool
        Whether the embedding table also scores the output.
    rms_eps : float
    """

    n_vocab: int
    n_ctx_train: int = 512
    n_layer: int = 2
    n_embd: int = 48
    n_head: int = 4
    n_head_kv: int = 4
    n_ff: int = 128
    norm_place: str = "pre"
    norm: str = "rms"
    positions: str = "rope"
    ffn: str = "swiglu"
    tied: bool = True
    rms_eps: float = 1e-5

    def __post_init__(self):
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise BadArgument(
                    f"Design: {name}={getattr(self, name)!r}; choose one of {', '.join(known)}."
                )
        heads = min(self.n_head, self.n_head_kv) > 0 and self.n_head % self.n_head_kv == 0
        if not heads or self.n_embd % self.n_head or self.head_dim % 2:
            raise BadArgument(
                f"Design: {self.n_embd} numbers do not make {self.n_head} heads of even width on "
                f"{self.n_head_kv} key/value heads."
            )

    @property
    def head_dim(self):
        return self.n_embd // self.n_head

    @property
    def rope(self):
        return Rope(n_rot=self.head_dim)

    def shapes(self):
        """Shape of every parameter by name; a matrix is (n_out, n_in)."""
        d, f, kv = self.n_embd, self.n_ff, self.n_head_kv * self.head_dim
        shapes = {"token_embd": (self.n_vocab, d)}
        if self.positions == "learned":
            shapes["position_embd"] = (self.n_ctx_train, d)
        for i in range(self.n_layer):
            at = f"blk.{i}."
            shapes |= self._norm_shapes(at + "attn_norm")
            shapes |= {at + "attn_q": (d, d), at + "attn_k": (kv, d), at + "attn_v": (kv, d)}
            shapes |= {at + "attn_output": (d, d)}
            shapes |= self._norm_shapes(at + "ffn_norm")
            shapes |= {at + "ffn_gate": (f, d)} if self.ffn == "swiglu" else {}
            shapes |= {at + "ffn_up": (f, d), at + "ffn_down": (d, f)}
        if self.norm_place == "pre":
            shapes |= self._norm_shapes("output_norm")
        return shapes if self.tied else shapes | {"output": (self.n_vocab, d)}

    def _norm_shapes(self, name):
        if self.norm_place == "none":
            return {}
        bias = {name + "_bias": (self.n_embd,)} if self.norm == "layer" else {}
        return {name: (self.n_embd,)} | bias

    @property
    def n_params(self):
        return sum(int(np.prod(shape)) for shape in self.shapes().values())

    @property
    def cache_bytes(self):
        """Bytes of keys and values for each position, in float16."""
        return 2 * self.n_layer * self.n_head_kv * self.head_dim * 2

    def changed_from(self, other):
        """The choices in which two designs differ, by name."""
        pairs = ((f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return {name: mine for name, mine, theirs in pairs if mine != theirs}


def initial(design, seed, dtype=F32):
    """Initial parameters: normal, scaled by a unit's inputs; norms begin at 1.

    A parameter's numbers follow from the seed and its name alone.  So two designs that share a
    parameter begin with the same numbers there, and what differs between their results does not
    come from the start.
    """
    p = {}
    for name, shape in design.shapes().items():
        if len(shape) == 1:
            start = np.zeros if name.endswith("_bias") else np.ones
            p[name] = start(shape, dtype)  # (d,)
            continue
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        p[name] = (rng.standard_normal(shape) / np.sqrt(shape[1])).astype(dtype)  # (n_out, n_in)
    return p


# --- the forward pass --------------------------------------------------------------------------
def normed(x, p, name, design):
    if design.norm == "rms":
        return pieces.rms_norm(x, p[name], design.rms_eps)
    return pieces.layer_norm(x, p[name], p[name + "_bias"], design.rms_eps)


def residual(x, branch, p, name, design):
    """One half of a layer: what `branch` makes of x is added to x."""
    if design.norm_place == "pre":
        return x + branch(normed(x, p, name, design))
    if design.norm_place == "post":
        return normed(x + branch(x), p, name, design)
    return x + branch(x)


def attend(h, p, at, design, tables, mask):
    """Attention of rows h (B·T, d), the heads in groups that share keys and values."""
    n_batch, n_pos = mask.shape[0], mask.shape[-1]
    kv, hd = design.n_head_kv, design.head_dim

    def heads(name, n):
        x = anp.reshape(pieces.linear(h, p[at + name]), (n_batch, n_pos, n, hd))
        return pieces.rotate(x, *tables) if tables and name != "attn_v" else x

    q, k, v = heads("attn_q", design.n_head), heads("attn_k", kv), heads("attn_v", kv)
    q = anp.reshape(q, (n_batch, n_pos, kv, -1, hd)).transpose((0, 2, 3, 1, 4))  # (B, Hk, g, T, hd)
    k, v = (z.transpose((0, 2, 1, 3))[:, :, None] for z in (k, v))  # (B, Hk, 1, T, hd) each
    out = pieces.attention(q, k, v, mask).transpose((0, 3, 1, 2, 4))  # (B, T, Hk, g, hd)
    return pieces.linear(anp.reshape(out, (n_batch * n_pos, -1)), p[at + "attn_output"])


def feed_forward(h, p, at, design):
    up = pieces.linear(h, p[at + "ffn_up"])  # (B·T, f)
    if design.ffn == "swiglu":
        hidden = pieces.swiglu(pieces.linear(h, p[at + "ffn_gate"]), up)
    else:
        hidden = {"relu": pieces.relu, "gelu": pieces.gelu}[design.ffn](up)
    return pieces.linear(hidden, p[at + "ffn_down"])


def logits(p, tokens, design, starts=None, watch=lambda x: x, tables=None):
    """Scores of the next token, (B·T, V), for tokens (B, T).

    Parameters
    ----------
    p : dict of str → ndarray
    tokens : ndarray of int, shape (B, T)
    design : Design
    starts : ndarray of int, shape (B, T), optional
        Where the document of each position begins in its row; otherwise a row is one text.
    watch : function
        Is given the stream, (B·T, d), before the first layer and after each.
    tables : pair of ndarray, shape (T, head_dim / 2), optional
        cos and sin of RoPE's angles, if they are not to be those of training.
    """
    n_pos = tokens.shape[1]
    mask = document_mask(np.zeros_like(tokens) if starts is None else starts, n_pos)
    if design.positions == "rope" and tables is None:
        tables = rope_tables(design, n_pos)
    x = p["token_embd"][tokens.ravel()]  # (B·T, d)
    if design.positions == "learned":
        x = x + p["position_embd"][np.tile(np.arange(n_pos), len(tokens))]
    x = watch(x)
    for i in range(design.n_layer):
        at = f"blk.{i}."
        args = p, at, design
        x = residual(x, lambda h, a=args: attend(h, *a, tables, mask), p, at + "attn_norm", design)
        x = residual(x, lambda h, a=args: feed_forward(h, *a), p, at + "ffn_norm", design)
        x = watch(x)
    if design.norm_place == "pre":
        x = normed(x, p, "output_norm", design)
    return pieces.linear(x, p["token_embd" if design.tied else "output"])


# --- what is measured --------------------------------------------------------------------------
def loss(p, design, tokens, targets, weights, starts=None, **options):
    """Mean −log p of the targets, weighted, in nats a token."""
    scores = logits(p, tokens, design, starts, **options)
    return pieces.cross_entropy(scores, targets.ravel(), weights.ravel())


def loss_and_gradients(p, design, tokens, targets, weights, starts=None):
    """As `backward.loss_and_gradients`, for any design."""
    value, grads = value_and_grad(loss)(p, design, tokens, targets, weights, starts)
    return float(value), grads


def token_losses(p, design, tokens, targets, **options):
    """−log p of each target, in nats: (B, T).  Options as for `logits`."""
    z = logits(p, tokens, design, **options).astype(np.float64)  # (B·T, V)
    z -= z.max(-1, keepdims=True)
    right = z[np.arange(len(z)), targets.ravel()]  # (B·T,)
    return (np.log(np.exp(z).sum(-1)) - right).reshape(tokens.shape)


def norms_by_layer(p, design, tokens, targets):
    """How large the stream is before the first layer and after each, and its gradient there.

    Returns
    -------
    activations, gradients : list of float, length n_layer + 1
        Root mean square of the stream; norm of the loss's gradient with respect to it.
    """
    activations, gradients = [], []
    weights = np.ones(tokens.shape, p["token_embd"].dtype)  # (B, T)
    options = {"watch": pieces.watch(activations, gradients)}
    value_and_grad(loss)(p, design, tokens, targets, weights, **options)
    return activations, gradients
