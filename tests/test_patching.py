"""Changing a value inside the pass, and what the measurements say about known cases."""

import numpy as np
import pytest

import synapse_edu as se
from synapse_edu.errors import BadArgument
from synapse_edu.study import patching

IDS = [1, 20, 33, 7, 250, 20, 33]


@pytest.fixture(scope="module")
def model(golden):
    return se.load(golden / "llama_f32_tied.gguf", backend="reference")


def bits(a):
    return np.ascontiguousarray(a, np.float32).view(np.uint32)


def test_no_change_is_the_plain_pass(model):
    want = model.prefill(IDS, model.new_cache(16))
    assert np.array_equal(bits(patching.run(model, IDS)), bits(want))
    assert np.array_equal(bits(patching.run(model, IDS, patching.put({}))), bits(want))


def test_putting_back_what_was_there_changes_nothing(model):
    kept = {}

    def keep(step):
        kept[step.name, step.layer, step.position] = np.array(step.value)

    want = patching.run(model, IDS, keep)
    for name in ("embedding", "q_rope", "scores", "attention", "layer_output"):
        one = {k: v for k, v in kept.items() if k[0] == name}
        assert np.array_equal(bits(patching.run(model, IDS, patching.put(one))), bits(want))


def test_the_logits_can_be_replaced(model):
    other = np.arange(model.config.n_vocab, dtype=np.float32)
    got = patching.run(model, IDS, patching.put({("logits", None, len(IDS) - 1): other}))
    assert np.array_equal(got, other)


def test_silencing(model):
    all_heads = [(i, h) for i in range(model.config.n_layer) for h in range(model.config.n_head)]
    quiet = patching.run(model, IDS, patching.silence(all_heads))
    # without attention only the last token matters
    assert np.array_equal(quiet, patching.run(model, IDS[-1:], patching.silence(all_heads)))
    effects = patching.head_effects(model, [(IDS, 5)])
    assert effects.shape == (model.config.n_layer, model.config.n_head) and np.any(effects != 0)


def test_a_batch_is_the_tokens_one_by_one(model):
    heads = patching.silence([(0, 1), (1, 0), (1, 3)])
    for change in (None, heads):
        whole = patching.run_batch(model, IDS, change)
        assert whole.shape == (len(IDS), model.config.n_vocab)
        for n in range(1, len(IDS) + 1):
            assert np.array_equal(bits(whole[n - 1]), bits(patching.run(model, IDS[:n], change)))


def test_causal_trace(model):
    corrupt = [1, 99, *IDS[2:]]
    clean_logits, corrupt_logits = patching.run(model, IDS), patching.run(model, corrupt)
    right = int(np.argmax(clean_logits - corrupt_logits))
    wrong = int(np.argmin(clean_logits - corrupt_logits))
    found = patching.causal_trace(model, IDS, corrupt, right, wrong)
    assert found.effect.shape == (model.config.n_layer, len(IDS))
    assert found.effect[-1, -1] == pytest.approx(1)  # the last state decides everything
    assert found.effect[-1, :-1] == pytest.approx(0)  # other last states decide nothing
    assert found.effect[0, 0] == pytest.approx(0)  # before the difference
    with pytest.raises(BadArgument, match="same length"):
        patching.causal_trace(model, IDS, IDS[:-1], right, wrong)
    for same in ((IDS, right, wrong), (corrupt, right, right)):
        with pytest.raises(BadArgument, match="same margin"):
            patching.causal_trace(model, IDS, *same)


def test_head_measures():
    class Fixed:
        def attention(self, layer):
            p = np.zeros((2, 9, 9))  # head 0 looks one back, head 1 at what followed last time
            for t in range(1, 9):
                p[0, t, t - 1] = 1
                p[1, t, max(t - 3, 0)] = 1
            return p

    assert patching.looks_back(Fixed(), 0).tolist() == [1, pytest.approx(1 / 8)]
    assert patching.induces(Fixed(), 0, period=4).tolist() == [0, 1]
    assert patching.induces(Fixed(), 0, period=5, ahead=2).tolist() == [0, 1]
    assert patching.looks_back(Fixed(), 0, by=3)[1] == 1
