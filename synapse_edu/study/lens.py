"""The logit lens: what the model would predict if the pass ended after each layer.

Every layer adds to one residual stream, and only the last state of the stream is meant to be
scored.  Scoring the earlier states too, with the same last norm and output matrix, shows where
a prediction arises (nostalgebraist, "interpreting GPT: the logit lens", 2020).
"""

import numpy as np

from ..ops.reference.matmul import matmul
from ..ops.reference.norm import rms_norm


def stream(trace, position=-1):
    """The residual stream of one token: as it enters the layers, and after each of them.

    Parameters
    ----------
    trace : Trace
    position : int

    Returns
    -------
    ndarray of float32, shape (n_layer + 1, n_embd)
    """
    layers = range(trace.config.n_layer)
    states = [trace.value("embedding", None, position)]
    states += [trace.value("layer_output", layer, position) for layer in layers]
    return np.stack(states)  # (n_layer + 1, n_embd)


def norms(states):
    """Length of each state of the stream: (n_layer + 1, n_embd) → float64 (n_layer + 1,)."""
    return np.sqrt(np.square(states.astype(np.float64)).sum(axis=-1))  # (n_layer + 1,)


def logit_lens(states, weights, config, numerics):
    """Scores of the next token from each state of the stream.

    Parameters
    ----------
    states : ndarray of float32, shape (n_layer + 1, n_embd)
        As `stream` returns them.
    weights : Weights
    config : Config
    numerics : Numerics

    Returns
    -------
    ndarray of float32, shape (n_layer + 1, n_vocab)
        The last row is the model's own logits, bit for bit.
    """
    _, normed = rms_norm(states, weights.output_norm, config.rms_eps)  # (n_layer + 1, n_embd)
    logits = matmul(weights.output, normed, numerics)  # (n_layer + 1, n_vocab)
    bias = getattr(weights, "output_bias", None)
    return logits if bias is None else logits + bias
