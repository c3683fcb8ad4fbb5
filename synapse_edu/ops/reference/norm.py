"""RMSNorm: divide a row by its root mean square, then scale each channel."""

import numpy as np

F32 = np.float32


def rms_norm(x, weight, eps):
    """Root-mean-square normalisation (Zhang & Sennrich, 2019).

    Parameters
    ----------
    x : ndarray of float32, shape (n, n_embd)
    weight : ndarray of float32, shape (n_embd,)
        The learned scale g.
    eps : float

    Returns
    -------
    scaled : ndarray of float32, shape (n, n_embd)
        x / sqrt(mean(x²) + eps)
    normed : ndarray of float32, shape (n, n_embd)
        scaled · g

    Notes
    -----
    llama.cpp: ``ggml_compute_forward_rms_norm_f32`` (ops.cpp).  The squares are float32, their
    sum is float64 and runs left to right.  x is multiplied by the rounded reciprocal of the
    root, not divided by the root, and the weight comes last: g · scale is never formed.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        squares = (x * x).astype(np.float64)  # (n, n_embd)
        # cumsum adds strictly left to right; sum() would add pairwise.
        total = np.cumsum(squares, axis=-1)[..., -1:]  # (n, 1)
        mean = (total / x.shape[-1]).astype(F32)  # (n, 1)
        scale = F32(1) / np.sqrt(mean + F32(eps))  # (n, 1)
        scaled = x * scale  # (n, n_embd)
        return scaled, scaled * weight
