"""The whole pass against llama.cpp, every recorded array, by bits."""

from functools import cache as remember

import numpy as np
import pytest
from golden_data import FORWARD, VARIANTS, arrays, differing

import synapse_edu as se
from synapse_edu.model.walk import Step

BUILDS = {
    "scalar": se.Numerics.named("llama.cpp"),
    "avx2": se.Numerics.named("llama.cpp-avx2"),
    "avx2_norepack": se.Numerics.named("llama.cpp-avx2").replace(repack=False),
}
FLOAT32_CACHE = arrays("float32_cache")


@remember
def opened(name):
    return se.load(FORWARD / f"{name}.gguf")


def recorded(build, how):
    """The variants that have this recording; portable batches equal portable steps."""
    return [v for v in VARIANTS if build == "scalar" or f"{build}.{how}" in arrays(v)]


def cases(how):
    return [
        pytest.param(build, name, id=f"{build}-{name}")
        for build in BUILDS
        for name in recorded(build, how)
    ]


def logits_of(name, numerics, sizes):
    """Logits of every position, the prompt cut into batches of these sizes."""
    model = opened(name).with_numerics(numerics)
    ids, cache, out = arrays(name)["tokens"].tolist(), model.new_cache(512), []
    for size in sizes:
        out.append(model.prefill(ids[cache.n : cache.n + size], cache, logits="all"))
    return np.concatenate(out)


@pytest.mark.parametrize(("build", "name"), cases("step"))
def test_single_tokens_and_every_intermediate(build, name):
    want = arrays(name)
    model = opened(name).with_numerics(BUILDS[build])
    cache, logits, wrong, seen = model.new_cache(512), [], [], set()
    for position, id in enumerate(want["tokens"].tolist()):
        for step in model.walk(id, cache):
            assert isinstance(step, Step) and step.position == position
            key = f"{build}.p{position}.{step.llama_cpp_name}"
            if step.llama_cpp_name and key in want:
                seen.add(key)
                if differing(step.value.ravel(), want[key].ravel()):
                    wrong.append(key)
        logits.append(step.value)
    assert not wrong
    # Nodes without a name are rows picked for the last layer, or a product before its bias.
    named = {k for k in want if k.startswith(f"{build}.p") and ".node_" not in k}
    assert seen == named
    assert differing(np.array(logits)[want["logit_pos"]], want[f"{build}.step"]) == 0


@pytest.mark.parametrize(("build", "name"), cases("batch"))
def test_one_batch(build, name):
    want = arrays(name)
    key = f"{build}.batch" if f"{build}.batch" in want else f"{build}.step"
    got = logits_of(name, BUILDS[build], [len(want["tokens"])])
    assert differing(got[want["logit_pos"]], want[key]) == 0


@pytest.mark.parametrize(("build", "name"), cases("chunks"))
def test_uneven_chunks(build, name):
    want = arrays(name)
    key = f"{build}.chunks" if f"{build}.chunks" in want else f"{build}.step"
    got = logits_of(name, BUILDS[build], VARIANTS[name]["chunk_sizes"])
    assert differing(got[want["logit_pos"]], want[key]) == 0


@pytest.mark.parametrize("key", sorted(FLOAT32_CACHE))
def test_float32_cache(key):
    """Neither q nor the probabilities are rounded, and AVX2 batches take another path for q·k."""
    name, build, how = key.split(".")
    n = len(arrays(name)["tokens"])
    sizes = [1] * n if how == "step" else [n]
    if how == "chunks":
        sizes = VARIANTS[name]["chunk_sizes"]
    got = logits_of(name, BUILDS[build].replace(cache="float32"), sizes)
    assert differing(got[-8:], FLOAT32_CACHE[key]) == 0


def test_every_recorded_array_was_compared():
    """A recording that no test above reads would make them look more complete than they are."""
    known = {f"{b}.{how}" for b in BUILDS for how in ("step", "batch", "chunks")}
    for name in VARIANTS:
        for key in arrays(name):
            intermediate = key.split(".")[1].startswith("p") if "." in key else False
            assert key in known or intermediate or key in ("tokens", "logit_pos"), (name, key)
