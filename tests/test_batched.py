"""The official pass against the walk, against itself in pieces, and by its gradients."""

import json

import numpy as np
import pytest

import synapse_edu as se
from synapse_edu.errors import BadArgument, ContextFull, FileProblem
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


def test_widths_of_the_released_models(tmp_path):
    eight = batched.ModelArgs(dim=4096, multiple_of=1024, ffn_dim_multiplier=1.3)
    assert eight.ffn_dim == 14336
    assert batched.ModelArgs(dim=8192, multiple_of=4096, ffn_dim_multiplier=1.3).ffn_dim == 28672
    assert batched.ModelArgs(dim=4096).ffn_dim == 11008
    path = tmp_path / "params.json"
    path.write_text(json.dumps({"dim": 64, "n_layers": 2, "n_heads": 4, "more": 1}), "utf-8")
    assert batched.ModelArgs.from_params_json(path).dim == 64
    path.write_text("[]", "utf-8")
    with pytest.raises(FileProblem, match="n_layers"):
        batched.ModelArgs.from_params_json(path)


def test_refusals(pair):
    _, args, p = pair
    with pytest.raises(BadArgument, match="8192"):
        batched.ModelArgs(max_seq_len=8193).check()
    t = batched.Transformer(args, p)
    with pytest.raises(ContextFull, match="64"):
        t.forward(np.ones((1, 3), int), 62)
    with pytest.raises(BadArgument, match="vocabulary"):
        t.forward(np.array([[10**6]]), 0)
    with pytest.raises(BadArgument, match="at least one token"):
        ragged.generate(t, [[1], []], 2)


def test_top_p_keeps_the_likeliest():
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))
    random = np.random.default_rng(0)
    drawn = {ragged.pick(logits, 1.0, 0.79, random) for _ in range(300)}
    assert drawn == {0, 1}
    assert ragged.pick(logits, 0.0, 0.5, random) == 0
