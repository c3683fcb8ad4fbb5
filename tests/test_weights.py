"""Tensors by role: tied output, fused matrices, and what is missing or too much, by name."""

import numpy as np
import pytest

from synapse_edu.checkpoint.container import open_container
from synapse_edu.checkpoint.hparams import config_from_metadata
from synapse_edu.checkpoint.weights import load_weights, nbytes
from synapse_edu.checkpoint.writer import write_gguf
from synapse_edu.errors import BadArgument, FileProblem, SynapseError
from synapse_edu.formats.matrix import Matrix


def parts(golden, name="llama_f32_untied"):
    """Metadata and tensors of a recorded model, to be changed and written again."""
    c = open_container(golden / f"{name}.gguf")
    tensors = {}
    for key, info in c.tensors.items():
        raw = c.raw(key)
        matrix = Matrix(raw, info.format.name, info.shape[-1], key)
        tensors[key] = matrix if len(info.shape) == 2 else matrix.rows()[0]
    return dict(c.metadata), tensors


def reopened(path, metadata, tensors):
    write_gguf(path, metadata, tensors)
    c = open_container(path)
    return load_weights(c, config_from_metadata(c.metadata, c.tensors))


def test_round_trip(tmp_path, golden):
    metadata, tensors = parts(golden, "llama_mix_q4km")
    write_gguf(tmp_path / "copy.gguf", metadata, tensors)
    a, b = open_container(golden / "llama_mix_q4km.gguf"), open_container(tmp_path / "copy.gguf")
    assert a.metadata.keys() == b.metadata.keys()
    for key, value in a.metadata.items():
        assert type(value) is type(b.metadata[key]), key
        assert (
            np.array_equal(np.asarray(list(value)), np.asarray(list(b.metadata[key])))
            if (hasattr(value, "__len__") and not isinstance(value, str))
            else value == b.metadata[key]
        )
    for name in a.tensors:
        assert a.tensors[name].format == b.tensors[name].format
        assert np.array_equal(a.raw(name), b.raw(name))


def test_tied_and_untied(tmp_path, golden):
    metadata, tensors = parts(golden)
    whole = reopened(tmp_path / "a.gguf", metadata, tensors)
    assert whole.output is not whole.token_embd
    del tensors["output.weight"]
    tied = reopened(tmp_path / "b.gguf", metadata, tensors)
    assert tied.output is tied.token_embd
    assert nbytes(whole) - nbytes(tied) == whole.output.nbytes


def test_a_fused_matrix_is_cut_into_views(tmp_path, golden):
    metadata, tensors = parts(golden)
    want = reopened(tmp_path / "a.gguf", metadata, tensors)
    for i in range(len(want.layers)):
        three = [tensors.pop(f"blk.{i}.attn_{x}.weight") for x in "qkv"]
        raw = np.concatenate([m.raw for m in three])
        tensors[f"blk.{i}.attn_qkv.weight"] = Matrix(raw, three[0].format, three[0].n_in)
    got = reopened(tmp_path / "b.gguf", metadata, tensors)
    for a, b in zip(want.layers, got.layers, strict=True):
        for role in ("attn_q", "attn_k", "attn_v"):
            assert np.array_equal(getattr(a, role).raw, getattr(b, role).raw)
        assert np.shares_memory(b.attn_q.raw.base, b.attn_k.raw.base)


def changed(tensors, name, value):
    if value is None:
        del tensors[name]
    else:
        tensors[name] = value


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("blk.1.ffn_up.weight", None, "blk.1.ffn_up.weight .* is missing"),
        ("output_norm.weight", np.ones(3, np.float32), "output_norm.weight has shape"),
        ("blk.0.something.weight", np.ones(3, np.float32), "blk.0.something.weight has no place"),
        ("output_norm.weight", None, "output_norm.weight"),
    ],
)
def test_refusals_name_the_tensor(tmp_path, golden, name, value, message):
    metadata, tensors = parts(golden)
    changed(tensors, name, value)
    with pytest.raises(SynapseError, match=message):
        reopened(tmp_path / "x.gguf", metadata, tensors)


def test_the_writer_keeps_alignment_and_makes_one_file_of_shards(tmp_path):
    metadata = {
        "general.architecture": "llama",
        "general.alignment": np.uint32(64),
        "split.count": np.uint16(3),
        "a.none": np.array([], np.int32),
        "a.no_words": [],
        "a.flags": np.array([True, False]),
        "a.words": ["ü", b"\xff"],
        "a.big": np.uint64(2**63),
    }
    tensors = {"a": np.arange(3, dtype=np.float32), "b": np.ones(5, np.float32)}
    write_gguf(tmp_path / "x.gguf", metadata, tensors)
    c = open_container(tmp_path / "x.gguf")
    assert c.alignment == 64 and c.tensors["b"].start % 64 == 0
    assert c.raw("a").view("<f4").tolist() == [[0, 1, 2]]
    assert c.raw("b").view("<f4").tolist() == [[1] * 5]
    assert c.metadata["a.words"].tolist() == ["ü".encode(), b"\xff"]
    assert c.metadata["a.flags"].tolist() == [True, False] and c.metadata["a.big"] == 2**63
    assert not {"split.count", "a.none", "a.no_words"} & c.metadata.keys()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    import gguf

    path = tmp_path / "x.gguf"
    write_gguf(path, {"general.architecture": "llama"}, {"a": np.ones(3, np.float32)})
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gguf.GGUFWriter, "write_tensors_to_file", full)
    with pytest.raises(FileProblem, match="No space left"):
        write_gguf(path, {"general.architecture": "llama"}, {"a": np.zeros(3, np.float32)})
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["x.gguf"]


def test_the_writer_refuses_what_has_no_type(tmp_path):
    with pytest.raises(BadArgument, match="general.architecture"):
        write_gguf(tmp_path / "x.gguf", {}, {})
    with pytest.raises(BadArgument, match="a.b is a int"):
        write_gguf(tmp_path / "x.gguf", {"general.architecture": "llama", "a.b": 3}, {})
    with pytest.raises(BadArgument, match="a.b is a float16"):
        write_gguf(tmp_path / "x.gguf", {"general.architecture": "llama", "a.b": np.float16(3)}, {})
    assert not list(tmp_path.iterdir())
