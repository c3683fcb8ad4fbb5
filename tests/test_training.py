"""A run of training: resuming, checkpoints, the command, and the file that comes out."""

import json
from dataclasses import replace

import numpy as np
import pytest
from story_parts import learned, small, tokenizer

import synapse_edu as se
from synapse_edu.errors import BadArgument, FileProblem
from synapse_edu.study import backward, training
from synapse_edu.study.export import export

RECIPE = training.Recipe(n_steps=12, n_batch=2, n_pos=48, n_warmup=2, n_repeat=4, n_drill=8)


def test_resuming_gives_the_same_bits(tmp_path):
    whole = training.train(RECIPE, small(), tokenizer(), quiet=True)
    half = training.train(
        RECIPE, small(), tokenizer(), until=5, save=tmp_path / "c.npz", save_every=2, quiet=True
    )
    assert half.step == 5
    again = training.train(
        RECIPE, small(), tokenizer(), training.State.load(tmp_path / "c.npz"), quiet=True
    )
    assert again.step == whole.step == 12
    for name, x in whole.p.items():
        assert np.array_equal(x, again.p[name]), name
    other = training.train(replace(RECIPE, seed=2), small(), tokenizer(), quiet=True)
    assert not np.array_equal(other.p["token_embd"], whole.p["token_embd"])


def test_a_damaged_checkpoint(tmp_path):
    path = tmp_path / "c.npz"
    training.train(RECIPE, small(), tokenizer(), until=1, save=path, quiet=True)
    whole = path.read_bytes()
    for damaged in (b"", b"PK nonsense", b"PK\x03\x04 nonsense", whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(FileProblem, match="not a training checkpoint"):
            training.State.load(path)


def test_another_recipe_is_refused(tmp_path):
    training.train(RECIPE, small(), tokenizer(), until=1, save=tmp_path / "c.npz", quiet=True)
    state = training.State.load(tmp_path / "c.npz")
    assert state.recipe == RECIPE and state.seconds > 0
    with pytest.raises(BadArgument, match="seed: 1, not 2"):
        training.train(replace(RECIPE, seed=2), small(), tokenizer(), state, quiet=True)
    with pytest.raises(BadArgument, match="longer than the model's context"):
        training.train(replace(RECIPE, n_pos=10**6), small(), tokenizer(), quiet=True)


def test_loss_falls_and_the_file_agrees(tmp_path):
    recipe = replace(RECIPE, n_steps=50, n_batch=4, learning_rate=1e-2, least_repeat=0.0)
    state = training.train(recipe, small(), tokenizer(), quiet=True)
    assert state.curve[-1][1] < state.curve[0][1]
    export(tmp_path / "m.gguf", small(), state.p, learned(), "F32")
    model = se.load(tmp_path / "m.gguf", numerics="textbook", backend="reference")
    ids = model.tokenizer.encode("Mia has a red ball.")
    assert ids[0] == 0 and model.tokenizer.decode(ids[1:]) == "Mia has a red ball."
    logits = model.prefill(ids, model.new_cache(), logits="all")  # (n, n_vocab)
    tokens = np.array([ids])
    _, best = backward.loss_and_gradients(
        state.p, small(), tokens, tokens, np.ones(tokens.shape, np.float32), 0 * tokens, False
    )
    assert best[0].tolist() == logits.argmax(-1).tolist()


def test_the_command(tmp_path, monkeypatch, capsys):
    """A run of 3 steps, resumed for nothing: the file, the report, and a bar that ends at 100 %."""
    monkeypatch.setattr(training, "story_config", lambda n: small())
    arguments = ["--out", str(tmp_path / "run"), "--steps", "3", "--stories", "10"]
    training.main(arguments)
    assert "100%" in capsys.readouterr().err
    report = json.loads((tmp_path / "run" / "training.json").read_text(encoding="utf-8"))
    assert report["recipe"]["n_steps"] == 3 and report["n_params"] == small().n_params
    assert 0 <= report["held_out"]["all"] <= 1 and report["minutes"] > 0
    first = (tmp_path / "run" / "built-in.gguf").read_bytes()
    training.main([*arguments, "--resume"])
    assert (tmp_path / "run" / "built-in.gguf").read_bytes() == first
    with pytest.raises(BadArgument, match="n_steps: 3, not 4"):
        training.main(["--out", str(tmp_path / "run"), "--steps", "4", "--resume"])
