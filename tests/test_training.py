"""Training: gradients three ways, the optimiser, resuming, and the file that comes out."""

from dataclasses import replace

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad

import synapse_edu as se
from synapse_edu.config import Rope
from synapse_edu.errors import BadArgument, FileProblem
from synapse_edu.model import batched
from synapse_edu.study import backward, training
from synapse_edu.study.export import export
from synapse_edu.tokenizer.tokenizer import Tokenizer
from synapse_edu.tokenizer.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def learned():
    return training.vocabulary()


@pytest.fixture(scope="module")
def tokenizer(learned):
    return Tokenizer(Vocabulary.from_metadata(learned))


@pytest.fixture(scope="module")
def small(learned):
    n = len(learned["tokenizer.ggml.tokens"])
    return training.story_config(n, 2).replace(
        n_embd=32, n_head=4, head_dim=8, n_ff=64, rope=Rope(n_rot=8)
    )


def tiny():
    config = training.story_config(40, 2).replace(
        n_embd=16, n_head=4, n_head_kv=2, head_dim=4, n_ff=24, rope=Rope(n_rot=4)
    )
    rng = np.random.default_rng(0)
    p = {k: v.astype(np.float64) for k, v in training.initial(config, 0).items()}
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


def test_schedule_and_clipping():
    recipe = training.Recipe(n_steps=100, n_warmup=10, learning_rate=1.0, final_rate=0.1)
    rates = [training.learning_rate(recipe, s) for s in range(100)]
    assert rates[0] == pytest.approx(0.1) and rates[9] == 1 and rates[10] == pytest.approx(1)
    assert all(a >= b for a, b in zip(rates[10:], rates[11:], strict=False))
    assert rates[-1] == pytest.approx(0.1, abs=0.01)
    grads = {"a": np.full(4, 3.0, np.float32)}
    assert training.clip(grads, 1.0) == pytest.approx(6)
    assert np.linalg.norm(grads["a"]) == pytest.approx(1, rel=1e-6)


def test_first_step_of_adamw():
    """After one step the moments cancel: each weight moves by the rate against its gradient."""
    recipe = training.Recipe(n_warmup=1, learning_rate=0.5, weight_decay=0.1)
    p = {"a": np.array([[1.0, -2.0]], np.float32), "b": np.array([1.0], np.float32)}
    grads = {"a": np.array([[3.0, -4.0]], np.float32), "b": np.array([2.0], np.float32)}
    m, v = ({k: np.zeros_like(x) for k, x in p.items()} for _ in range(2))
    training.adamw(p, grads, m, v, 0, recipe)
    assert np.allclose(p["a"], [[0.95 - 0.5, -1.9 + 0.5]], atol=1e-5)
    assert np.allclose(p["b"], [0.5], atol=1e-5), "vectors do not decay"


RECIPE = training.Recipe(n_steps=12, n_batch=2, n_pos=48, n_warmup=2, n_repeat=4, n_drill=8)


def test_resuming_gives_the_same_bits(tmp_path, small, tokenizer):
    whole = training.train(RECIPE, small, tokenizer, quiet=True)
    half = training.train(
        RECIPE, small, tokenizer, until=5, save=tmp_path / "c.npz", save_every=2, quiet=True
    )
    assert half.step == 5
    again = training.train(
        RECIPE, small, tokenizer, training.State.load(tmp_path / "c.npz"), quiet=True
    )
    assert again.step == whole.step == 12
    for name, x in whole.p.items():
        assert np.array_equal(x, again.p[name]), name
    other = training.train(replace(RECIPE, seed=2), small, tokenizer, quiet=True)
    assert not np.array_equal(other.p["token_embd"], whole.p["token_embd"])


def test_a_damaged_checkpoint(tmp_path):
    (tmp_path / "c.npz").write_bytes(b"PK nonsense")
    with pytest.raises(FileProblem, match="not a training checkpoint"):
        training.State.load(tmp_path / "c.npz")


def test_batches(tokenizer, small):
    recipe = training.Recipe(n_batch=3, n_pos=64)
    for step in (0, 5000):
        tokens, targets, weights, starts = training.batch(tokenizer, small, recipe, step)
        assert tokens.shape == targets.shape == weights.shape == starts.shape == (3, 64)
        assert np.array_equal(tokens[:, 1:], targets[:, :-1])
        assert np.array_equal(tokens[np.arange(3)[:, None], starts], np.zeros((3, 64)))
    assert set(np.unique(weights)) <= {1.0, recipe.rule_weight, 0.0}
    with pytest.raises(BadArgument, match="longer than the model's context"):
        training.train(replace(RECIPE, n_pos=10**6), small, tokenizer, quiet=True)


def test_loss_falls_and_the_file_agrees(tmp_path, small, learned, tokenizer):
    recipe = replace(RECIPE, n_steps=50, n_batch=4, learning_rate=1e-2, least_repeat=0.0)
    state = training.train(recipe, small, tokenizer, quiet=True)
    assert state.curve[-1][1] < state.curve[0][1]
    export(tmp_path / "m.gguf", small, state.p, learned, "F32")
    model = se.load(tmp_path / "m.gguf", numerics="textbook", backend="reference")
    ids = model.tokenizer.encode("Mia has a red ball.")
    assert ids[0] == 0 and model.tokenizer.decode(ids[1:]) == "Mia has a red ball."
    logits = model.prefill(ids, model.new_cache(), logits="all")  # (n, n_vocab)
    tokens = np.array([ids])
    _, best = backward.loss_and_gradients(
        state.p, small, tokens, tokens, np.ones(tokens.shape, np.float32), 0 * tokens, False
    )
    assert best[0].tolist() == logits.argmax(-1).tolist()


def test_scores_count_words(small, tokenizer):
    state = training.State.new(small, 0)
    found = training.scores(state.p, small, tokenizer, n_stories=20)
    assert 0 <= found["all"] < 0.3 and found["loss"] > 3
