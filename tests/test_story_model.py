"""The beginning of training: shapes, and heads that look a fixed number of tokens back."""

import numpy as np
import pytest
from story_parts import learned, small

import synapse_edu as se
from synapse_edu.study import patching, story_model
from synapse_edu.study.export import export


def test_parameters_are_those_of_the_config():
    config = small()
    p = story_model.initial(config, 0)
    assert {f"{name}.weight": x.shape for name, x in p.items()} == config.tensors()
    assert sum(x.size for x in p.values()) == config.n_params
    assert all(x.dtype == np.float32 for x in p.values())


def test_the_built_in_shape_suits_its_format():
    config = story_model.story_config(len(learned()["tokenizer.ggml.tokens"]))
    assert config.n_embd % 32 == config.n_ff % 32 == 0 and config.n_head_kv < config.n_head
    assert 0.5e6 < config.n_params < 1.5e6


@pytest.mark.parametrize("head", range(4))
def test_heads_of_layer_0_begin_by_looking_back(tmp_path, head):
    """Head h looks h + 1 tokens back, more than anywhere else; without the start it does not."""
    config = story_model.story_config(len(learned()["tokenizer.ggml.tokens"]), 1)
    ids = [0, *np.random.default_rng(1).integers(257, config.n_vocab, 40).tolist()]

    def share(p):
        export(tmp_path / "m.gguf", config, p, learned(), "F32")
        trace = se.Trace.record(se.load(tmp_path / "m.gguf"), ids)
        return [patching.looks_back(trace, 0, by)[head] for by in range(8)]

    p = story_model.initial(config, 1)
    assert int(np.argmax(share(p))) == head + 1
    rng = np.random.default_rng(3)
    for name in ("blk.0.attn_q", "blk.0.attn_k"):
        p[name] = (rng.standard_normal(p[name].shape) / np.sqrt(config.n_embd)).astype(np.float32)
    assert max(share(p)[1:]) < 0.2
