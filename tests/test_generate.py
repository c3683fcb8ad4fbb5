"""Generation: why it stops, what it reuses, and text without broken characters."""

import numpy as np
import pytest
from golden_data import FORWARD, arrays, differing

import synapse_edu as se
from synapse_edu.errors import BadArgument

NAME = "llama_f32_untied"
IDS = arrays(NAME)["tokens"][:15].tolist()


@pytest.fixture(scope="module")
def model():
    return se.load(FORWARD / f"{NAME}.gguf")


def greedy(model, ids, n):
    """Greedy continuation written out with prefill and decode."""
    cache, out = model.new_cache(64), []
    logits = model.prefill(ids, cache)
    for _ in range(n):
        out.append(int(np.argmax(logits)))
        logits = model.decode(out[-1], cache)
    return out


def test_greedy_is_argmax_of_each_pass(model):
    run = model.generate(IDS, max_tokens=10, stop=False)
    assert [t.id for t in run] == run.ids == greedy(model, IDS, 10)
    assert run.stop_reason == "max_tokens" and run.prompt_ids == IDS


def test_each_token_tells_its_probability(model):
    for token in model.generate(IDS, max_tokens=4, sampler=se.Sampler(0.9, seed=2), stop=False):
        x = token.logits.astype(np.float64)
        want = x[token.id] - x.max() - np.log(np.exp(x - x.max()).sum())
        assert token.logprob == pytest.approx(want) and token.probability == np.exp(token.logprob)
        top = token.top(5)
        assert [c.id for c in top] == np.argsort(-x, kind="stable")[:5].tolist()
        assert top[0].probability >= top[4].probability > 0
        assert len(token.top(10_000)) == 323


def test_the_logprob_is_the_models_own_whatever_the_sampler(model):
    (a,) = model.generate(IDS, 1, se.Sampler(0), stop=False)
    (b,) = model.generate(IDS, 1, se.Sampler(5.0, top_k=1), stop=False)
    assert a.id == b.id and a.logprob == b.logprob < 0


def test_the_same_seed_gives_the_same_text(model):
    sampler = se.Sampler(temperature=1.5, seed=9)
    first = [t.id for t in model.generate(IDS, 12, sampler, stop=False)]
    assert first == [t.id for t in model.generate(IDS, 12, sampler, stop=False)]
    assert first != [t.id for t in model.generate(IDS, 12, se.Sampler(1.5, seed=10), stop=False)]


def test_it_stops_at_an_end_token_and_does_not_yield_it(model):
    expected = greedy(model, IDS, 6)
    end = expected[3]
    run = model.generate(IDS, max_tokens=6, stop=[end])
    assert [t.id for t in run] == expected[: expected.index(end)]
    assert run.stop_reason == "end_token" and run.end_id == end


def test_the_vocabularys_end_tokens_are_the_default(model):
    assert model.generate(IDS)._stop == model.tokenizer.vocabulary.eog


def test_it_stops_at_the_end_of_the_context(model):
    cache = model.new_cache(18)
    run = model.generate(IDS, cache=cache, stop=False)
    # 15 positions of the prompt and 3 of the first tokens; the fourth needs none any more.
    assert len(list(run)) == 4 and run.stop_reason == "context_full" and cache.n == 18
    full = model.new_cache(15)
    run = model.generate(IDS, cache=full, stop=False)
    assert len(list(run)) == 1 and run.stop_reason == "context_full"


def test_no_tokens_asked_for_no_pass(model, monkeypatch):
    monkeypatch.setattr(model.backend, "prefill", None)
    run = model.generate(IDS, max_tokens=0)
    assert list(run) == [] and run.stop_reason == "max_tokens"


def test_a_fully_cached_prompt_is_evaluated_from_its_last_id(model):
    cache = model.new_cache(64)
    first = list(model.generate(IDS, 3, cache=cache, stop=False))
    again = model.generate(IDS, 3, cache=cache, stop=False)
    tokens = list(again)
    assert again.n_reused == len(IDS) - 1
    for a, b in zip(first, tokens, strict=True):
        assert a.id == b.id and differing(a.logits, b.logits) == 0
    shorter = model.generate(IDS[:12], 1, cache=cache, stop=False)
    (token,) = shorter
    assert shorter.n_reused == 11 and cache.ids[:12] == IDS[:12]
    fresh = model.prefill(IDS[:12], model.new_cache(64))
    assert differing(token.logits, fresh) == 0


def test_only_the_common_prefix_is_kept(model):
    cache = model.new_cache(64)
    list(model.generate(IDS, 5, cache=cache, stop=False))
    other = [*IDS[:8], 7, *IDS[8:]]
    run = model.generate(other, 1, cache=cache, stop=False)
    (token,) = run
    assert run.n_reused == 8 and cache.ids == other
    assert differing(token.logits, model.prefill(other, model.new_cache(64))) == 0


def test_positions_with_a_replaced_step_are_not_reused(model):
    cache = model.new_cache(64)
    model.prefill(IDS[:6], cache)
    walk = model.walk(IDS[6], cache)
    walk.send(next(walk).value * np.float32(3))
    list(walk)
    run = model.generate(IDS, 1, cache=cache, stop=False)
    (token,) = run
    assert run.n_reused == 6
    assert differing(token.logits, model.prefill(IDS, model.new_cache(64))) == 0


def test_breaking_off_leaves_a_usable_cache(model):
    cache = model.new_cache(64)
    for _ in model.generate(IDS, cache=cache, stop=False):
        if len(cache) >= 18:
            break
    assert cache.ids[:15] == IDS
    (token,) = model.generate(IDS, 1, cache=cache, stop=False)
    assert differing(token.logits, model.prefill(IDS, model.new_cache(64))) == 0


class Script:
    """A sampler that picks given ids, whatever the logits."""

    def __init__(self, ids):
        self.ids = ids

    def restart(self):
        self.left = list(self.ids)

    def pick(self, logits):
        return self.left.pop(0)


def scripted(model, text, stop_early=0):
    ids = model.tokenizer.encode(text, add_special=False)
    assert len(ids) > len(text)  # its characters are in pieces
    run = model.generate(IDS, len(ids) - stop_early, Script(ids), stop=False)
    return list(run), run, ids


def test_characters_in_pieces_come_out_whole(model):
    text = "né 🦙 東"
    tokens, run, ids = scripted(model, text)
    assert "".join(t.text for t in tokens) == run.text == text
    assert all("\ufffd" not in t.text for t in tokens)
    assert [t.id for t in tokens] == ids
    assert b"".join(t.piece for t in tokens) == text.encode()


def test_an_unfinished_character_is_shown_at_the_end(model):
    tokens, run, _ = scripted(model, "né 🦙", stop_early=1)
    assert tokens[-1].text.endswith("\ufffd") and run.text == "né \ufffd"


def test_tokens_are_evaluated_only_when_asked_for(model):
    cache = model.new_cache(64)
    run = model.generate(IDS, cache=cache, stop=False)
    assert cache.n == 0
    next(run)
    assert cache.n == 15


def test_text_prompts_are_encoded_and_special_text_stays_plain(model):
    run = model.generate("hello", max_tokens=0)
    assert run.prompt_ids == model.tokenizer.encode("hello")
    forged = model.generate("<|eos|>", max_tokens=0)
    assert len(forged.prompt_ids) > 2


@pytest.mark.parametrize("max_tokens", [-1, 1.5, "3", True])
def test_counts_out_of_range_are_refused(model, max_tokens):
    with pytest.raises(BadArgument, match="max_tokens"):
        model.generate(IDS, max_tokens)


def test_nan_logits_raise(model, monkeypatch):
    nan = np.full(323, np.nan, np.float32)
    monkeypatch.setattr(model.backend, "prefill", lambda *a: nan[None])
    with pytest.raises(BadArgument, match="NaN"):
        list(model.generate(IDS, 1))
