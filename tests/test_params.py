"""The official numbers: widths and sizes of released models, params.json, refusals."""

import json
import math

import pytest

from synapse_edu.config import Config
from synapse_edu.errors import BadArgument, FileProblem, UnsupportedModel
from synapse_edu.model.params import ModelArgs

EIGHT = {
    "dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256,
    "multiple_of": 1024, "ffn_dim_multiplier": 1.3, "norm_eps": 1e-05, "rope_theta": 500000.0,
}  # fmt: skip


def write(folder, content):
    path = folder / "params.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def test_widths_of_the_released_models():
    assert ModelArgs(**EIGHT).ffn_dim == 14336
    assert ModelArgs(dim=8192, multiple_of=4096, ffn_dim_multiplier=1.3).ffn_dim == 28672
    assert ModelArgs(dim=4096).ffn_dim == 11008


def test_llama_3_8b_has_8_030_261_248_numbers(tmp_path):
    args = ModelArgs.from_params_json(write(tmp_path, EIGHT), max_seq_len=8192)
    assert sum(math.prod(shape) for _, shape in args.shapes()) == 8_030_261_248
    assert args.head_dim == 128 and args.max_seq_len == 8192 and args.max_batch_size == 32


def test_the_file_counts_and_not_the_defaults(tmp_path):
    args = ModelArgs.from_params_json(write(tmp_path, {"dim": 64, "n_layers": 2, "n_heads": 4}))
    assert (args.dim, args.kv_heads, args.vocab_size, args.rope_theta) == (64, 4, -1, 500000.0)


@pytest.mark.parametrize("content", ["[]", "{", "[" * 10**5, '{"dim": 64}', b"\xff\xfe"])
def test_files_that_are_not_params(tmp_path, content):
    path = tmp_path / "params.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileProblem, match="params.json"):
        ModelArgs.from_params_json(path)
    with pytest.raises(FileProblem, match="params.json"):
        ModelArgs.from_params_json(tmp_path / "none" / "params.json")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"dim": "4096"}, "dim must be a whole number"),
        ({"dim": 4096.5}, "dim must be a whole number"),
        ({"dim": True}, "dim must be a whole number"),
        ({"dim": None}, "dim must be a whole number"),
        ({"n_heads": 0}, "n_heads must be more than 0"),
        ({"n_kv_heads": 5}, "multiple"),
        ({"n_heads": 4096}, "even number"),
        ({"rope_theta": -1.0}, "rope_theta must be more"),
        ({"ffn_dim_multiplier": float("nan")}, "ffn_dim_multiplier must be a number"),
        ({"vocab_size": -2}, "vocab_size"),
    ],
)
def test_numbers_that_no_model_has(tmp_path, change, named):
    with pytest.raises(FileProblem, match=named):
        ModelArgs.from_params_json(write(tmp_path, EIGHT | change))


def test_settings_of_other_models_are_not_passed_over(tmp_path):
    with pytest.raises(UnsupportedModel, match="3.1"):
        ModelArgs.from_params_json(write(tmp_path, EIGHT | {"use_scaled_rope": True}))
    assert ModelArgs.from_params_json(write(tmp_path, EIGHT | {"use_scaled_rope": False}))
    with pytest.raises(UnsupportedModel, match="'moe_args'"):
        ModelArgs.from_params_json(write(tmp_path, EIGHT | {"moe_args": {}}))


def test_the_length_that_the_wrapper_accepts():
    assert ModelArgs(max_seq_len=8192).check().max_seq_len == 8192
    with pytest.raises(BadArgument, match="8192"):
        ModelArgs(max_seq_len=8193).check()


@pytest.mark.parametrize("n_ff", [352, 341, 340, 96, 8192])
def test_a_config_keeps_its_width(n_ff):
    config = Config("llama", 2, 128, 4, 2, 32, n_ff, 300, 256)
    args = ModelArgs.from_config(config)
    assert args.ffn_dim == n_ff and args.check().kv_heads == 2
