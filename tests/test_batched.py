"""The official pass against the walk, against itself in pieces, and by its gradients."""

from dataclasses import replace

import numpy as np
import pytest

import synapse_edu as se
from synapse_edu.errors import BadArgument, ContextFull
from synapse_edu.model import batched, ragged

IDS = [1, 260, 5, 17, 40, 99, 7, 301, 12, 33, 8]


@pytest.fixture(scope="module", params=["llama_f32_tied", "llama_f32_untied"])
def pair(request, golden):
    model = se.load(golden / f"{request.param}.gguf", numerics="textbook")
    args, p = batched.from_weights(model.weights, model.config, 3, 64)
    return model, args, p


def close(a, b):
    return np.abs(a - b).max() <= 3e-5 * np.abs(b).max()


def walked(model, ids):
    return model.prefill(ids, model.new_cache(64), logits="all")


def test_equals_the_walk(pair):
    model, args, p = pair
    ids = [i % model.config.n_vocab for i in IDS]
    got = batched.Transformer(args, p).forward(np.array([ids]), 0)
    assert got.dtype == np.float32 and close(got[0], walked(model, ids))
    assert close(batched.logits_without_cache(p, np.array([ids]), args)[0], got[0])


@pytest.mark.parametrize("cut", [1, 4, 10])
def test_several_tokens_after_a_start(pair, cut):
    model, args, p = pair
    ids = [i % model.config.n_vocab for i in IDS]
    t = batched.Transformer(args, p)
    parts = [t.forward(np.array([ids[:cut]]), 0), t.forward(np.array([ids[cut:]]), cut)]
    assert close(np.concatenate(parts, 1)[0], walked(model, ids))


def test_a_batch_of_ragged_prompts(pair):
    model, args, p = pair
    n = model.config.n_vocab
    prompts = [[1, 5 % n, 9 % n], [1, 7 % n, 8 % n, 44 % n, 3], [2, 6]]
    got = ragged.generate(batched.Transformer(args, p), prompts, 6, temperature=0)
    for prompt, added in zip(prompts, got, strict=True):
        cache, want = model.new_cache(64), []
        logits = model.prefill(prompt, cache)
        for _ in range(6):
            want.append(int(np.argmax(logits)))
            logits = model.decode(want[-1], cache)
        assert added == want


def test_stop_ids_end_a_row(pair):
    _, args, p = pair
    first = ragged.generate(batched.Transformer(args, p), [[1, 5, 9]], 6, temperature=0)[0]
    stopped = ragged.generate(
        batched.Transformer(args, p), [[1, 5, 9]], 6, stop_ids=[first[2]], temperature=0
    )[0]
    assert stopped == first[: first.index(first[2])]


def test_mask_and_table():
    mask = batched.causal_mask(3, 2)
    assert mask.shape == (3, 5) and batched.causal_mask(1, 7) is None
    assert (mask[:, :2] == 0).all() and mask[0, 3] == -np.inf and mask[2, 4] == 0
    table = batched.precompute_freqs_cis(8, 10, 500000.0)
    assert table.shape == (10, 4) and table.dtype == np.complex64 and np.all(table[0] == 1)


def test_refusals(pair):
    _, args, p = pair
    t = batched.Transformer(args, p)
    with pytest.raises(ContextFull, match="64"):
        t.forward(np.ones((1, 3), int), 62)
    with pytest.raises(BadArgument, match="vocabulary"):
        t.forward(np.array([[10**6]]), 0)
    with pytest.raises(BadArgument, match="at least one token"):
        ragged.generate(t, [[1], []], 2)
    with pytest.raises(BadArgument, match="shape"):
        t.forward(np.array([1, 2, 3]), 0)
    with pytest.raises(BadArgument, match="whole numbers"):
        t.forward(np.array([[1.0, 2.0]]), 0)
    for wrong in ({"temperature": float("nan")}, {"top_p": 1.5}, {"max_gen_len": -1}):
        with pytest.raises(BadArgument, match="top_p lies"):
            ragged.generate(t, [[1]], **{"max_gen_len": 2, **wrong})


def test_tensors_that_do_not_fit_the_numbers(pair):
    _, args, p = pair
    rest = {name: x for name, x in p.items() if name != "norm.weight"}
    with pytest.raises(BadArgument, match="norm.weight.*nothing"):
        batched.Transformer(args, rest)
    with pytest.raises(BadArgument, match="layers.2.attention.wq.weight.*nothing"):
        batched.Transformer(replace(args, n_layers=10**12), p)
    with pytest.raises(BadArgument, match="w1.weight"):
        batched.Transformer(replace(args, multiple_of=7), p)


@pytest.mark.parametrize(
    "name",
    ["llama_f32_allbias", "llama_f32_keylen", "llama_f32_linear", "llama_f32_ropefreqs",
     "llama_f32_yarn", "qwen2_f32_tied", "mistral3_q4_0"],
)  # fmt: skip
def test_refuses_what_the_official_pass_has_not(golden, name):
    model = se.load(golden / f"{name}.gguf")
    with pytest.raises(BadArgument, match="official Llama 3 pass"):
        batched.from_weights(model.weights, model.config)


def test_top_p_keeps_the_likeliest():
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))
    random = np.random.default_rng(0)
    drawn = {ragged.pick(logits, 1.0, 0.79, random) for _ in range(300)}
    assert drawn == {0, 1}
    assert ragged.pick(logits, 0.0, 0.5, random) == 0
