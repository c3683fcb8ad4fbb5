"""Llama's interface: what it accepts, what it refuses before any work, and context limits."""

import numpy as np
import pytest
from golden_data import FORWARD, arrays, differing

import synapse_edu as se
from synapse_edu.errors import BadArgument, ContextFull, TokenizerProblem
from synapse_edu.model import walk
from synapse_edu.model.llama import Llama

NAME = "llama_f32_untied"
IDS = arrays(NAME)["tokens"][:17].tolist()


@pytest.fixture(scope="module")
def model():
    return se.load(FORWARD / f"{NAME}.gguf")


@pytest.fixture
def no_work(monkeypatch):
    """Any forward pass fails the test."""

    def refuse(*args, **kwargs):
        raise AssertionError("a pass was started")

    monkeypatch.setattr(walk, "embedding", refuse)


def test_rows_of_logits(model):
    def run(logits):
        return model.prefill(IDS, model.new_cache(32), logits)

    every = run("all")
    assert every.shape == (17, 323) and differing(run("last"), every[-1]) == 0
    assert differing(run([3, -1, 0, 3]), every[[3, 16, 0, 3]]) == 0
    assert run([]).shape == (0, 323)


def test_a_prefill_without_logits_fills_the_same_cache(model):
    one, other = model.new_cache(32), model.new_cache(32)
    model.prefill(IDS, one, logits=[])
    model.prefill(IDS, other, logits="all")
    assert one.k.tobytes() == other.k.tobytes() and one.v.tobytes() == other.v.tobytes()
    assert one.ids == other.ids == IDS


@pytest.mark.parametrize("logits", ["first", [17], [-18], [0.5], [True], 99])
def test_rows_that_do_not_exist_are_refused(model, no_work, logits):
    with pytest.raises(BadArgument):
        model.prefill(IDS, model.new_cache(32), logits)


@pytest.mark.parametrize(
    "ids",
    [[], [323], [-1], [1.0], [True], ["a"], "text", b"text", 5, None, [[1, 2]], [[1], [1, 2]]],
    ids=repr,
)
def test_ids_are_checked_before_any_work(model, no_work, ids):
    cache = model.new_cache(8)
    with pytest.raises(BadArgument):
        model.prefill(ids, cache)
    if ids != 5:  # one id is what decode takes
        with pytest.raises(BadArgument):
            model.decode(ids, cache)
    assert len(cache) == 0


def test_numpy_ids_are_taken(model):
    cache = model.new_cache(32)
    got = model.prefill(np.array(IDS, np.int32), cache)
    assert differing(got, model.prefill(IDS, model.new_cache(32))) == 0
    assert all(type(i) is int for i in cache.ids)
    model.decode(np.int64(3), cache)


def test_sixteen_ids_fit_into_sixteen_positions_and_seventeen_do_not(model, no_work, monkeypatch):
    with pytest.raises(ContextFull, match="17.*16"):
        model.prefill(IDS, model.new_cache(16))
    with pytest.raises(ContextFull, match="17.*16"):
        model.generate(IDS, cache=model.new_cache(16))
    with pytest.raises(BadArgument, match="empty"):
        model.generate([], cache=model.new_cache(16))
    monkeypatch.undo()
    cache = model.new_cache(16)
    model.prefill(IDS[:16], cache)
    with pytest.raises(ContextFull, match="1 tokens after the 16.*16"):
        model.decode(1, cache)


def test_default_context_is_the_models_at_most_4096(model):
    assert model.n_ctx == model.config.n_ctx_train == 2048
    large = Llama(model.config.replace(n_ctx_train=131072), model.weights)
    assert large.n_ctx == 4096
    assert se.load(FORWARD / f"{NAME}.gguf", n_ctx=100).new_cache().n_ctx == 100


def test_a_cache_of_another_storage_is_refused(model, no_work):
    with pytest.raises(BadArgument, match="new_cache"):
        model.prefill(IDS, model.with_numerics("textbook").new_cache(32))


def test_a_prompt_longer_than_a_batch_is_cut(monkeypatch):
    model = se.load(FORWARD / "llama_f32_long.gguf")
    ids = arrays("llama_f32_long")["tokens"].tolist()
    want = model.prefill(ids, model.new_cache(512), [0, 100, 299])
    from synapse_edu.model import backends

    monkeypatch.setattr(backends, "UBATCH", 64)
    assert differing(model.prefill(ids, model.new_cache(512), [0, 100, 299]), want) == 0


def test_without_a_vocabulary_only_the_tokenizer_raises(model):
    bare = Llama(model.config, model.weights)
    with pytest.raises(TokenizerProblem):
        bare.tokenizer  # noqa: B018
    with pytest.raises(TokenizerProblem):
        bare.generate("text")
    tokens = list(bare.generate(IDS, max_tokens=3))
    assert [t.id for t in tokens] == [t.id for t in model.generate(IDS, max_tokens=3)]
    assert [t.text for t in tokens] == ["", "", ""]


def test_unknown_backend_and_numerics_are_refused(model):
    with pytest.raises(BadArgument, match="reference"):
        Llama(model.config, model.weights, backend="gpu")
    with pytest.raises(BadArgument, match="textbook"):
        model.with_numerics("exact")


def test_arguments_of_the_wrong_kind(golden):
    model = se.load(golden / "llama_f32_tied.gguf", backend="reference")
    with pytest.raises(BadArgument, match="new_cache"):
        model.prefill([1], None)
    with pytest.raises(BadArgument, match="does not fit into memory"):
        model.new_cache(10**14)
    with pytest.raises(BadArgument, match="n_ctx"):
        se.load(golden / "llama_f32_tied.gguf", n_ctx=0)
    with pytest.raises(BadArgument, match="not a int"):
        se.load(3)


def test_a_cache_of_another_model_of_the_same_shape_is_refused(golden):
    a, b = se.load(golden / "llama_f16.gguf"), se.load(golden / "llama_bf16.gguf")
    cache = a.new_cache(8)
    a.prefill([1, 2, 3], cache)
    with pytest.raises(BadArgument, match="another model"):
        b.decode(4, cache)
    same_file = se.load(golden / "llama_f16.gguf")
    assert same_file.decode(4, cache).shape == (a.config.n_vocab,)


@pytest.mark.parametrize("ids", [np.array(5), np.array([[1, 2]]), {1: 2}, {1, 2}, "12", 5, None])
def test_ids_are_a_list_in_order(model, ids):
    with pytest.raises(BadArgument, match="list of token ids"):
        model.prefill(ids, model.new_cache(4))


@pytest.mark.parametrize("more", [{"sampler": "greedy"}, {"stop": "x"}, {"stop": [1.5]}])
def test_generation_refuses_what_it_cannot_use(model, more):
    with pytest.raises(BadArgument):
        model.generate([1, 2], 3, **more)
