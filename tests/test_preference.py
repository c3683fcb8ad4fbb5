"""DPO: the loss to the digit, its gradient against finite differences and autograd, a small run."""

from dataclasses import replace

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad
from story_parts import small, tokenizer

from synapse_edu.model import batched
from synapse_edu.model.params import ModelArgs
from synapse_edu.study import answers, backward, differentiate, preference, story_model
from synapse_edu.study.judge import judge


def answer(text, notes="Mia has a red ball."):
    tok = tokenizer()
    ids = tuple(tok.encode(" " + text, add_special=False)) + (0,)
    return answers.Answer(notes, text, tuple(tok.encode(notes)), ids, judge(notes, text))


PAIRS = [
    (answer("The ball is red."), answer("The ball is blue.")),
    (answer("Now the ball belongs to Mia."), answer("Where is Tom? He is in the park.")),
]


def start(dtype=np.float32):
    rng = np.random.default_rng(5)
    p = story_model.initial(small(), 0)
    return {k: (x + 0.1 * rng.standard_normal(x.shape)).astype(dtype) for k, x in p.items()}


def batch_of(pairs):
    return answers.Batch.of([pair[side] for side in (0, 1) for pair in pairs])


def test_the_loss_falls_while_the_preferred_answer_becomes_less_likely():
    before, after = {"w": 0.1, "l": 0.1}, {"w": 0.08, "l": 0.02}
    log = {k: (np.log(before[k]), np.log(after[k])) for k in "wl"}
    first = preference.delta(log["w"][0], log["l"][0], log["w"][0], log["l"][0])
    second = preference.delta(log["w"][1], log["l"][1], log["w"][0], log["l"][0])
    assert first == 0 and second == pytest.approx(np.log(4))
    assert f"{preference.dpo(first, beta=1)[0]:.4f}" == "0.6931"
    assert f"{preference.dpo(second, beta=1)[0]:.4f}" == "0.2231"
    assert preference.dpo(second, beta=1)[0] == pytest.approx(np.log(1.25))
    assert after["w"] < before["w"]


def test_the_slope_is_the_derivative_and_far_values_stay_finite():
    for beta in (0.1, 1.0):
        for d in (-3.0, 0.0, 0.7, 5.0):
            above, below = (preference.dpo(d + e, beta)[0] for e in (1e-6, -1e-6))
            assert preference.dpo(d, beta)[1] == pytest.approx((above - below) / 2e-6, abs=1e-8)
    with np.errstate(all="raise", under="ignore"):
        loss, slope = preference.dpo(np.array([-1e5, 1e5]), beta=1.0)
    assert np.array_equal(loss, [1e5, 0]) and np.array_equal(slope, [-1, 0])


def test_gradients_against_finite_differences(monkeypatch):
    monkeypatch.setattr(backward, "F32", np.float64)
    config, p, batch = small(), start(np.float64), batch_of(PAIRS)
    reference = np.array([-20.0, -21.0, -22.0, -19.0])
    loss, grads = preference.loss_and_gradients(p, config, batch, reference, beta=0.3)
    assert 0 < loss < 10 and grads.keys() == p.keys()
    rng = np.random.default_rng(1)
    for name, x in p.items():
        at = np.unravel_index(np.abs(grads[name]).argmax(), x.shape)
        for where in (at, tuple(rng.integers(0, n) for n in x.shape)):
            kept, both = x[where], []
            for step in (1e-6, -1e-6):
                x[where] = kept + step
                both.append(preference.loss_and_gradients(p, config, batch, reference, 0.3)[0])
            x[where] = kept
            assert (both[0] - both[1]) / 2e-6 == pytest.approx(grads[name][where], abs=2e-7)


def test_gradients_against_autograd(monkeypatch):
    """The same loss written over the official pass, and differentiated by autograd."""
    monkeypatch.setattr(backward, "F32", np.float64)
    config, p, batch = small(), start(np.float64), batch_of(PAIRS)
    reference, beta = np.array([-20.0, -21.0, -22.0, -19.0]), 0.3
    rows, columns = np.indices(batch.targets.shape)

    def loss(p):
        args = ModelArgs.from_config(config)
        logits = batched.logits_without_cache(differentiate.official(p), batch.tokens, args, anp)
        log_p = logits - anp.log(anp.sum(anp.exp(logits), axis=-1, keepdims=True))
        sums = anp.sum(log_p[rows, columns, batch.targets] * batch.weights, axis=-1) - reference
        return -anp.mean(anp.log(1 / (1 + anp.exp(-beta * (sums[:2] - sums[2:])))))

    mine, grads = preference.loss_and_gradients(p, config, batch, reference, beta)
    assert loss(p) == pytest.approx(mine, rel=1e-6)
    for name, g in grad(loss)(p).items():
        assert np.abs(g).max() > 0 and np.allclose(g, grads[name], rtol=1e-4, atol=1e-6), name


def test_at_the_reference_the_loss_is_log_2():
    config, p = small(), start()
    kept = preference.reference(p, config, PAIRS)
    loss, _ = preference.loss_and_gradients(p, config, batch_of(PAIRS), kept.ravel())
    assert loss == pytest.approx(np.log(2), abs=1e-6)


def test_a_run_widens_the_difference_and_leaves_the_start_alone():
    config, p = small(), start()
    kept = {name: x.copy() for name, x in p.items()}
    seen = []
    recipe = replace(preference.CAREFUL, n_steps=12, n_batch=2, learning_rate=1e-3)
    q, losses = preference.train(p, config, PAIRS, recipe, after=lambda step, _: seen.append(step))
    before, after = (preference.reference(x, config, PAIRS) for x in (p, q))
    assert ((after - before)[0] > (after - before)[1]).all()
    assert losses[-1] < losses[0] == pytest.approx(np.log(2), abs=1e-6)
    assert seen == list(range(13)) and all(np.array_equal(kept[n], p[n]) for n in p)
    again, _ = preference.train(p, config, PAIRS, recipe)
    assert all(np.array_equal(again[n], q[n]) for n in q)
