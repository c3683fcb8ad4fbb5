"""Field cases: faults that people who do this job ran into, with their recorded values.

The files may stand beside the repository.  The same
behaviour is tested on this repository's own models in test_walk, test_llama, test_generate,
test_trace, test_attention and test_sampling.
"""

import importlib.util
import json
import subprocess
import sys

import cases_adapter
import numpy as np
import pytest
from golden_data import differing
from shared_data import CASES, needs_shared

import synapse_edu as se
from synapse_edu.errors import BadArgument, ContextFull

BACKENDS = ["reference", "fast"]
pytestmark = needs_shared("test_walk, test_llama, test_generate, test_trace, test_attention")


def module(name):
    spec = importlib.util.spec_from_file_location(f"cases_{name}", CASES / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def automatic():
    return sorted(module("checks").CHECKS) if CASES.is_dir() else ["absent"]


def case(name):
    """The case's folder, expected values, and recorded arrays."""
    folder = CASES / "inputs" / name
    record = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    recorded = folder / "expected.npz"
    return folder, record["expected"], dict(np.load(recorded)) if recorded.exists() else {}


@pytest.mark.parametrize("name", automatic())
def test_automatic(name):
    run = module("run_cases").Run(cases_adapter, CASES / "inputs" / name)
    module("checks").CHECKS[name](run)


@pytest.mark.parametrize("backend", BACKENDS)
def test_s16_splits_give_the_same_bits(backend):
    folder, expected, _ = case("S16")
    model = se.load(folder / "m.gguf", numerics=cases_adapter.NUMERICS, backend=backend)
    whole = cases_adapter.logits(model, expected["ids"])
    for split in expected["splits"]:
        assert differing(cases_adapter.logits(model, expected["ids"], split), whole) == 0


def test_s17_a_prompt_twice():
    folder, expected, recorded = case("S17")
    model = cases_adapter.load(folder / "m.gguf")
    cache, rows = model.new_cache(), []
    for prompt in (expected["first"], expected["first"], expected["then"]):
        run = model.generate(prompt, max_tokens=1, cache=cache, stop=False)
        (token,) = run
        assert run.n_reused < len(prompt) and cache.ids == prompt
        rows.append(token.logits)
    assert differing(rows[0], rows[1]) == 0
    assert np.abs(rows[0] - recorded["first_last_row"]).max() < 2e-3
    assert np.abs(rows[2] - recorded["then_last_row"]).max() < 2e-3


def test_s18_the_context_limit(monkeypatch):
    folder, expected, recorded = case("S18")
    model = cases_adapter.load(folder / "m.gguf", n_ctx=expected["n_ctx"])
    got = model.prefill(expected["fits"], model.new_cache(), logits="all")
    assert np.abs(got - recorded["logits"]).max() < 2e-3
    run = model.generate(expected["fits"][:10], stop=False)
    assert len(list(run)) == 7 and run.stop_reason == "context_full"
    monkeypatch.setattr(model, "backend", None)  # from here on nothing may be computed
    for refused in (model.generate, lambda ids: model.prefill(ids, model.new_cache())):
        with pytest.raises(ContextFull, match="17.*16"):
            refused(expected["too_long"])
        with pytest.raises(BadArgument, match="empty"):
            refused([])


def test_s20_recorded_attention():
    folder, expected, recorded = case("S20")
    model = cases_adapter.load(folder / "m.gguf")
    ids = expected["ids"]
    trace = se.Trace.record(model, ids)
    for layer in range(model.config.n_layer):
        p = trace.attention(layer)
        assert len(p) == model.config.n_head
        assert np.abs(p - recorded[f"layer{layer}"]).max() < 1e-5
        assert np.allclose(p.sum(-1), 1, atol=1e-6) and (np.triu(p, 1) == 0).all()
    assert differing(trace.all("logits"), cases_adapter.logits(model, ids)) == 0


def test_s21_temperature_zero():
    _, expected, _ = case("S21")
    with np.errstate(all="raise"):
        pick = se.Sampler(temperature=0).pick(np.array(expected["logits"], np.float32))
    assert pick == expected["pick"]
    with pytest.raises(BadArgument, match="NaN"):
        se.Sampler(temperature=0).pick(np.array(expected["nan_logits"], np.float32))


@pytest.mark.parametrize("backend", BACKENDS)
def test_s22_no_cache_folder_can_be_written(backend):
    folder, _, _ = case("S22")
    program = (
        f"exec(open({str(folder / 'readonly.py')!r}, encoding='utf-8').read())\n"
        "import synapse_edu as se\n"
        f"model = se.load('built-in', backend={backend!r})\n"
        "print(model.prefill([1, 2, 3], model.new_cache()).argmax())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8"
    )
    model = se.load("built-in", backend="reference")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == model.prefill([1, 2, 3], model.new_cache()).argmax()


@pytest.mark.parametrize("room", ["reference", "fast"])
def test_s23_minus_infinity_and_nan(room):
    softmax = importlib.import_module(f"synapse_edu.ops.{room}.attention").softmax
    _, expected, _ = case("S23")
    scores = np.array(expected["scores"], np.float32)[:, None]  # (2, 1, 3): n, heads, n_kv
    for numerics in map(se.Numerics.named, ("llama.cpp", "textbook", "synapse")):
        p = softmax(scores, numerics)[:, 0]
        assert np.allclose(p, expected["weights"], rtol=1e-6, atol=0)
        assert (p[np.isneginf(scores[:, 0])] == 0).all()
        scores_with_nan = scores.copy()
        scores_with_nan[1, 0, 0] = np.nan
        bad = softmax(scores_with_nan, numerics)[:, 0]
        assert np.isnan(bad[1]).any() and (bad[0] == p[0]).all()
