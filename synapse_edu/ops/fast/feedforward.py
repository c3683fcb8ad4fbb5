"""SwiGLU in compiled code: the twin of ``ops.reference.feedforward``."""

import numpy as np

from .elementary import exp_exact_one, exp_poly_one, expf_one
from .jit import inner, njit
from .memory import f32_at

ZERO, ONE = np.float32(0), np.float32(1)
LLAMA_CPP, EXACT = 0, 1  # which exponential: ggml's polynomial, or float64 rounded once


def exp_kind(numerics):
    """The code of ``numerics.elementary`` for compiled functions."""
    return EXACT if numerics.elementary == "exact" else LLAMA_CPP


@inner
def swiglu_row(gate, up, out, n, n_after, kind):
    """``out = silu(gate) · up`` for `n` float32 by address; ggml: ``ggml_vec_swiglu_f32``.

    `n_after` elements of the row follow these ones.  Elements after the row's last whole group of
    four use libm's expf, as there.
    """
    g, u, y = f32_at(gate, n), f32_at(up, n), f32_at(out, n)
    if kind == EXACT:
        for i in range(n):
            y[i] = g[i] / (ONE + exp_exact_one(ZERO - g[i])) * u[i]
        return
    whole = max(0, n + n_after - (n + n_after) % 4)
    for i in range(min(n, whole)):
        y[i] = g[i] / (ONE + exp_poly_one(ZERO - g[i])) * u[i]
    for i in range(whole, n):
        y[i] = g[i] / (ONE + expf_one(ZERO - g[i])) * u[i]


@njit
def _rows(gate, up, out, n_rows, n, kind):
    for t in range(n_rows):
        at = 4 * t * n
        swiglu_row(gate + at, up + at, out + at, n, 0, kind)


def swiglu(gate, up, numerics):
    """SiLU of the gate times the other projection, both (n, n_ff): (n, n_ff)."""
    gate, up = (np.ascontiguousarray(x, np.float32) for x in (gate, up))  # (n, n_ff)
    out = np.empty_like(gate)  # (n, n_ff)
    at = [x.ctypes.data for x in (gate, up, out)]
    _rows(*at, gate.size // max(gate.shape[-1], 1), gate.shape[-1], exp_kind(numerics))
    return out


def silu(gate, numerics):
    """gate / (1 + e^(-gate)), element by element along the last axis."""
    return swiglu(gate, np.ones_like(gate), numerics)
