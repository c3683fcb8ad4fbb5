"""From metadata to Config: defaults, and refusals by the full name of the key."""

import numpy as np
import pytest

from synapse_edu.checkpoint.hparams import config_from_metadata
from synapse_edu.errors import FileProblem, SynapseError, UnsupportedModel


def metadata(architecture="llama", **changes):
    found = {
        "block_count": np.uint32(2),
        "context_length": np.uint32(512),
        "embedding_length": np.uint32(64),
        "feed_forward_length": np.uint32(96),
        "attention.head_count": np.uint32(4),
        "attention.layer_norm_rms_epsilon": np.float32(1e-5),
    }
    found |= {k.replace("__", "."): v for k, v in changes.items()}
    out = {f"{architecture}.{k}": v for k, v in found.items() if v is not None}
    return out | {"general.architecture": architecture, "tokenizer.ggml.tokens": ["a"] * 10}


def config(architecture="llama", **changes):
    return config_from_metadata(metadata(architecture, **changes), {})


def test_defaults():
    c = config()
    assert (c.n_head_kv, c.head_dim, c.n_vocab, c.rope.n_rot) == (4, 16, 10, 16)
    assert c.rope.freq_base == 10000 and c.rope.scaling == "none" and c.rope.factor == 1
    assert c.rope.n_ctx_orig == 512 and not c.rope_freqs and not c.tied
    assert c.rope.layout == "normal" and config("qwen2").rope.layout == "neox"


def test_scaling():
    c = config(rope__scaling__factor=np.float32(4))
    assert (c.rope.scaling, c.rope.factor) == ("linear", 4)
    c = config(rope__scale_linear=np.float32(2))
    assert (c.rope.scaling, c.rope.factor) == ("linear", 2)
    c = config(rope__scaling__type="none", rope__scaling__factor=np.float32(4))
    assert (c.rope.scaling, c.rope.factor) == ("none", 1)
    yarn = dict(
        rope__scaling__type="yarn",
        rope__scaling__factor=np.float32(8),
        rope__scaling__original_context_length=np.uint32(64),
        rope__scaling__yarn_beta_fast=np.float32(20),
    )
    assert config(**yarn).rope.beta_fast == 32, "llama does not read it"
    c = config("mistral3", **yarn, attention__temperature_scale=np.float32(0.1))
    assert (c.rope.beta_fast, c.rope.n_ctx_orig) == (20, 64)
    assert c.attn_temperature_scale == pytest.approx(0.1)


def test_a_head_of_its_own_width():
    wide = dict(attention__key_length=np.uint32(32), attention__value_length=np.uint32(32))
    assert config(**wide).n_embd_head == 128
    with pytest.raises(UnsupportedModel, match="qwen2 needs"):
        config("qwen2", **wide)


def test_arrays_with_one_value_a_layer():
    assert config(attention__head_count=np.array([4, 4], np.uint32)).n_head == 4
    with pytest.raises(UnsupportedModel, match="head_count differs"):
        config(attention__head_count=np.array([4, 2], np.uint32))


BAD = {
    "block_count": (None, "llama.block_count is missing"),
    "attention__layer_norm_rms_epsilon": (None, "layer_norm_rms_epsilon is missing"),
    "embedding_length": (np.float32(64), "whole number"),
    "context_length": (np.uint32(0), "out of range"),
    "feed_forward_length": ("96", "whole number"),
    "attention__head_count_kv": (np.uint32(3), "not a multiple"),
    "rope__dimension_count": (np.uint32(8), "rotates a part"),
    "attention__value_length": (np.uint32(8), "must be equal"),
    "attention__head_count": (np.uint32(5), "not a multiple of head_count"),
    "expert_count": (np.uint32(8), "mixture of experts"),
    "attention__causal": (np.False_, "looks ahead"),
    "rope__scaling__type": ("longrope", "longrope"),
    "rope__freq_base": (np.float32(0), "must be positive"),
    "rope__scaling__factor": (np.float32("nan"), "not a finite"),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals_name_the_key(name):
    value, message = BAD[name]
    with pytest.raises(SynapseError, match=message):
        config(**{name: value})


class Table:
    shape = (7, 64)


def test_the_vocabulary_must_match_the_table():
    m = metadata(vocab_size=np.uint32(99))
    with pytest.raises(FileProblem, match="7 rows.*10 tokens"):
        config_from_metadata(m, {"token_embd.weight": Table})
    del m["tokenizer.ggml.tokens"]
    assert config_from_metadata(m, {"token_embd.weight": Table}).n_vocab == 7
    assert config_from_metadata(m, {}).n_vocab == 99


def test_no_claim_costs_time():
    """A count of layers that no file can hold is refused before anything is made for each."""
    with pytest.raises(FileProblem, match="block_count = 2147483647 is out of range"):
        config(block_count=np.uint32(2**31 - 1))
    assert config(block_count=np.uint32(512)).n_layer == 512


def test_other_architectures():
    with pytest.raises(UnsupportedModel, match="gemma"):
        config_from_metadata({"general.architecture": "gemma"}, {})
    with pytest.raises(FileProblem, match="general.architecture"):
        config_from_metadata({}, {})
