"""The view of rotary positions: angles, both layouts, and that only the distance matters."""

import math

import numpy as np
import pytest

import synapse_edu as se
from synapse_edu.errors import BadArgument
from synapse_edu.views.rope_view import RopeView, members, scores_by_distance, wavelengths


@pytest.fixture
def config():
    return se.Config.named("llama-3.2-1b")


def test_wavelengths(config):
    waves = wavelengths(config)
    assert waves.shape == (32,) and waves[0] == pytest.approx(2 * math.pi)
    assert (np.diff(waves) > 0).all()
    assert wavelengths(config, np.full(32, 2.0)) == pytest.approx(2 * waves)


def test_both_layouts_use_every_element_once():
    for layout in ("normal", "neox"):
        used = [e for i in range(8) for e in members(i, layout, 16)]
        assert sorted(used) == list(range(16))


def test_only_the_distance_matters(config):
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 64)).astype(np.float32)
    for layout in (config, se.Config.named("qwen2.5-0.5b")):
        found = scores_by_distance(
            layout, se.Numerics.named("textbook"), q, k, [0, 7, 100], [0, 1, 5, 20]
        )
        assert np.abs(found - found[0]).max() < 1e-3 * np.abs(found).max()
        assert np.ptp(found[0]) > 0.1


def test_keys_and_controls(config):
    view = RopeView(config)
    view.press("ArrowRight")
    view.press("PageDown")
    view.press("ArrowDown")
    assert (view.state.position, view.state.pair) == (18, 1)
    assert "Pair 1 (elements 2 and 3) at position 18" in view.html
    view.choose("layout", "neox")
    assert "elements 1 and 33" in view.html
    view.choose("pair", "99")
    assert isinstance(view.error, BadArgument) and view.state.pair == 1
    view.press("Home")
    assert view.state.position == 0 and "data-set" not in view.static()
    view.press("End")
    assert view.state.position == config.n_ctx_train - 1
