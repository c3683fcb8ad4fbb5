"""A real model, 30 layers: greedy continuations token for token, logits and steps by bits."""

import json

import numpy as np
import pytest
from golden_data import FORWARD, arrays, differing

import synapse_edu as se

pytestmark = pytest.mark.smollm2
RECORDED = arrays("smollm2")
ABOUT = json.loads((FORWARD / "smollm2.json").read_text(encoding="utf-8"))
BUILDS = {"scalar": "llama.cpp"}


@pytest.fixture(scope="module")
def model(smollm2_path):
    return se.load(smollm2_path)


@pytest.mark.parametrize("p", range(3))
def test_prompts_become_the_recorded_ids(model, p):
    ids = model.tokenizer.encode(ABOUT["prompts"][p], parse_special=True)
    assert ids == RECORDED[f"p{p}.prompt"].tolist()


@pytest.mark.parametrize("p", range(3))
@pytest.mark.parametrize("build", BUILDS)
def test_greedy_tokens_and_their_logits(model, build, p):
    """The prompt token by token, then 40 tokens; of each the 20 largest logits by bits."""
    run = model.with_numerics(BUILDS[build])
    cache = run.new_cache(64)
    for id in RECORDED[f"p{p}.prompt"].tolist():
        logits = run.decode(id, cache)
    for i, id in enumerate(RECORDED[f"p{p}.{build}.gen"].tolist()):
        top = RECORDED[f"p{p}.{build}.top_id"][i]
        assert differing(logits[top], RECORDED[f"p{p}.{build}.top_logit"][i]) == 0
        assert int(np.argmax(logits)) == id
        if i == 0 and f"p{p}.{build}.full_first" in RECORDED:
            assert differing(logits, RECORDED[f"p{p}.{build}.full_first"]) == 0
        logits = run.decode(id, cache)


@pytest.mark.parametrize("p", range(3))
@pytest.mark.parametrize("build", BUILDS)
def test_the_prompt_in_one_batch(model, build, p):
    run = model.with_numerics(BUILDS[build])
    logits = run.prefill(RECORDED[f"p{p}.prompt"].tolist(), run.new_cache(64))
    want = RECORDED[f"p{p}.{build}.batch_last_top"]
    assert differing(logits[RECORDED[f"p{p}.{build}.top_id"][0]], want) == 0


@pytest.mark.parametrize("build", BUILDS)
def test_steps_of_three_layers(model, build):
    run = model.with_numerics(BUILDS[build])
    *head, last = RECORDED["p1.prompt"].tolist()
    cache = run.new_cache(64)
    for id in head:
        run.decode(id, cache)
    steps = {s.llama_cpp_name: s.value for s in run.walk(last, cache)}
    names = [k for k in RECORDED if k.startswith(f"p1.{build}.mid.")]
    assert len(names) == 22
    for key in names:
        name = key.split(".mid.")[1]
        name = "result_norm.MUL" if name == "result_norm" else name
        assert differing(steps[name].ravel(), RECORDED[key].ravel()) == 0, name


def test_generate_gives_the_recorded_text(model):
    ids = RECORDED["p0.prompt"].tolist()
    run = model.generate(ids, max_tokens=40)
    assert [t.id for t in run] == RECORDED["p0.scalar.gen"].tolist()
    assert run.text == model.tokenizer.decode(run.ids)
    assert run.text.startswith(" Paris")
