"""RoPE in compiled code: the twin of ``ops.reference.rope``.

The angles of a position are made once for a whole model, so they stay where they are; what runs
for every token and layer is the rotation.
"""

import numpy as np

from ..reference import rope as reference
from .jit import inner, njit
from .memory import f32_at

angles = reference.angles


@inner
def rotate_row(x, cos, sin, n_heads, head_dim, n_rot, neox):
    """Turn the heads of one token in place: x (n_heads, head_dim), cos and sin (n_rot / 2).

    All by address.  ggml: ``rotate_pairs`` (ops.cpp).  `neox` pairs element i with i + n_rot / 2,
    otherwise neighbours are pairs.
    """
    n_pair = n_rot >> 1
    c, s = f32_at(cos, n_pair), f32_at(sin, n_pair)
    for h in range(n_heads):
        head = f32_at(x + 4 * h * head_dim, head_dim)
        for i in range(n_pair):
            first, second = (i, i + n_pair) if neox else (2 * i, 2 * i + 1)
            a, b = head[first], head[second]
            head[first], head[second] = a * c[i] - b * s[i], a * s[i] + b * c[i]


@njit
def _rotate(x, cos, sin, n_heads, head_dim, n_rot, neox, n):
    for t in range(n):
        at = 4 * t * (n_rot >> 1)
        row = x + 4 * t * n_heads * head_dim
        rotate_row(row, cos + at, sin + at, n_heads, head_dim, n_rot, neox)


def rotate(x, cos, sin, rope, numerics):
    """Turn each pair of each head of x (n, heads, head_dim) by angles from `angles`.

    The rotation is not fused: ``numerics.fma`` belongs to the AVX2 order, which the reference
    backend computes.
    """
    out = np.array(x, np.float32, order="C")  # (n, heads, head_dim)
    cos, sin = (np.ascontiguousarray(y, np.float32) for y in (cos, sin))  # (n, n_rot / 2)
    n, heads, head_dim = out.shape
    at = [y.ctypes.data for y in (out, cos, sin)]
    _rotate(*at, heads, head_dim, rope.n_rot, rope.layout != "normal", n)
    return out


def rope(x, positions, rope, freq_factors, numerics, attn_factor=None):
    """Turn each pair of each head by its angle, as ``ops.reference.rope.rope`` does."""
    cos, sin = angles(positions, rope, freq_factors, numerics, attn_factor)  # (n, n_rot / 2)
    return rotate(x, cos, sin, rope, numerics)  # (n, heads, head_dim)
