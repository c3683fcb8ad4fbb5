"""RoPE: each pair of a head's elements is turned by an angle proportional to the position.

Su et al., 2021.  The schedule of angles is stretched in one of three ways: linearly, by a
frequency factor for each pair (Llama 3), or by YaRN (Peng et al., 2023).
"""

import numpy as np

from ...errors import BadArgument
from .elementary import fma, logf, powf, sincosf

F32 = np.float32
PI = F32(np.pi)


def freq_scale(rope):
    """1 / factor in float32; 1 for an unscaled schedule."""
    if rope.scaling == "none" or rope.factor == 0:
        return F32(1)
    return F32(1) / F32(rope.factor)


def yarn_attn_factor(rope):
    """Magnitude that llama.cpp's context hands to RoPE (``llama_context``, llama-context.cpp).

    RoPE itself multiplies by 1 + 0.1 ln F under YaRN.  The context divides by that first, and
    for Mistral 3 by the file's own multiplier too; the roundings of both remain.
    """
    file_factor = F32(rope.attn_factor)
    if rope.scaling != "yarn":
        return file_factor
    factor = F32(1) / freq_scale(rope)

    def magnitude(m):
        return F32(1) if factor <= 1 else F32(0.1) * F32(m) * logf(factor) + F32(1)

    result = magnitude(1)
    if rope.yarn_log_multiplier != 0:
        result = result / magnitude(rope.yarn_log_multiplier)
    result = result * (F32(1) / (F32(1) + F32(0.1) * logf(factor)))
    return result * file_factor


def yarn_range(rope):
    """Pairs between which YaRN's ramp runs: (low, high), float32.

    llama.cpp: ``ggml_rope_yarn_corr_dims`` (ggml.c).
    """

    def pair(beta):  # the pair that makes `beta` turns within the original context
        turns = F32(rope.n_ctx_orig) / (F32(beta) * F32(2) * PI)
        return F32(rope.n_rot) * logf(turns) / (F32(2) * logf(F32(rope.freq_base)))

    low = max(F32(0), np.floor(pair(rope.beta_fast)))
    high = min(F32(rope.n_rot - 1), np.ceil(pair(rope.beta_slow)))
    return F32(low), F32(high)


def yarn_mix(rope):
    """How much of each pair's own angle YaRN keeps: 1 for fast pairs, 0 for slow ones.

    Returns
    -------
    ndarray of float32, shape (n_rot / 2,)
    """
    low, high = yarn_range(rope)
    pairs = np.arange(rope.n_rot // 2, dtype=F32)  # (n_rot / 2,)
    ramp = (pairs - low) / max(F32(0.001), high - low)  # (n_rot / 2,)
    return F32(1) - np.clip(ramp, F32(0), F32(1))


def angles(positions, rope, freq_factors, numerics, attn_factor=None):
    """Cosine and sine of every pair's angle.

    Parameters
    ----------
    positions : sequence of int, shape (n,)
    rope : config.Rope
    freq_factors : ndarray of float32, shape (n_rot / 2,), or None
        Divisor of each pair's angle.
    numerics : Numerics
        Its switch `fma` contracts YaRN's blend.
    attn_factor : float, optional
        Magnitude before YaRN's own; by default `yarn_attn_factor(rope)`.

    Returns
    -------
    cos, sin : ndarray of float32, shape (n, n_rot / 2)

    Notes
    -----
    llama.cpp: ``ggml_rope_cache_init`` and ``rope_yarn`` (ops.cpp).  The angle of pair i is the
    position multiplied i times by base^(-2/n_rot), rounded each time, not p·base^(-2i/n_rot).
    """
    n_pair = rope.n_rot // 2
    step = powf(F32(rope.freq_base), F32(-2.0) / F32(rope.n_rot))
    theta = np.empty((len(positions), n_pair), F32)  # (n, n_pair)
    turned = np.asarray(positions).astype(F32)  # (n,)
    for i in range(n_pair):
        theta[:, i] = turned
        turned = turned * step
    if freq_factors is not None:
        theta = theta / freq_factors  # (n, n_pair)
    scale = freq_scale(rope)
    magnitude = F32(yarn_attn_factor(rope) if attn_factor is None else attn_factor)
    angle = scale * theta  # (n, n_pair)
    if rope.scaling == "yarn":
        mix = yarn_mix(rope)  # (n_pair,)
        gain = logf(F32(1) / scale)
        if numerics.fma:
            angle = fma(angle, F32(1) - mix, theta * mix)
            magnitude = magnitude * fma(gain, F32(0.1), F32(1))
        else:
            angle = angle * (F32(1) - mix) + theta * mix
            magnitude = magnitude * (F32(0.1) * gain + F32(1))
    sin, cos = sincosf(angle)
    return cos * magnitude, sin * magnitude


def rope(x, positions, rope, freq_factors, numerics, attn_factor=None):
    """Turn each pair of each head by its angle.

    Parameters
    ----------
    x : ndarray of float32, shape (n, heads, head_dim)
    positions : sequence of int, shape (n,)
    rope : config.Rope
        Elements beyond `n_rot` are copied.
    freq_factors, numerics, attn_factor
        As for `angles`; the switch `fma` contracts the rotation too.

    Returns
    -------
    ndarray of float32, shape (n, heads, head_dim)
    """
    if rope.n_rot % 2 or not 0 < rope.n_rot <= x.shape[-1]:
        raise BadArgument(
            f"RoPE turns pairs: n_rot must be even and at most head_dim = {x.shape[-1]}, "
            f"not {rope.n_rot}."
        )
    cos, sin = angles(positions, rope, freq_factors, numerics, attn_factor)  # (n, n_pair)
    return rotate(x, cos, sin, rope, numerics)  # (n, heads, head_dim)


def rotate(x, cos, sin, rope, numerics):
    """Turn each pair of each head by angles known from `angles`: one table serves every layer.

    Parameters
    ----------
    x : ndarray of float32, shape (n, heads, head_dim)
    cos, sin : ndarray of float32, shape (n, n_rot / 2)
    rope, numerics
        As for `rope`.

    Returns
    -------
    ndarray of float32, shape (n, heads, head_dim)

    Notes
    -----
    llama.cpp: ``rotate_pairs`` (ops.cpp).  In its AVX2 build the compiler takes neighbouring
    pairs two at a time; the last of an odd number is left over, and is not fused.
    """
    cos, sin = cos[:, None, :], sin[:, None, :]  # (n, 1, n_pair)
    if rope.layout == "normal":
        first, second = slice(0, rope.n_rot, 2), slice(1, rope.n_rot, 2)
    else:
        first, second = slice(0, rope.n_rot // 2), slice(rope.n_rot // 2, rope.n_rot)
    a, b = x[..., first], x[..., second]  # (n, heads, n_pair)
    out = x.copy()  # (n, heads, head_dim)
    with np.errstate(over="ignore", invalid="ignore"):  # a damaged value may be infinite
        turned_a, turned_b = a * cos - b * sin, a * sin + b * cos  # (n, heads, n_pair)
        if numerics.fma:
            left_over = rope.layout == "normal" and a.shape[-1] % 2
            fused = slice(0, a.shape[-1] - left_over)
            a, b, cos, sin = (y[..., fused] for y in (a, b, cos, sin))
            turned_a[..., fused] = fma(a, cos, -(b * sin))
            turned_b[..., fused] = fma(a, sin, b * cos)
    out[..., first], out[..., second] = turned_a, turned_b
    return out
