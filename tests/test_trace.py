"""Traces: the same bits as the pass, the mask, sizes, and refusals."""

import numpy as np
import pytest
from golden_data import FORWARD, arrays, differing

import synapse_edu as se
from synapse_edu.errors import BadArgument
from synapse_edu.model import trace as trace_module

NAME = "llama_f32_untied"
IDS = arrays(NAME)["tokens"][:12].tolist()


@pytest.fixture(scope="module")
def model():
    return se.load(FORWARD / f"{NAME}.gguf")


@pytest.fixture(scope="module")
def trace(model):
    return se.Trace.record(model, IDS)


def test_recording_changes_no_logits(model, trace):
    want = model.prefill(IDS, model.new_cache(12), logits="all")
    assert differing(trace.all("logits"), want) == 0


def test_values_are_those_of_the_walk(model, trace):
    cache = model.new_cache(12)
    for position, id in enumerate(IDS):
        for step in model.walk(id, cache):
            assert differing(trace.value(step.name, step.layer, position), step.value) == 0
    assert trace.names == [(s.name, layer) for s, layer in model.plan()]
    assert trace.ids == IDS and len(trace) == 12
    assert trace.tokens == [model.tokenizer.piece(i) for i in IDS]


def test_attention_rows_sum_to_one_and_nothing_is_seen_ahead(model, trace):
    for layer in range(model.config.n_layer):
        p = trace.attention(layer)
        assert p.shape == (model.config.n_head, 12, 12)
        assert np.allclose(p.astype(np.float64).sum(-1), 1, atol=1e-6)
        assert (p[:, *np.triu_indices(12, 1)] == 0).all()
        s = trace.attention(layer, "scores")
        assert (s[:, *np.triu_indices(12, 1)] == -np.inf).all()
        lower = s[:, *np.tril_indices(12)]
        assert np.isfinite(lower).all()
        e = np.exp(s.astype(np.float64) - s.max(-1, keepdims=True))
        assert np.allclose(e / e.sum(-1, keepdims=True), p, atol=1e-6)


def test_records_are_read_only_and_measured(model, trace):
    with pytest.raises(ValueError, match="read-only"):
        trace.value("embedding")[0] = 1
    assert trace.nbytes == se.Trace.size(model, 12)


def test_chosen_steps_only(model, trace):
    small = se.Trace.record(model, IDS, names=["probabilities"])
    assert small.names == [("probabilities", 0), ("probabilities", 1)]
    assert differing(small.attention(1), trace.attention(1)) == 0
    with pytest.raises(BadArgument, match="not recorded"):
        small.value("logits")


def test_a_text_longer_than_a_batch(model, trace, monkeypatch):
    monkeypatch.setattr(trace_module, "UBATCH", 5)
    parts = se.Trace.record(model, IDS)
    assert parts.names == trace.names
    for name, layer in trace.names:
        for position in (0, 4, 5, 11):
            a, b = (t.value(name, layer, position) for t in (parts, trace))
            assert differing(a, b) == 0


def test_too_much_memory_is_refused_before_any_work(model, monkeypatch):
    monkeypatch.setattr(type(model), "walk", None)
    with pytest.raises(BadArgument, match="max_bytes=1,000"):
        se.Trace.record(model, IDS, max_bytes=1000)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("nothing",), "embedding"),
        (("q",), "layer=0"),
        (("q", 9), "not recorded"),
        (("q", 0, 12), "Position 12"),
        (("q", 0, -13), "Position -13"),
    ],
)
def test_what_is_not_there_is_refused(trace, arguments, word):
    with pytest.raises(BadArgument, match=word):
        trace.value(*arguments)
    with pytest.raises(BadArgument, match="stage"):
        trace.attention(0, "weights")
