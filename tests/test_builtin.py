"""The built-in model: its scores, its heads, and llama.cpp's reading of the same file."""

import json
from pathlib import Path

import numpy as np
import pytest

import synapse_edu as se
from synapse_edu.checkpoint import catalogue
from synapse_edu.study import patching, storyworld

ROOT = Path(__file__).resolve().parent.parent
RECORDED = json.loads((ROOT / "tests" / "golden" / "built_in.json").read_text(encoding="utf-8"))
REPORT = json.loads((ROOT / "data" / "training.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def model():
    return se.load(catalogue.built_in())


def test_its_size(model):
    size = catalogue.built_in().stat().st_size
    assert size < 2.5e6 and 0.5e6 < model.config.n_params < 1.5e6
    assert model.config.n_params == REPORT["n_params"]
    assert model.config.n_head_kv < model.config.n_head


def test_llama_cpp_reads_it_and_writes_the_same(model):
    for row in RECORDED["rows"]:
        ids = model.tokenizer.encode(row["prompt"])
        assert ids == row["ids"]
        cache = model.new_cache()
        logits = model.prefill(ids, cache)
        assert logits.view(np.uint32).tolist() == row["logits_bits"], "portable build, by bits"
        written = []
        while len(written) < len(row["greedy"]):
            written.append(int(np.argmax(logits)))
            if written[-1] in model.tokenizer.vocabulary.eog:
                break
            logits = model.decode(written[-1], cache)
        assert written == row["greedy"]


def rule_words(model, n_stories, seed):
    """Share of the rule-determined words of held-out stories that the model predicts."""
    right = total = 0
    for story in storyworld.stories(n_stories, seed, held_out=True):
        ids = model.tokenizer.encode(story.text)
        best = model.prefill(ids, model.new_cache(), logits="all").argmax(-1)  # (n,)
        ends = np.cumsum([len(model.tokenizer.piece(i)) for i in ids[1:]])
        for start, end, _ in story.spans():
            tokens = [t for t in range(1, len(ids)) if start < ends[t - 1] <= end]
            total += 1
            right += all(best[t - 1] == ids[t] for t in tokens)
    return right / total


def test_scores_are_those_of_the_report(model):
    """On other stories than the report's, and through the quantized file."""
    found, reported = rule_words(model, 60, seed=77), REPORT["held_out"]["all"]
    assert found == pytest.approx(reported, abs=0.05)


def repeated(model, period=20, seed=0):
    """A random sequence, three times over."""
    rng = np.random.default_rng(seed)
    part = rng.integers(257, model.config.n_vocab, period).tolist()
    return [0, *part, *part, *part]


def heads(model, measure, least=0.5):
    """(layer, head) of every head whose measure is at least `least`."""
    found = [
        (i, h) for i in range(model.config.n_layer) for h, x in enumerate(measure(i)) if x >= least
    ]
    return set(found)


def test_heads_of_layer_0_look_a_fixed_number_of_tokens_back(model):
    trace = se.Trace.record(model, repeated(model))
    for by, head in ((1, (0, 0)), (2, (0, 1)), (4, (0, 3))):
        assert head in heads(model, lambda i, by=by: patching.looks_back(trace, i, by), 0.9)


def test_heads_of_layer_1_look_at_what_followed_last_time(model):
    """Induction: after a token that occurred before, they look 2 or 3 places beyond it."""
    for seed in (0, 1):
        trace = se.Trace.record(model, repeated(model, seed=seed))
        for ahead, named in ((2, {(1, 0), (1, 1)}), (3, {(1, 2), (1, 3)})):
            found = heads(model, lambda i, a=ahead, t=trace: patching.induces(t, i, 20, a))
            assert found == named


def test_it_copies_what_repeats(model):
    ids = repeated(model, seed=3)
    best = model.prefill(ids, model.new_cache(), logits="all").argmax(-1)  # (n,)
    rows = range(22, len(ids) - 1)
    assert np.mean([best[t] == ids[t + 1] for t in rows]) > 0.5


def test_silencing_the_heads_that_matter_most_changes_the_owner(model):
    text = (
        "Mia has a red ball. Tom has two green cups. Mia is in the park. Tom is in the barn. "
        "Mia gives her ball to Tom. Now the ball belongs to"
    )
    ids = model.tokenizer.encode(text)
    right = model.tokenizer.encode(" Tom", add_special=False)[0]
    effects = patching.head_effects(model, [(ids, right)])
    assert effects.max() > 0.05
