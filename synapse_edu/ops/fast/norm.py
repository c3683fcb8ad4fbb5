"""RMSNorm in compiled code: the twin of ``ops.reference.norm``."""

import numpy as np
from numba import float32, float64

from .jit import inner, njit
from .memory import f32_at

ONE = np.float32(1)


@inner
def _scale(x, eps):
    """The rounded reciprocal of a row's root mean square: a float64 sum, left to right."""
    total = 0.0
    for v in x:
        total += float64(v * v)
    return ONE / np.sqrt(float32(total / x.size) + eps)


@inner
def rms_norm_row(x, weight, out, n, eps):
    """One row of `n` float32 by address; ggml: ``ggml_compute_forward_rms_norm_f32``."""
    row, w, y = f32_at(x, n), f32_at(weight, n), f32_at(out, n)
    scale = _scale(row, eps)
    for i in range(n):
        y[i] = (row[i] * scale) * w[i]


@njit
def _rows(x, weight, eps, scaled, normed):
    for t in range(x.shape[0]):
        scale = _scale(x[t], eps)
        for i in range(x.shape[1]):
            v = x[t, i] * scale
            scaled[t, i] = v
            normed[t, i] = v * weight[i]


def rms_norm(x, weight, eps):
    """Root-mean-square normalisation of the rows of x (n, n_embd): (scaled, normed)."""
    x = np.ascontiguousarray(x, np.float32)  # (n, n_embd)
    scaled, normed = np.empty_like(x), np.empty_like(x)  # (n, n_embd)
    _rows(x, np.ascontiguousarray(weight, np.float32), np.float32(eps), scaled, normed)
    return scaled, normed
