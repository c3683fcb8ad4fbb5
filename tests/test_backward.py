"""The hand-written gradients against finite differences and against autograd."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad

from synapse_edu.config import Rope
from synapse_edu.model import batched
from synapse_edu.study import backward, story_model


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
    """The official pass, differentiated by autograd, on the same parameters."""
    monkeypatch.setattr(backward, "F32", np.float64)
    config, p, tokens, targets, _ = tiny()
    args = batched.ModelArgs(dim=16, n_layers=2, n_heads=4, n_kv_heads=2, rope_theta=10000.0)
    theirs = {
        "attn_norm": "attention_norm", "attn_q": "attention.wq", "attn_k": "attention.wk",
        "attn_v": "attention.wv", "attn_output": "attention.wo", "ffn_norm": "ffn_norm",
        "ffn_gate": "feed_forward.w1", "ffn_up": "feed_forward.w3", "ffn_down": "feed_forward.w2",
    }  # fmt: skip

    def official(p):
        out = {"tok_embeddings.weight": p["token_embd"], "output.weight": p["token_embd"]}
        out["norm.weight"] = p["output_norm"]
        for name, x in p.items():
            if name.startswith("blk."):
                _, layer, role = name.split(".")
                out[f"layers.{layer}.{theirs[role]}.weight"] = x
        return out

    def loss(p):
        logits = batched.logits_without_cache(official(p), tokens, args, anp)
        shifted = logits - anp.max(logits, axis=-1, keepdims=True)
        log_p = shifted - anp.log(anp.sum(anp.exp(shifted), axis=-1, keepdims=True))
        rows, columns = np.indices(targets.shape)
        return -anp.mean(log_p[rows, columns, targets])

    ones, starts = np.ones((2, 10)), np.zeros((2, 10), int)
    mine, grads = backward.loss_and_gradients(p, config, tokens, targets, ones, starts)
    assert float(loss(p)) == pytest.approx(mine, rel=1e-6)
    for name, g in grad(loss)(p).items():
        assert np.allclose(g, grads[name], rtol=2e-5, atol=1e-7), name


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
