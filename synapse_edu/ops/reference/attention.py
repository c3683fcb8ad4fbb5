"""Attention: each query scores every cached key, and takes the weighted average of the values.

Grouped-query attention (Ainslie et al., 2023): query head h reads key/value head h // n_group.
"""

import numpy as np

from .elementary import log
from .feedforward import exp, group
from .matmul import float_dot

F32 = np.float32


def _round(x, storage):
    """x rounded to `storage` and widened again, float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(np.float16).astype(F32) if storage == "float16" else x


def temperature(q, positions, scale, n_ctx_orig):
    """Mistral 3's sharpening of attention beyond the original context.

    Parameters
    ----------
    q : ndarray of float32, shape (n, n_head, head_dim)
    positions : sequence of int, shape (n,)
    scale : float
    n_ctx_orig : int
        N: below this position the factor is exactly 1.

    Returns
    -------
    ndarray of float32, shape (n, n_head, head_dim)
        q · (1 + scale · ln(⌊p/N⌋ + 1))

    Notes
    -----
    llama.cpp: ``llm_graph_input_attn_temp::set_input`` (llama-graph.cpp).
    """
    spans = np.floor(np.asarray(positions).astype(F32) / F32(n_ctx_orig))  # (n,)
    factor = log(spans.astype(np.float64) + 1.0) * float(F32(scale)) + 1.0  # (n,)
    with np.errstate(over="ignore", invalid="ignore"):
        return q * factor.astype(F32)[:, None, None]


def scores(q, keys, numerics):
    """Dot product of every query head with every cached key, not yet scaled or masked.

    Parameters
    ----------
    q : ndarray of float32, shape (n, n_head, head_dim)
    keys : ndarray of float16 or float32, shape (n_head_kv, n_kv, head_dim)
    numerics : Numerics
        `q` is the storage that the query is rounded to.

    Returns
    -------
    ndarray of float32, shape (n, n_head, n_kv)

    Notes
    -----
    llama.cpp: the tensor ``kq`` of ``build_attn_mha`` (llama-graph.cpp).
    """
    n, n_head, head_dim = q.shape
    n_group = n_head // len(keys)
    q = _round(q, numerics.q)
    # The AVX2 build tiles a batch only if a head's queries lie together in memory.  They lie
    # token by token; rounding them for a float16 cache brings them together, a float32 one not.
    batch = n if keys.dtype == np.float16 or n_head == 1 else 1
    out = np.empty((n, n_head, keys.shape[1]), F32)  # (n, n_head, n_kv)
    for g, key in enumerate(keys):
        heads = slice(g * n_group, (g + 1) * n_group)
        rows = q[:, heads].reshape(n * n_group, head_dim)  # (n · n_group, head_dim)
        out[:, heads] = float_dot(key, rows, numerics, batch).reshape(n, n_group, -1)
    return out


def softmax(scores, numerics, scale=1.0, visible=None, tail=False):
    """Scale, mask, exponentiate, and divide by the sum.

    Parameters
    ----------
    scores : ndarray of float32, shape (n, heads, n_kv)
    numerics : Numerics
    scale : float
        Multiplies the scores, in float32: 1/√head_dim.
    visible : sequence of int, shape (n,), optional
        How many positions each token may see; the others get weight 0 exactly.
    tail : bool
        Whether a row may end within a group, whose elements then use libm's expf.  llama.cpp
        pads a row of its cache to a multiple of 256, so in the forward pass none does.

    Returns
    -------
    ndarray of float32, shape (n, heads, n_kv)

    Notes
    -----
    llama.cpp: ``ggml_compute_forward_soft_max_f32`` (ops.cpp) and ``ggml_vec_soft_max_f32``
    (vec.cpp).  The terms are summed in float64, each group first in float32; the result is
    multiplied by the rounded reciprocal of the sum.
    """
    n_kv = scores.shape[-1]
    with np.errstate(over="ignore", invalid="ignore"):
        w = scores * F32(scale)  # (n, heads, n_kv)
        if visible is not None:
            hidden = np.arange(n_kv) >= np.asarray(visible)[:, None]  # (n, n_kv)
            w = np.where(hidden[:, None, :], F32(-np.inf), w)
        top = w.max(axis=-1, keepdims=True)  # (n, heads, 1)
        p = exp(w - top, numerics, tail)  # (n, heads, n_kv)
        total = _sum(p, numerics, tail)  # (n, heads, 1)
        return p * (1.0 / total).astype(F32)


def _sum(p, numerics, tail):
    """Sum of the last axis in float64, in the order of `numerics`."""
    if numerics.order == "float64":
        return np.cumsum(p.astype(np.float64), axis=-1)[..., -1:]
    width = group(numerics)
    whole = p.shape[-1] - p.shape[-1] % width if tail else p.shape[-1]
    pad = -whole % width
    body = np.concatenate([p[..., :whole], np.zeros((*p.shape[:-1], pad), F32)], axis=-1)
    parts = body.reshape(*p.shape[:-1], -1, width)  # (…, groups, width)
    if width == 8:
        parts = parts[..., 4:] + parts[..., :4]  # (…, groups, 4)
        parts = (parts[..., 0] + parts[..., 2]) + (parts[..., 1] + parts[..., 3])
    else:
        parts = (parts[..., 0] + parts[..., 1]) + (parts[..., 2] + parts[..., 3])
    terms = np.concatenate([parts, p[..., whole:]], axis=-1)  # (…, groups + tail)
    return np.cumsum(terms.astype(np.float64), axis=-1)[..., -1:]


def weighted_values(probabilities, values, numerics):
    """Average of the cached values, weighted by the probabilities.

    Parameters
    ----------
    probabilities : ndarray of float32, shape (n, n_head, n_kv)
    values : ndarray of float16 or float32, shape (n_head_kv, n_kv, head_dim)
    numerics : Numerics
        `probabilities` is the storage that the weights are rounded to.

    Returns
    -------
    ndarray of float32, shape (n, n_head, head_dim)

    Notes
    -----
    llama.cpp: the tensor ``kqv`` of ``build_attn_mha``.  Its cache is longer than the tokens in
    it, a multiple of 256; zeros stand for the rest here.
    """
    n, n_head, n_kv = probabilities.shape
    n_group = n_head // len(values)
    p = _round(probabilities, numerics.probabilities)
    # The AVX2 order has a separate path for leftovers, which a padded cache never takes.
    pad = -n_kv % 32 if numerics.order == "avx2" else 0
    if pad:
        p = np.pad(p, ((0, 0), (0, 0), (0, pad)))
        values = np.pad(values, ((0, 0), (0, pad), (0, 0)))
    batch = n if values.shape[2] % 4 == 0 else 1  # its tiles are four rows high
    out = np.empty((n, n_head, values.shape[2]), F32)  # (n, n_head, head_dim)
    for g, value in enumerate(values):
        heads = slice(g * n_group, (g + 1) * n_group)
        rows = p[:, heads].reshape(n * n_group, -1)  # (n · n_group, n_kv)
        out[:, heads] = float_dot(value.T, rows, numerics, batch).reshape(n, n_group, -1)
    return out
