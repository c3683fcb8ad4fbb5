"""The gated feed-forward layer's nonlinearity: SwiGLU (Shazeer, 2020)."""

import numpy as np

from .elementary import exp_exact, exp_poly, expf

F32 = np.float32


def group(numerics):
    """Values that one vector instruction takes; a shorter tail falls back on libm's exp."""
    return 8 if numerics.order == "avx2" else 4


def exp(x, numerics, tail=True):
    """e^x as soft-max and SiLU take it, in float32.

    Under ``elementary="llama.cpp"`` whole groups of the last axis use ggml's polynomial and,
    with `tail`, the elements after the last whole group use expf.  Otherwise the float64 result
    is rounded once.
    """
    if numerics.elementary == "exact":
        return exp_exact(x)
    y = exp_poly(x, fused=numerics.order == "avx2")  # (…, n)
    rest = x.shape[-1] % group(numerics) if tail else 0
    if rest:
        y[..., -rest:] = expf(x[..., -rest:])
    return y


def silu(gate, numerics):
    """gate / (1 + e^(-gate)), element by element; float32, any shape.

    llama.cpp: ``ggml_v_silu`` (vec.h).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return gate / (F32(1) + exp(F32(0) - gate, numerics))


def swiglu(gate, up, numerics):
    """SiLU of the gate times the other projection.

    Parameters
    ----------
    gate, up : ndarray of float32, shape (n, n_ff)

    Returns
    -------
    ndarray of float32, shape (n, n_ff)

    Notes
    -----
    llama.cpp: ``ggml_vec_swiglu_f32`` (vec.cpp).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return silu(gate, numerics) * up
