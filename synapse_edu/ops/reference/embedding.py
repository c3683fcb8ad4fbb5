"""The embedding: each id picks its row of the table."""

import numpy as np

from ...errors import BadArgument


def embedding(weight, ids):
    """Rows of the embedding table, decoded to float32.

    Parameters
    ----------
    weight : Matrix, shape (n_vocab, n_embd)
    ids : sequence of int, shape (n,)

    Returns
    -------
    ndarray of float32, shape (n, n_embd)

    Notes
    -----
    llama.cpp: ``ggml_compute_forward_get_rows`` (ops.cpp).
    """
    ids = np.asarray(ids)  # (n,)
    if ids.dtype.kind not in "iu" or ids.ndim != 1:
        raise BadArgument(f"ids must be a list of integers, not {ids.dtype} of shape {ids.shape}.")
    if ids.size and not (0 <= ids.min() and ids.max() < weight.n_out):
        bad = int(ids[(ids < 0) | (ids >= weight.n_out)][0])
        raise BadArgument(f"id {bad} is outside the vocabulary of {weight.n_out} tokens.")
    return weight.rows(ids)  # (n, n_embd)
