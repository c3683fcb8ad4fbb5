"""From a Hugging Face folder to GGUF: the same numbers under other names, in another order.

The tests marked `peer` compare with transformers on torch's CPU:
``pytest -m peer tests/test_convert.py``.
"""

import json

import numpy as np
import pytest
from hf_folder import config_json, tensors_of, write_folder, write_safetensors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import synapse_edu as se
from synapse_edu.checkpoint.container import open_container
from synapse_edu.checkpoint.convert import convert, gguf_name, pair_rows
from synapse_edu.checkpoint.hf_config import metadata_from, rope_freqs_llama3
from synapse_edu.checkpoint.hparams import config_from_metadata
from synapse_edu.checkpoint.safetensors import read_file
from synapse_edu.cli import main
from synapse_edu.config import Rope
from synapse_edu.errors import BadArgument, FileProblem, SynapseError, UnsupportedModel
from synapse_edu.ops.reference.rope import rope

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
YARN = {
    "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16,
    "beta_fast": 32.0, "beta_slow": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1,
    "rope_theta": 1e6,
}  # fmt: skip
MODELS = {
    "llama_f32_untied": {},
    "llama_f32_allbias": {},
    "llama_f32_keylen": {},
    "llama_f32_tied": {},
    "llama_f16": {},
    "llama_bf16": {},
    "llama_f32_linear": {"rope_scaling": {"type": "linear"}},
    "llama_f32_ropefreqs": {
        "rope_scaling": LLAMA3 | {"original_max_position_embeddings": 64},
    },
    "qwen2_f32_tied": {},
    "qwen2_f32_untied": {},
    "mistral3_f32_yarn_temp": {"rope_parameters": YARN, "rope_theta": None},
}


# --- the permutation -----------------------------------------------------------------------------
@pytest.mark.parametrize(("n_head", "n_head_kv", "head_dim"), [(4, 4, 8), (6, 2, 16), (3, 1, 2)])
def test_moved_rows_leave_every_score_as_it_was(n_head, n_head_kv, head_dim):
    """Half-split RoPE on the rows as they come = pair RoPE on the moved rows."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((5, 24)).astype(np.float32)  # (tokens, n_embd)
    positions = np.array([0, 1, 2, 40, 1000])

    def rotated(weight, heads, layout):
        y = (x @ weight.T).reshape(5, heads, head_dim)  # (tokens, heads, head_dim)
        return rope(y, positions, Rope(n_rot=head_dim, layout=layout), None, NUMERICS)

    wq = rng.standard_normal((n_head * head_dim, 24)).astype(np.float32)
    wk = rng.standard_normal((n_head_kv * head_dim, 24)).astype(np.float32)

    def scores(q, k):
        k = np.repeat(k, n_head // n_head_kv, axis=1)  # (tokens, n_head, head_dim)
        return np.einsum("thd,shd->hts", q, k)  # (n_head, tokens, tokens)

    want = scores(rotated(wq, n_head, "neox"), rotated(wk, n_head_kv, "neox"))
    moved = pair_rows(wq, n_head), pair_rows(wk, n_head_kv)
    got = scores(rotated(moved[0], n_head, "normal"), rotated(moved[1], n_head_kv, "normal"))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    if head_dim > 2:  # with one pair a head there is nothing to move
        wrong = scores(rotated(wq, n_head, "normal"), rotated(wk, n_head_kv, "normal"))
        assert np.abs(wrong - want).max() > 0.1


NUMERICS = se.Numerics.named("textbook")


def test_a_bias_moves_with_its_rows():
    rows = np.arange(24.0).reshape(12, 2)
    assert pair_rows(rows, 2)[:, 0].tolist() == [0, 6, 2, 8, 4, 10, 12, 18, 14, 20, 16, 22]
    assert np.array_equal(pair_rows(rows[:, 0], 2), pair_rows(rows, 2)[:, 0])
    for bad in (5, 0):
        with pytest.raises(BadArgument, match="heads of an even width"):
            pair_rows(rows, bad)


# --- the frequency factors -----------------------------------------------------------------------
RECORDED = {  # the mixed ones, as torch computes them by llama.cpp's converter
    (500000.0, 64, 32.0): [1070816962, 1079161967, 1092266734],
    (500000.0, 128, 8.0): [1067093717, 1069995594, 1073852189, 1076654894, 1080806094, 1084767238],
}


@pytest.mark.parametrize("case", RECORDED)
def test_frequency_factors_by_bits(case):
    base, head_dim, factor = case
    got = rope_freqs_llama3(base, head_dim, factor, 1.0, 4.0, 8192)
    mixed = got[(got != 1) & (got != np.float32(factor))]
    assert got.dtype == np.float32 and len(got) == head_dim // 2
    assert mixed.view(np.uint32).tolist() == RECORDED[case]
    assert np.all(np.diff(got) >= 0) and got[0] == 1 and got[-1] == factor


# --- whole models --------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MODELS)
def test_there_and_back(tmp_path, golden, name):
    changes = dict(MODELS[name])
    if name == "llama_f32_linear":
        factor = se.load(golden / f"{name}.gguf").config.rope.factor
        changes = {"rope_scaling": {"type": "linear", "factor": factor}}
    before, config = write_folder(tmp_path / "hf", golden / f"{name}.gguf", **changes)
    convert(tmp_path / "hf", tmp_path / "new.gguf")
    after = open_container(tmp_path / "new.gguf")
    got = config_from_metadata(after.metadata, after.tensors)
    assert got.replace(name="") == config.replace(name="")
    assert before.tensors.keys() == after.tensors.keys()
    for key, info in before.tensors.items():
        assert (info.format, info.shape) == (after.tensors[key].format, after.tensors[key].shape)
        if key == "rope_freqs.weight":  # recorded from factors computed another way
            a, b = before.raw(key).view("<f4"), after.raw(key).view("<f4")
            np.testing.assert_array_max_ulp(a, b, 2)
        else:
            assert np.array_equal(before.raw(key), after.raw(key)), key


def test_the_same_logits(tmp_path, golden):
    write_folder(tmp_path / "hf", golden / "llama_f32_untied.gguf")
    convert(tmp_path / "hf", tmp_path / "new.gguf")
    models = [se.load(p) for p in (golden / "llama_f32_untied.gguf", tmp_path / "new.gguf")]
    a, b = (m.prefill([1, 5, 9], m.new_cache(), logits="all") for m in models)
    assert np.array_equal(a.view(np.uint32), b.view(np.uint32))


def test_quantized_on_the_way(tmp_path, golden):
    write_folder(tmp_path / "hf", golden / "llama_f32_untied.gguf")
    convert(tmp_path / "hf", tmp_path / "new.gguf", format="Q8_0")
    kinds = {n: i.format.name for n, i in open_container(tmp_path / "new.gguf").tensors.items()}
    assert kinds["blk.0.attn_q.weight"] == kinds["token_embd.weight"] == "Q8_0"
    assert kinds["blk.0.attn_norm.weight"] == "F32"
    with pytest.raises(SynapseError, match="embed_tokens.*Q4_K"):
        convert(tmp_path / "hf", tmp_path / "other.gguf", format="Q4_K")
    assert not (tmp_path / "other.gguf").exists()


def test_files_of_the_package_safetensors_and_an_index(tmp_path, golden):
    """Two shards written by the format's own package, with an index that names them."""
    numpy = pytest.importorskip("safetensors.numpy", reason="needs the extra `convert`")
    before, config = write_folder(tmp_path / "hf", golden / "llama_f16.gguf")
    kinds = {"F32": np.float32, "F16": np.float16}
    arrays = {
        name: np.frombuffer(raw, kinds[kind]).reshape(shape)
        for name, kind, shape, raw in tensors_of(before, config)
    }
    (tmp_path / "hf" / "model.safetensors").unlink()
    names = list(arrays)
    index = {"weight_map": {}}
    for i, part in enumerate((names[::2], names[1::2])):
        file = f"model-{i + 1:05}-of-00002.safetensors"
        numpy.save_file({n: arrays[n] for n in part}, tmp_path / "hf" / file, {"format": "pt"})
        index["weight_map"] |= dict.fromkeys(part, file)
    path = tmp_path / "hf" / "model.safetensors.index.json"
    path.write_text(json.dumps(index), encoding="utf-8")
    convert(tmp_path / "hf", tmp_path / "new.gguf")
    after = open_container(tmp_path / "new.gguf")
    assert all(np.array_equal(before.raw(n), after.raw(n)) for n in before.tensors)
    (tmp_path / "hf" / file).unlink()
    with pytest.raises(FileProblem, match="00002-of-00002.safetensors is missing"):
        convert(tmp_path / "hf", tmp_path / "new.gguf")


def test_the_command(tmp_path, golden, capsys):
    write_folder(tmp_path / "hf", golden / "llama_f16.gguf")
    target = tmp_path / "mein Modell.gguf"
    assert main(["convert", str(tmp_path / "hf"), str(target), "--format", "F32"]) == 0
    assert "n_embd" in capsys.readouterr().out
    assert open_container(target).tensors["blk.0.ffn_up.weight"].format.name == "F32"
    assert main(["convert", str(tmp_path / "nothing"), str(target)]) == 1
    assert "config.json" in capsys.readouterr().err


def test_names():
    assert gguf_name("model.language_model.layers.12.mlp.up_proj.weight") == "blk.12.ffn_up.weight"
    assert gguf_name("language_model.lm_head.weight") == "output.weight"
    assert gguf_name("vision_tower.ln_pre.weight") is None
    assert gguf_name("model.layers.0.self_attn.rotary_emb.inv_freq") is None
    for name in ("model.layers.0.self_attn.q_norm.weight", "model.layers.x.mlp.up_proj.weight"):
        with pytest.raises(UnsupportedModel, match="no place"):
            gguf_name(name)


# --- refusals ------------------------------------------------------------------------------------
CONFIG = {
    "model_type": ("mixtral", "'mixtral' is not converted"),
    "hidden_act": ("gelu", "silu"),
    "quantization_config": ({"bits": 4}, "unquantized"),
    "partial_rotary_factor": (0.5, "rotated whole"),
    "rms_norm_eps": (None, "rms_norm_eps is missing"),
    "hidden_size": ("64", "hidden_size must be a positive whole number"),
    "num_attention_heads": (-1, "num_attention_heads must be"),
    "rope_theta": (float("nan"), "rope_theta must be a number"),
    "rope_scaling": ({"type": "dynamic", "factor": 2.0}, "'dynamic' is not computed"),
    "rope_parameters": ([1], "must be an object"),
    "tie_word_embeddings": (None, "lm_head.weight is missing"),
    "attention_bias": (True, "attention_bias, and the tensor blk.0.attn_q.bias .* is missing"),
    "mlp_bias": (True, "mlp_bias, and the tensor blk.0.ffn_gate.bias .* is missing"),
    "num_hidden_layers": (3, "blk.2.attn_norm.weight .* is missing"),
    "intermediate_size": (95, "gate_proj.weight has shape"),
}


@pytest.mark.parametrize("name", CONFIG)
def test_refusals_name_the_setting(tmp_path, golden, name):
    value, message = CONFIG[name]
    write_folder(tmp_path / "hf", golden / "llama_f32_tied.gguf", **{name: value})
    with pytest.raises(SynapseError, match=message):
        convert(tmp_path / "hf", tmp_path / "new.gguf")
    assert not (tmp_path / "new.gguf").exists()


@pytest.mark.parametrize(
    "changes, words",
    [
        ({}, []),
        ({"model_type": "mistral", "sliding_window": 7}, ["sliding window of 7 tokens"]),
        ({"model_type": "mistral", "sliding_window": 1_000_000}, []),
        ({"sliding_window": 7, "use_sliding_window": False}, []),
    ],
)
def test_what_the_new_file_lacks_is_said(tmp_path, golden, changes, words):
    write_folder(tmp_path / "hf", golden / "llama_f32_tied.gguf", **changes)
    said = []
    convert(tmp_path / "hf", tmp_path / "new.gguf", say=said.append)
    assert "holds no tokenizer" in said[0] and len(said) == 1 + len(words)
    assert all(a in b for a, b in zip(words, said[1:], strict=True))


def test_ids_without_a_token_are_counted(tmp_path, golden):
    _, config = write_folder(tmp_path / "hf", golden / "llama_f32_tied.gguf")
    vocab = {chr(97 + i): i for i in range(10)} | {"ab": 12}
    model = {"type": "BPE", "vocab": vocab, "merges": ["a b"]}
    rule = {"type": "ByteLevel", "use_regex": True}
    text = json.dumps({"model": model, "pre_tokenizer": rule})
    (tmp_path / "hf" / "tokenizer.json").write_text(text, encoding="utf-8")
    said = []
    convert(tmp_path / "hf", tmp_path / "new.gguf", say=said.append)
    assert said[0].startswith(f"{config.n_vocab - 11} of {config.n_vocab} ids") and len(said) == 1


def test_llama3_schedules_that_make_no_sense():
    for changes in ({"low_freq_factor": 4.0}, {"factor": 0.0}, {"low_freq_factor": 0.0}):
        config = config_json(se.Config.named("llama-3.2-1b"), rope_scaling=LLAMA3 | changes)
        with pytest.raises(FileProblem, match="low_freq_factor"):
            metadata_from(config)


X = ("model.norm.weight", "F32", (2,), b"\0" * 8)
WEIGHTS = {
    "extra": ([("model.layers.0.mlp.router.weight", "F32", (1,), b"\0" * 4)], "no place"),
    "layer": ([("model.layers.9.mlp.up_proj.weight", "F32", (1,), b"\0" * 4)], "layers.9"),
    "integers": ([("x", "I64", (1,), b"\0" * 8)], "I64 are not converted"),
    "short": ([("x", "F32", (3,), b"\0" * 8)], "do not fit"),
    "empty": ([("x", "F32", (0, 3), b"")], "do not fit"),
    "negative": ([("x", "F32", (-1, -1), b"\0" * 4)], "damaged"),
    "huge": ([("x", "F32", (2**40, 2**40), b"\0" * 4)], "do not fit"),
    "twice": ([("language_model.model.norm.weight", "F32", (64,), b"\0" * 256)], "twice"),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_refusals_name_the_tensor(tmp_path, golden, name):
    extra, message = WEIGHTS[name]
    write_folder(tmp_path / "hf", golden / "llama_f32_untied.gguf", extra=extra)
    with pytest.raises(SynapseError, match=message):
        convert(tmp_path / "hf", tmp_path / "new.gguf")


def test_folders_that_are_none(tmp_path):
    with pytest.raises(FileProblem, match="config.json"):
        convert(tmp_path, tmp_path / "new.gguf")
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(FileProblem, match="JSON"):
        convert(tmp_path, tmp_path / "new.gguf")
    (tmp_path / "config.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(FileProblem, match="JSON"):
        convert(tmp_path, tmp_path / "new.gguf")
    config = config_json(se.Config.named("llama-3.2-1b"))
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK")
    with pytest.raises(FileProblem, match="no .safetensors"):
        convert(tmp_path, tmp_path / "new.gguf")


def test_cut_anywhere(tmp_path):
    path = tmp_path / "x.safetensors"
    write_safetensors(path, [X])
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        with pytest.raises(FileProblem):
            read_file(path)


@settings(
    max_examples=200, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.integers(0, 200), st.binary(min_size=1, max_size=6))
def test_bytes_changed_anywhere(tmp_path, where, new):
    path = tmp_path / "x.safetensors"
    write_safetensors(path, [X, ("b", "BF16", (2, 3), b"\1" * 12)])
    raw = bytearray(path.read_bytes())
    raw[where % len(raw) : where % len(raw) + len(new)] = new
    path.write_bytes(raw)
    try:
        for tensor in read_file(path).values():
            tensor.raw.sum()
    except SynapseError:
        pass


# --- against transformers ------------------------------------------------------------------------
SMALL = dict(
    vocab_size=96, hidden_size=64, intermediate_size=112, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
)  # fmt: skip
PEERS = {
    "Llama": dict(rope_parameters=LLAMA3 | {"original_max_position_embeddings": 16,
                                            "rope_theta": 500000.0}, attention_bias=True),
    "Mistral": dict(head_dim=32, sliding_window=None, tie_word_embeddings=True),
    "Qwen2": dict(rope_parameters={"rope_type": "default", "rope_theta": 1e6}),
    "Ministral3": dict(rope_parameters=YARN | {"mscale": 1.0}, head_dim=16),
}  # fmt: skip


@pytest.mark.peer
@pytest.mark.parametrize("family", PEERS)
def test_transformers_computes_the_same(tmp_path, family):
    import torch  # chosen by the marker: a missing package is a failure, not a skip
    import transformers

    torch.manual_seed(3)
    config = getattr(transformers, f"{family}Config")(
        **SMALL, **PEERS[family], attn_implementation="eager", initializer_range=0.2,
        bos_token_id=1, eos_token_id=2, pad_token_id=None,
    )  # fmt: skip
    peer = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, parameter in peer.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.3)
    peer.save_pretrained(tmp_path / "hf")
    convert(tmp_path / "hf", tmp_path / "new.gguf")
    ids = list(np.random.default_rng(5).integers(0, 96, 40))
    with torch.no_grad():
        want = peer(torch.tensor([ids])).logits[0].numpy()  # (40, n_vocab)
    model = se.load(tmp_path / "new.gguf", numerics="textbook", backend="reference")
    got = model.prefill([int(i) for i in ids], model.new_cache(), logits="all")  # (40, n_vocab)
    assert np.abs(want).max() > 1
    np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "copy"])
def test_no_file_of_the_folder_is_written_over(tmp_path, name):
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BadArgument, match=r"\.gguf"):
        convert(tmp_path, tmp_path / name)
    assert (tmp_path / "config.json").read_text(encoding="utf-8") == "{}"
