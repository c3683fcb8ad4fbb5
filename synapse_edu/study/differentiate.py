"""The official pass differentiated by autograd: the twin of `backward` that needs no derivation.

autograd records what `model/batched.py` computes, and walks the record backwards.  The function
has the signature of its hand-written twin and the same result; it is slower, and it follows any
change to the pass by itself, which makes it the one to experiment with.
"""

import autograd.numpy as anp
import numpy as np
from autograd import value_and_grad

from ..model import batched
from ..model.params import OFFICIAL, ModelArgs
from .backward import document_mask


def official(p):
    """Parameters under their official names; the tied table stands under both of its names."""
    found = {"tok_embeddings.weight": p["token_embd"], "output.weight": p["token_embd"]}
    found["norm.weight"] = p["output_norm"]
    for name, x in p.items():
        if name.startswith("blk."):
            _, layer, role = name.split(".")
            found[f"layers.{layer}.{OFFICIAL[role]}.weight"] = x
    return found


def loss(p, config, tokens, targets, weights, starts):
    """Mean −log p of the targets, weighted, in nats a token; arguments as for the gradients."""
    mask = document_mask(starts, tokens.shape[1])[:, 0]  # (B, 1, T, T)
    args = ModelArgs.from_config(config)
    logits = batched.logits_without_cache(official(p), tokens, args, anp, mask)  # (B, T, V)
    logits = logits - anp.max(logits, axis=-1, keepdims=True)
    log_p = logits - anp.log(anp.sum(anp.exp(logits), axis=-1, keepdims=True))  # (B, T, V)
    rows, columns = np.indices(targets.shape)  # (B, T) each
    return -anp.sum(log_p[rows, columns, targets] * (weights / weights.sum()))


def loss_and_gradients(p, config, tokens, targets, weights, starts):
    """Loss of next-token prediction over packed documents, and its gradients.

    Parameters
    ----------
    p : dict of str → ndarray
        As in `backward`.
    config : Config
    tokens, targets : ndarray of int, shape (B, T)
    weights : ndarray of float, shape (B, T)
        0 leaves a position out.
    starts : ndarray of int, shape (B, T)
        Where the document of each position begins in its row.

    Returns
    -------
    loss : float
        In nats a token.
    grads : dict of str → ndarray
    """
    value, grads = value_and_grad(loss)(p, config, tokens, targets, weights, starts)
    return float(value), grads
