"""A real model, 30 layers: greedy continuations token for token, logits and steps by bits."""

import json

import numpy as np
import pytest
from golden_data import FORWARD, arrays, differing

import synapse_edu as se

pytestmark = pytest.mark.smollm2
RECORDED = arrays("smollm2")
ABOUT = json.loads((FORWARD / "smollm2.json").read_text(encoding="utf-8"))
BUILDS = {"scalar": "llama.cpp", "avx2": "llama.cpp-avx2"}
N_TOKENS = {"scalar": 40, "avx2": 4}  # the AVX2 order takes over half a second a token here
prompts = pytest.mark.parametrize("p", range(3))


@pytest.fixture(scope="module")
def model(smollm2_path):
    return se.load(smollm2_path)


@pytest.fixture(scope="module", params=BUILDS)
def build(request, model):
    """A build's name, the model under its numerics, and a place for prompts already run."""
    return request.param, model.with_numerics(BUILDS[request.param]), {}


def stepped(build, p):
    """A prompt run token by token: the cache and the last token's steps, run once."""
    _, model, done = build
    if p not in done:
        *head, last = RECORDED[f"p{p}.prompt"].tolist()
        cache = model.new_cache(64)
        for id in head:
            model.decode(id, cache)
        done[p] = cache, {s.llama_cpp_name: s.value for s in model.walk(last, cache)}
    return done[p]


@prompts
def test_prompts_become_the_recorded_ids(model, p):
    ids = model.tokenizer.encode(ABOUT["prompts"][p], parse_special=True)
    assert ids == RECORDED[f"p{p}.prompt"].tolist()


def test_steps_of_three_layers(build):
    name, _, _ = build
    _, steps = stepped(build, 1)
    keys = [k for k in RECORDED if k.startswith(f"p1.{name}.mid.")]
    assert len(keys) == 22
    for key in keys:
        step = key.split(".mid.")[1]
        step = "result_norm.MUL" if step == "result_norm" else step
        assert differing(steps[step].ravel(), RECORDED[key].ravel()) == 0, step


@prompts
def test_greedy_tokens_and_their_logits(build, p):
    """Of each token the 20 largest logits by bits, of the first all that were recorded."""
    name, model, _ = build
    cache, steps = stepped(build, p)
    logits = steps["result_output.MUL_MAT"]
    if f"p{p}.{name}.full_first" in RECORDED:
        assert differing(logits, RECORDED[f"p{p}.{name}.full_first"]) == 0
    for i, id in enumerate(RECORDED[f"p{p}.{name}.gen"][: N_TOKENS[name]].tolist()):
        top = RECORDED[f"p{p}.{name}.top_id"][i]
        assert differing(logits[top], RECORDED[f"p{p}.{name}.top_logit"][i]) == 0
        assert int(np.argmax(logits)) == id
        logits = model.decode(id, cache)


@prompts
def test_the_prompt_in_one_batch(build, p):
    """The 20 largest logits after it, in falling order."""
    name, model, _ = build
    logits = model.prefill(RECORDED[f"p{p}.prompt"].tolist(), model.new_cache(64))
    want = RECORDED[f"p{p}.{name}.batch_last_top"]
    assert differing(np.sort(logits)[::-1][:20], want) == 0


def test_generate_gives_the_recorded_text(model):
    ids = RECORDED["p0.prompt"].tolist()
    run = model.generate(ids, max_tokens=40)
    assert [t.id for t in run] == RECORDED["p0.scalar.gen"].tolist()
    assert run.text == model.tokenizer.decode(run.ids)
    assert run.text.startswith(" Paris")
