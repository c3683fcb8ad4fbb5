"""The hand-written gradients against finite differences and against autograd."""

import numpy as np
import pytest

from synapse_edu.config import Rope
from synapse_edu.study import backward, differentiate, story_model


def tiny():
    config = story_model.story_config(40, 2).replace(
        n_embd=16, n_head=4, n_head_kv=2, head_dim=4, n_ff=24, rope=Rope(n_rot=4)
    )
    rng = np.random.default_rng(0)
    p = {k: v.astype(np.float64) for k, v in story_model.initial(config, 0).items()}
    for x in p.values():
        x += 0.1 * rng.standard_normal(x.shape)
    tokens, targets = rng.integers(0, 40, (2, 2, 10))
    return config, p, tokens, targets, rng


def test_gradients_against_finite_differences(monkeypatch):
    monkeypatch.setattr(backward, "F32", np.float64)
    config, p, tokens, targets, rng = tiny()
    weights, starts = rng.random((2, 10)), np.zeros((2, 10), int)
    starts[:, 5:] = 5  # two documents a row

    def loss():
        return backward.loss_and_gradients(p, config, tokens, targets, weights, starts, False)[0]

    _, grads = backward.loss_and_gradients(p, config, tokens, targets, weights, starts)
    assert grads.keys() == p.keys()
    for name, x in p.items():
        for _ in range(3):
            at = tuple(rng.integers(0, n) for n in x.shape)
            kept, step = x[at], 1e-6
            x[at] = kept + step
            above = loss()
            x[at] = kept - step
            below = loss()
            x[at] = kept
            assert (above - below) / (2 * step) == pytest.approx(grads[name][at], abs=1e-7)


def test_gradients_against_autograd(monkeypatch):
    """The official pass differentiated by autograd: same parameters, same packed documents."""
    monkeypatch.setattr(backward, "F32", np.float64)
    config, p, tokens, targets, rng = tiny()
    weights, starts = rng.random((2, 10)), np.zeros((2, 10), int)
    starts[1, 4:] = 4
    mine, grads = backward.loss_and_gradients(p, config, tokens, targets, weights, starts)
    theirs, found = differentiate.loss_and_gradients(p, config, tokens, targets, weights, starts)
    assert theirs == pytest.approx(mine, rel=1e-6)
    assert found.keys() == grads.keys()
    for name, g in found.items():
        assert np.abs(g).max() > 0 and np.allclose(g, grads[name], rtol=2e-5, atol=1e-7), name


def test_gradients_in_float32():
    config, p, tokens, targets, rng = tiny()
    weights, starts = rng.random((2, 10)), np.zeros((2, 10), int)
    _, want = backward.loss_and_gradients(p, config, tokens, targets, weights, starts)
    p32 = {name: x.astype(np.float32) for name, x in p.items()}
    _, got = backward.loss_and_gradients(
        p32, config, tokens, targets, weights.astype(np.float32), starts
    )
    for name, g in got.items():
        assert g.dtype == np.float32, name
        assert np.abs(g - want[name]).max() < 1e-5 * np.abs(want[name]).max() + 1e-7, name


def test_documents_do_not_see_each_other():
    config, p, tokens, targets, _ = tiny()
    p = {k: v.astype(np.float32) for k, v in p.items()}
    starts = np.zeros((2, 10), int)
    starts[:, 5:] = 5
    weights = np.zeros((2, 10), np.float32)
    weights[:, 5:] = 1
    base = backward.loss_and_gradients(p, config, tokens, targets, weights, starts, False)[0]
    other = tokens.copy()
    other[:, :5] = (other[:, :5] + 7) % 40
    assert backward.loss_and_gradients(p, config, other, targets, weights, starts, False)[0] == base
