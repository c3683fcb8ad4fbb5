"""The forward pass as Llama 3's official code runs it: a batch of rows, and a cache in place.

Where `walk.py` follows one token, this follows tokens of shape (B, S) with a `start_pos`, after
the published behaviour of ``llama/model.py`` and ``llama/generation.py``: a table of complex
rotations sliced by absolute position, a mask that is wider than high when the cache is not empty,
keys and values written into a preallocated cache, key/value heads repeated for their query heads,
a separate output matrix, and logits in float32.

`logits_without_cache` is the same pass over whole sequences, as training needs it; given
``autograd.numpy`` in place of NumPy it can be differentiated.

Parameters have the official names: ``tok_embeddings.weight``, ``layers.0.attention.wq.weight``,
``layers.0.feed_forward.w1.weight`` (gate), ``w3`` (up), ``w2`` (down), ``norm.weight``,
``output.weight``; a matrix is (n_out, n_in).
"""

import numpy as np

from ..errors import BadArgument, ContextFull
from .params import OFFICIAL, ModelArgs

F32 = np.float32


def precompute_freqs_cis(head_dim, end, theta):
    """Rotations e^(i·p·θ_j) of every position p and pair j, complex64 (end, head_dim / 2)."""
    freqs = 1.0 / theta ** (np.arange(0, head_dim, 2, dtype=F32)[: head_dim // 2] / head_dim)
    angles = np.outer(np.arange(end, dtype=F32), freqs.astype(F32))  # (end, head_dim / 2)
    return (np.cos(angles) + 1j * np.sin(angles)).astype(np.complex64)


def causal_mask(n, start_pos):
    """What the rows of a batch may see: (S, start_pos + S) of 0 and −∞, or None for one row.

    Row i is the token at position start_pos + i, so it sees everything in the cache, the left
    part, and the new tokens up to itself.
    """
    if n == 1:
        return None
    upper = np.triu(np.full((n, n), -np.inf, F32), k=1)  # (S, S)
    return np.hstack([np.zeros((n, start_pos), F32), upper])  # (S, start_pos + S)


def rms_norm(x, weight, eps, xp=np):
    return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def apply_rotary(x, freqs_cis, xp=np):
    """Rotate pairs of neighbours: x (B, S, heads, head_dim), freqs_cis (S, head_dim / 2)."""
    cos, sin = freqs_cis.real[:, None], freqs_cis.imag[:, None]  # (S, 1, head_dim / 2) each
    a, b = x[..., 0::2], x[..., 1::2]  # (B, S, heads, head_dim / 2) each
    return xp.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)


def repeat_kv(x, n_rep, xp=np):
    """Each key/value head once for every query head that shares it: (B, T, kv·n_rep, head_dim)."""
    return x if n_rep == 1 else xp.repeat(x, n_rep, axis=2)


def softmax(scores, xp=np):
    e = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def attention(q, keys, values, mask, xp=np):
    """q (B, S, heads, hd) on keys and values (B, T, heads, hd): (B, S, heads · hd)."""
    n_batch, n = q.shape[:2]
    q, keys, values = (xp.transpose(z, (0, 2, 1, 3)) for z in (q, keys, values))
    scores = xp.matmul(q, xp.transpose(keys, (0, 1, 3, 2))) / np.sqrt(F32(q.shape[-1]))
    if mask is not None:
        scores = scores + mask  # (B, heads, S, T)
    out = xp.matmul(softmax(scores, xp), values)  # (B, heads, S, hd)
    return xp.reshape(xp.transpose(out, (0, 2, 1, 3)), (n_batch, n, -1))


def block(p, i, h, args, freqs_cis, mask, remember, xp=np):
    """One layer on h (B, S, dim).

    `remember(k, v)` takes the new keys and values (B, S, kv heads, hd) and returns all that are
    to be attended to: with a cache the earlier ones too, without it just these.
    """
    at = f"layers.{i}."
    n_batch, n = h.shape[:2]
    x = rms_norm(h, p[at + "attention_norm.weight"], args.norm_eps, xp)
    q, k, v = (
        xp.reshape(xp.matmul(x, p[f"{at}attention.{name}.weight"].T), (n_batch, n, heads, -1))
        for name, heads in (("wq", args.n_heads), ("wk", args.kv_heads), ("wv", args.kv_heads))
    )
    q, k = apply_rotary(q, freqs_cis, xp), apply_rotary(k, freqs_cis, xp)
    n_rep = args.n_heads // args.kv_heads
    keys, values = (repeat_kv(z, n_rep, xp) for z in remember(k, v))
    h = h + xp.matmul(attention(q, keys, values, mask, xp), p[at + "attention.wo.weight"].T)
    x = rms_norm(h, p[at + "ffn_norm.weight"], args.norm_eps, xp)
    gate = xp.matmul(x, p[at + "feed_forward.w1.weight"].T)  # (B, S, ffn)
    up = xp.matmul(x, p[at + "feed_forward.w3.weight"].T)  # (B, S, ffn)
    return h + xp.matmul(gate / (1 + xp.exp(-gate)) * up, p[at + "feed_forward.w2.weight"].T)


def logits_without_cache(p, tokens, args, xp=np, mask=None):
    """The pass over whole sequences, tokens (B, S) → logits (B, S, vocab); for training.

    `mask`, if it is given, is added to the scores (B, heads, S, S) instead of the causal one.
    """
    n = tokens.shape[1]
    freqs_cis = precompute_freqs_cis(args.head_dim, n, args.rope_theta)  # (S, head_dim / 2)
    mask = causal_mask(n, 0) if mask is None else mask
    h = p["tok_embeddings.weight"][tokens]  # (B, S, dim)
    for i in range(args.n_layers):
        h = block(p, i, h, args, freqs_cis, mask, lambda k, v: (k, v), xp)
    h = rms_norm(h, p["norm.weight"], args.norm_eps, xp)
    return xp.matmul(h, p["output.weight"].T)


class Transformer:
    """The official model with its cache.

    Parameters
    ----------
    args : ModelArgs
    params : dict of str → ndarray of float32
        By official name.

    Raises
    ------
    BadArgument
        If a tensor is missing or has another shape than `args` says.
    """

    def __init__(self, args, params):
        self.args, self.params = args.check(), params
        for name, shape in args.shapes():
            found = np.shape(params[name]) if name in params else "nothing"
            if found != shape:
                raise BadArgument(f"{name}: the numbers ask for {shape}, but there is {found}.")
        shape = (args.max_batch_size, args.max_seq_len, args.kv_heads, args.head_dim)
        self.cache_k = np.zeros((args.n_layers, *shape), F32)  # (layers, B, T, kv heads, hd)
        self.cache_v = np.zeros((args.n_layers, *shape), F32)  # (layers, B, T, kv heads, hd)
        # twice as long as needed, as in the official code
        self.freqs_cis = precompute_freqs_cis(args.head_dim, 2 * args.max_seq_len, args.rope_theta)

    def forward(self, tokens, start_pos):
        """Score every token of a batch.

        Parameters
        ----------
        tokens : ndarray of int, shape (B, S)
        start_pos : int
            Position of the first of them; the cache holds what came before.

        Returns
        -------
        ndarray of float32, shape (B, S, vocab)

        Raises
        ------
        BadArgument
            For tokens of another shape or kind, more rows than the cache has, unknown ids.
        ContextFull
            Beyond `max_seq_len`.
        """
        tokens, p = np.asarray(tokens), self.params
        self._check(tokens, start_pos)
        n_batch, n = tokens.shape
        rows = slice(start_pos, start_pos + n)
        mask = causal_mask(n, start_pos)
        h = p["tok_embeddings.weight"][tokens]  # (B, S, dim)
        for i in range(self.args.n_layers):

            def remember(k, v, i=i):
                self.cache_k[i, :n_batch, rows], self.cache_v[i, :n_batch, rows] = k, v
                seen = slice(0, start_pos + n)
                return self.cache_k[i, :n_batch, seen], self.cache_v[i, :n_batch, seen]

            h = block(p, i, h, self.args, self.freqs_cis[rows], mask, remember)
        h = rms_norm(h, p["norm.weight"], self.args.norm_eps)
        return (h @ p["output.weight"].T).astype(F32)  # (B, S, vocab)

    def _check(self, tokens, start_pos):
        if tokens.ndim != 2 or tokens.dtype.kind not in "iu" or not tokens.size:
            raise BadArgument(
                f"tokens must be whole numbers of shape (B, S), not {tokens.dtype} of shape "
                f"{tokens.shape}. Prompts of different lengths go to ragged.generate."
            )
        args, (n_batch, n) = self.args, tokens.shape
        if n_batch > args.max_batch_size:
            raise BadArgument(f"{n_batch} rows; the cache was made for {args.max_batch_size}.")
        if start_pos < 0 or start_pos + n > args.max_seq_len:
            raise ContextFull(
                f"Positions {start_pos} to {start_pos + n - 1} do not fit: max_seq_len is "
                f"{args.max_seq_len}."
            )
        if tokens.min() < 0 or tokens.max() >= len(self.params["tok_embeddings.weight"]):
            raise BadArgument("A token id is outside the vocabulary.")


def from_weights(weights, config, max_batch_size=4, max_seq_len=256):
    """ModelArgs and official parameters from a loaded GGUF model, decoded to float32.

    The pairs of RoPE are neighbours in both, so q and k need no permutation.

    Raises
    ------
    BadArgument
        For what the official Llama 3 pass has not: another architecture, biases, scaled
        rotations, heads that are partly rotated or do not add up to the stream's width.
    """
    rope = config.rope
    if config.architecture != "llama" or config.rope_freqs or rope.scaling != "none":
        raise BadArgument("The official Llama 3 pass knows one architecture and plain rotations.")
    if config.n_embd_head != config.n_embd or rope.n_rot != config.head_dim:
        raise BadArgument("The official Llama 3 pass has heads of dim / n_heads, wholly rotated.")
    fields = (item for layer in weights.layers for item in vars(layer).items())
    if any(name.endswith("_bias") and x is not None for name, x in fields):
        raise BadArgument("The official Llama 3 pass knows no biases; this model has some.")
    p = {
        "tok_embeddings.weight": weights.token_embd.rows(),
        "norm.weight": weights.output_norm,
        "output.weight": weights.output.rows(),
    }
    for i, layer in enumerate(weights.layers):
        for ours, theirs in OFFICIAL.items():
            x = getattr(layer, ours)
            p[f"layers.{i}.{theirs}.weight"] = x if isinstance(x, np.ndarray) else x.rows()
    args = ModelArgs.from_config(config, max_batch_size=max_batch_size, max_seq_len=max_seq_len)
    return args, p
