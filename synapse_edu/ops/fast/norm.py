"""RMSNorm in compiled code: the twin of ``ops.reference.norm``."""

import numpy as np
from numba import float32, float64

from .jit import inner, njit
from .memory import f32_at

ONE = np.float32(1)


@inner
def _reciprocal(total, n, eps):
    """1 / root mean square from a sum of squares, each step rounded to float32."""
    return ONE / np.sqrt(float32(total / n) + eps)


@inner
def _scale(x, eps):
    """The rounded reciprocal of a row's root mean square: a float64 sum, left to right."""
    total = 0.0
    for v in x:
        total += float64(v * v)
    return _reciprocal(total, x.size, eps)


@inner
def _apply(row, scale, w, y):
    for i in range(row.size):
        y[i] = (row[i] * scale) * w[i]


@inner
def rms_norm_row(x, weight, out, n, eps):
    """One row of `n` float32 by address; ggml: ``ggml_compute_forward_rms_norm_f32``."""
    row = f32_at(x, n)
    _apply(row, _scale(row, eps), f32_at(weight, n), f32_at(out, n))


@inner
def rms_norm_rows(x, stride, n_rows, weight, out, n, eps):
    """Up to four rows, `stride` bytes apart, to rows that follow each other.

    A sum is a chain of additions, each of which waits for the one before; so four run abreast.
    """
    last, w = n_rows - 1, f32_at(weight, n)
    a, b = f32_at(x, n), f32_at(x + min(1, last) * stride, n)
    c, d = f32_at(x + min(2, last) * stride, n), f32_at(x + min(3, last) * stride, n)
    sum_a = sum_b = sum_c = sum_d = 0.0
    for i in range(n):
        sum_a += float64(a[i] * a[i])
        sum_b += float64(b[i] * b[i])
        sum_c += float64(c[i] * c[i])
        sum_d += float64(d[i] * d[i])
    sums = (sum_a, sum_b, sum_c, sum_d)
    for r in range(n_rows):
        row = f32_at(x + r * stride, n)
        _apply(row, _reciprocal(sums[r], n, eps), w, f32_at(out + 4 * r * n, n))


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
