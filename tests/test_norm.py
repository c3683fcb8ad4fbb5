"""RMSNorm: recorded bits, and the four places where it could be computed otherwise."""

import numpy as np
from golden_data import arrays, differing

from synapse_edu.ops.reference.norm import rms_norm

OPS = arrays("ops")
F32 = np.float32


def test_recorded_values():
    assert differing(rms_norm(OPS["in.rms_x"], OPS["in.rms_w"], 1e-5)[0], OPS["scalar.rms"]) == 0


def test_the_weight_comes_after_the_scale():
    x = np.random.default_rng(1).normal(size=(4, 96)).astype(F32)
    w = np.random.default_rng(2).normal(size=96).astype(F32)
    scaled, normed = rms_norm(x, w, 1e-5)
    assert differing(normed, scaled * w) == 0
    scale = F32(1) / np.sqrt(F32(1e-5) + (x.astype(np.float64) ** 2).mean(-1).astype(F32))
    assert differing(normed, x * (scale[:, None] * w)) > 0


def test_rows_have_mean_square_one_without_a_weight():
    x = np.random.default_rng(3).normal(size=(5, 256)).astype(F32) * F32(7)
    scaled, _ = rms_norm(x, np.ones(256, F32), 1e-9)
    assert np.allclose((scaled.astype(np.float64) ** 2).mean(-1), 1, rtol=1e-5)


def test_sum_runs_left_to_right_in_float64():
    """A pairwise sum of these squares rounds differently."""
    x = np.random.default_rng(4).lognormal(0, 4, size=(200, 512)).astype(F32)
    want = []
    for row in x:
        total = 0.0
        for value in row:
            total += float(F32(value * value))
        scale = F32(1) / np.sqrt(F32(total / 512) + F32(1e-5))
        want.append(row * scale)
    assert differing(rms_norm(x, np.ones(512, F32), 1e-5)[0], np.array(want)) == 0


def test_zero_row_and_overflow_are_silent():
    x = np.array([[0, 0], [1e30, 1]], F32)
    with np.errstate(all="raise"):
        scaled, _ = rms_norm(x, np.ones(2, F32), 1e-5)
    assert scaled[0].tolist() == [0.0, 0.0] and scaled[1].tolist() == [0.0, 0.0]
