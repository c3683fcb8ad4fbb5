"""Every reference operation and its compiled twin, under one name, bit for bit."""

import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from golden_data import differing
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.config import Rope
from synapse_edu.model.fast import SERVED as NAMES
from synapse_edu.numerics import Numerics

MODULES = ("attention", "elementary", "embedding", "feedforward", "matmul", "norm", "rope")
# What has no twin, and why.
APART = {
    "attention.softmax's tail": "a row of the cache never ends within a group",
    "elementary.fma": "only the AVX2 order fuses, and the reference computes that",
    "feedforward.exp": "one function of elementary or another, chosen by Numerics",
    "feedforward.group": "a number",
    "matmul.float_dot": "attention's kernels take its place",
    "rope.freq_scale": "makes the angles, once for a model",
    "rope.yarn_attn_factor": "makes the angles, once for a model",
    "rope.yarn_mix": "makes the angles, once for a model",
    "rope.yarn_range": "makes the angles, once for a model",
}
SERVED = [Numerics.named(n).replace(cache=cache) for n in NAMES for cache in ("float16", "float32")]
EDGES = np.float32(
    [0, -0.0, 1, -1, 1e-40, -1e-45, 3e38, -3e38, np.inf, -np.inf, np.nan, 65504, 65520, 87.4, -104]
)


def pair(name):
    return tuple(
        importlib.import_module(f"synapse_edu.ops.{where}.{name}")
        for where in ("reference", "fast")
    )


def public(module):
    """Functions that a module defines for others."""
    return {
        name: f
        for name, f in vars(module).items()
        if inspect.isfunction(f) and f.__module__ == module.__name__ and not name.startswith("_")
    }


@pytest.mark.parametrize("name", MODULES)
def test_every_operation_has_a_twin_of_the_same_name(name):
    reference, fast = pair(name)
    for function in public(reference):
        if f"{name}.{function}" not in APART:
            assert callable(getattr(fast, function)), function


def numbers(rng, shape, spread=3.0, edges=0.0):
    """Random float32, some of them edge values."""
    x = (rng.standard_normal(shape) * spread).astype(np.float32)
    where = rng.random(shape) < edges
    x[where] = rng.choice(EDGES, int(where.sum()))
    return x


def test_elementary_functions():
    reference, fast = pair("elementary")
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32)
    x = np.concatenate([EDGES, bits.view(np.float32), numbers(rng, 50_000, 40.0)])
    for name in ("exp_poly", "expf", "logf", "sinf", "cosf", "exp_exact"):
        assert differing(getattr(fast, name)(x), getattr(reference, name)(x)) == 0, name
    for got, want in zip(fast.sincosf(x), reference.sincosf(x), strict=True):
        assert differing(got, want) == 0
    powers = np.concatenate([rng.permutation(x), rng.integers(-9, 9, x.size).astype(np.float32)])
    twice = np.concatenate([x, x])
    assert differing(fast.powf(twice, powers), reference.powf(twice, powers)) == 0
    wide = rng.standard_normal(50_000) * 400
    assert np.array_equal(fast.exp(wide), reference.exp(wide))
    assert np.array_equal(fast.log(np.abs(wide)), reference.log(np.abs(wide)))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 700), st.sampled_from(SERVED))
def test_norm_and_swiglu(seed, n, width, numerics):
    rng = np.random.default_rng(seed)
    x, w = numbers(rng, (n, width), 3.0, 0.01), numbers(rng, width)
    reference, fast = pair("norm")
    got, want = fast.rms_norm(x, w, 1e-5), reference.rms_norm(x, w, 1e-5)
    assert [differing(a, b) for a, b in zip(got, want, strict=True)] == [0, 0]
    gate, up = numbers(rng, (n, width), 30.0, 0.05), numbers(rng, (n, width), 3.0, 0.05)
    reference, fast = pair("feedforward")
    with np.errstate(all="ignore"):
        want = reference.swiglu(gate, up, numerics)
        assert differing(fast.swiglu(gate, up, numerics), want) == 0
        assert differing(fast.silu(gate, numerics), reference.silu(gate, numerics)) == 0


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.integers(1, 40),
    st.integers(0, 8),
    st.sampled_from(["normal", "neox"]),
)
def test_rope(seed, n, half, spare, layout):
    rng = np.random.default_rng(seed)
    x = numbers(rng, (n, 3, 2 * half + spare))
    positions = rng.integers(0, 9000, n)
    schedule = Rope(n_rot=2 * half, layout=layout, freq_base=500000.0)
    reference, fast = pair("rope")
    want = reference.rope(x, positions, schedule, None, SERVED[0])
    assert differing(fast.rope(x, positions, schedule, None, SERVED[0]), want) == 0


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 14),
    st.integers(1, 600),
    st.integers(1, 66),
    st.sampled_from(SERVED),
    st.sampled_from([0.0, 0.003]),
)
def test_attention(seed, n, n_head_kv, n_group, n_kv, half_dim, numerics, edges):
    rng, dim = np.random.default_rng(seed), 2 * half_dim
    reference, fast = pair("attention")
    q = numbers(rng, (n, n_head_kv * n_group, dim), 2.0, edges)
    with np.errstate(all="ignore"):
        k, v = (
            numbers(rng, (n_head_kv, n_kv + 5, dim), 2.0, edges).astype(numerics.cache)[:, :n_kv]
            for _ in range(2)
        )
        s = reference.scores(q, k, numerics)
        assert differing(fast.scores(q, k, numerics), s) == 0
        visible = [max(1, n_kv - n + 1 + i) for i in range(n)]
        scale = np.float32(1) / np.sqrt(np.float32(dim))
        p = reference.softmax(s, numerics, scale, visible)
        assert differing(fast.softmax(s, numerics, scale, visible), p) == 0
        want = reference.weighted_values(p, v, numerics)
        assert differing(fast.weighted_values(p, v, numerics), want) == 0


@pytest.mark.parametrize("numerics", SERVED, ids=lambda n: f"{n.name}-{n.cache}")
def test_a_mask_weighs_nothing_and_a_nan_stays_visible(numerics):
    """No fast-math: -inf gives an exact zero, and NaN is not compiled away."""
    _, fast = pair("attention")
    s = np.float32([[[1, -np.inf, 3, -np.inf, 0]], [[1, np.nan, 3, 2, 0]]])
    p = fast.softmax(s, numerics)
    assert (p[0, 0, [1, 3]] == 0).all() and not np.signbit(p[0]).any()
    assert abs(p[0].sum() - 1) < 1e-6 and np.isnan(p[1]).all()


GENERIC = """
import sys
sys.path.insert(0, sys.argv[1])
import test_twins as t
from synapse_edu.ops.fast.jit import has_avx2
assert not has_avx2()
t.test_elementary_functions()
for run in (t.test_attention, t.test_norm_and_swiglu):
    run()
"""


def test_the_same_bits_without_avx2():
    done = subprocess.run(
        [sys.executable, "-c", GENERIC, str(Path(__file__).parent)],
        env=os.environ | {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
