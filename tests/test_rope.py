"""RoPE: recorded rotations by bits, and the property it exists for."""

import json

import numpy as np
import pytest
from golden_data import FORWARD, arrays, differing
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.config import Rope
from synapse_edu.errors import BadArgument
from synapse_edu.numerics import Numerics
from synapse_edu.ops.reference.rope import angles, rope, yarn_attn_factor, yarn_mix

OPS = arrays("ops")
CASES = json.loads((FORWARD / "ops.json").read_text(encoding="utf-8"))
BUILDS = {"scalar": Numerics.named("llama.cpp"), "avx2": Numerics.named("llama.cpp-avx2")}
PORTABLE = BUILDS["scalar"]


def schedule(case):
    factor = 1 / case.get("fs", 1.0)
    scaling = "yarn" if case.get("ext") else ("none" if factor == 1 else "linear")
    return Rope(
        freq_base=case.get("base", 10000.0),
        n_rot=case["nd"],
        layout="neox" if case["mode"] == 2 else "normal",
        scaling=scaling,
        factor=factor,
        n_ctx_orig=case.get("octx", 0),
        beta_fast=case.get("bf", 32.0),
        beta_slow=case.get("bs", 1.0),
    )


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("case", CASES["ropes"], ids=lambda c: c["name"])
def test_recorded_rotations(case, build):
    x = OPS["in.rope128" if case.get("hd") == 128 else "in.rope32"]
    factors = OPS["in.ff"] if case.get("ff") else None
    got = rope(
        x,
        CASES["rope_positions"],
        schedule(case),
        factors,
        BUILDS[build],
        attn_factor=case.get("af", 1.0),
    )
    assert differing(got, OPS[f"{build}.rope.{case['name']}"]) == 0


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 500), st.integers(0, 2**32 - 1))
def test_dot_product_depends_on_the_distance_only(p, distance, shift, seed):
    q, k = np.random.default_rng(seed).normal(size=(2, 1, 1, 32)).astype(np.float32)
    r = Rope(n_rot=32)

    def score(at_q, at_k):
        a = rope(q, [at_q], r, None, PORTABLE).astype(np.float64)
        return float((a * rope(k, [at_k], r, None, PORTABLE)).sum())

    a, b = score(p + distance, p), score(p + distance + shift, p + shift)
    assert a == pytest.approx(b, abs=0.02)  # float32 angles of several thousand radians


def test_position_zero_changes_nothing():
    x = np.random.default_rng(1).normal(size=(1, 2, 16)).astype(np.float32)
    assert differing(rope(x, [0], Rope(n_rot=16), None, PORTABLE), x) == 0


def test_layouts_agree_after_the_permutation():
    """Pairs (i, i+8) of one layout are pairs (2i, 2i+1) of the other."""
    x = np.random.default_rng(2).normal(size=(3, 2, 16)).astype(np.float32)
    order = np.arange(16).reshape(2, 8).T.ravel()
    normal = rope(x[..., order], [3, 4, 5], Rope(n_rot=16), None, PORTABLE)
    neox = rope(x, [3, 4, 5], Rope(n_rot=16, layout="neox"), None, PORTABLE)
    assert differing(normal, neox[..., order]) == 0


def test_a_factor_divides_the_angle():
    r = Rope(n_rot=4)
    factors = np.array([1, 8], np.float32)
    cos, sin = angles([80], r, factors, PORTABLE)
    slow_cos, slow_sin = angles([10], r, None, PORTABLE)
    assert np.arctan2(sin, cos)[0, 1] == pytest.approx(np.arctan2(slow_sin, slow_cos)[0, 1])


def test_yarn_keeps_fast_pairs_and_slows_slow_ones():
    r = Rope(n_rot=64, scaling="yarn", factor=4.0, n_ctx_orig=4096)
    mix = yarn_mix(r)
    assert mix[0] == 1 and mix[-1] == 0 and (np.diff(mix) <= 0).all()


def test_yarn_magnitude_is_cancelled_for_mistral3():
    plain = Rope(n_rot=64, scaling="yarn", factor=16.0, n_ctx_orig=16384)
    with_log = Rope(
        n_rot=64, scaling="yarn", factor=16.0, n_ctx_orig=16384, yarn_log_multiplier=1.0
    )
    own = 1 + 0.1 * np.log(16)
    for r, net in ((plain, own), (with_log, 1.0)):
        cos, sin = angles([0], r, None, PORTABLE)
        assert cos[0, 0] == pytest.approx(net, rel=1e-6) and sin[0, 0] == 0
    assert yarn_attn_factor(Rope(n_rot=64, attn_factor=0.5)) == 0.5


@pytest.mark.parametrize("n_rot", [0, 7, 18])
def test_impossible_widths_are_refused(n_rot):
    with pytest.raises(BadArgument, match="n_rot"):
        rope(np.zeros((1, 1, 16), np.float32), [0], Rope(n_rot=n_rot), None, PORTABLE)
