"""The list of steps: complete, consistent, and true of the package and of each family."""

import re
from pathlib import Path

import pytest

import synapse_edu
from synapse_edu.config import Config, Rope
from synapse_edu.errors import BadArgument
from synapse_edu.model import steps
from synapse_edu.model.spec import SYMBOLS, symbols

PACKAGE = Path(synapse_edu.__file__).parent
ONE_B = Config("llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, tied=True, rope=Rope(n_rot=64))


def test_names_are_unique_and_found():
    names = [s.name for s in steps.STEPS]
    assert len(set(names)) == len(names)
    assert steps.spec("q_rope").tensor == "Qcur-{L}.ROPE"
    with pytest.raises(BadArgument, match="attn_norm"):
        steps.spec("nothing")


@pytest.mark.parametrize("spec", steps.STEPS, ids=lambda s: s.name)
def test_every_step_says_everything(spec):
    for text in (spec.what, spec.why):
        assert text.endswith(".") and len(text) > 30
    for text in (spec.formula, spec.package, spec.llama_cpp, spec.official, spec.synapse):
        assert text
    assert spec.formula.count("{") == spec.formula.count("}")
    assert all(symbol in SYMBOLS for _, shape in spec.inputs for symbol in (*shape, *spec.output))


@pytest.mark.parametrize("spec", steps.STEPS, ids=lambda s: s.name)
def test_the_function_named_is_in_the_file_named(spec):
    function, path = re.fullmatch(r"(\w+) \(([\w/.]+)\).*", spec.package).groups()
    assert f"def {function}(" in (PACKAGE / path).read_text(encoding="utf-8")


def test_inputs_are_earlier_steps_weights_or_the_cache():
    seen = {"residual", "keys", "values"}
    for spec in steps.STEPS:
        for name, _ in spec.inputs:
            assert name in seen or name.endswith((".weight", ".bias")), (spec.name, name)
        seen.add(spec.name)


def test_shapes_in_numbers():
    q, scores = steps.spec("q"), steps.spec("scores")
    assert q.shape(ONE_B) == (2048,)
    assert q.input_shapes(ONE_B) == {"attn_norm": (2048,), "blk.{L}.attn_q.weight": (2048, 2048)}
    assert steps.spec("k").shape(ONE_B) == (512,)
    assert scores.shape(ONE_B, position=9) == (32, 10)
    assert symbols(scores.output) == "(n_head, p+1)" and symbols(q.output) == "(n_head·head_dim,)"


def test_plan_of_each_family():
    plain = steps.plan(ONE_B)
    assert len(plain) == 1 + 16 * 20 + 3 and plain[0][1] is None and plain[1][1] == 0
    assert not any(s.needs for s, _ in plain)
    qwen = steps.plan(ONE_B.replace(architecture="qwen2"))
    assert sum(bool(s.needs) for s, _ in qwen) == 16 * 3
    mistral = steps.plan(ONE_B.replace(architecture="mistral3", attn_temperature_scale=0.1))
    assert sum(s.name == "q_temperature" for s, _ in mistral) == 16


def test_names_in_llama_cpp_depend_on_family_and_bias():
    down, out = steps.spec("ffn_down"), steps.spec("attn_output")
    assert down.llama_cpp_name(3, "llama") == "ffn_out-3.MUL_MAT"
    assert down.llama_cpp_name(3, "llama", has_bias=True) == "ffn_down-3.MUL_MAT"
    assert out.llama_cpp_name(0, "llama") == "attn_out-0.MUL_MAT"
    assert out.llama_cpp_name(0, "qwen2") == out.llama_cpp_name(0, "llama", has_bias=True) == ""
