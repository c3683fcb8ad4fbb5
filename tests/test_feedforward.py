"""SwiGLU and SiLU, by bits, tails included."""

import numpy as np
import pytest
from golden_data import arrays, differing

from synapse_edu.numerics import Numerics
from synapse_edu.ops.reference.feedforward import silu, swiglu

OPS = arrays("ops")
PORTABLE, AVX2 = Numerics.named("llama.cpp"), Numerics.named("llama.cpp-avx2")


@pytest.mark.parametrize(("build", "numerics"), [("scalar", PORTABLE), ("avx2", AVX2)])
def test_recorded_values(build, numerics):
    a, b = OPS["in.sw_a"], OPS["in.sw_b"]  # 2065 values: a tail of 1
    assert differing(swiglu(a, b, numerics), OPS[f"{build}.swiglu"]) == 0
    assert differing(silu(a, numerics), OPS[f"{build}.silu"]) == 0


@pytest.mark.parametrize("preset", ["textbook", "synapse", "llama.cpp", "llama.cpp-avx2"])
def test_silu_is_gate_times_sigmoid(preset):
    x = np.linspace(-30, 30, 1001, dtype=np.float32)[None]
    want = x.astype(np.float64) / (1 + np.exp(-x.astype(np.float64)))
    assert np.allclose(silu(x, Numerics.named(preset)), want, rtol=1e-6, atol=1e-12)


def test_extreme_gates_are_finite_and_silent():
    x = np.array([[-1e30, -200, 200, 1e30]], np.float32)
    with np.errstate(all="raise", under="ignore"):
        assert silu(x, PORTABLE)[0].tolist() == [0.0, 0.0, 200.0, np.float32(1e30)]
