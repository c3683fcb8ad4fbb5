"""Config: published sizes to the last weight, shapes, tables."""

import math

import pytest

import synapse_edu as se
from synapse_edu.config_named import SIZES
from synapse_edu.errors import BadArgument

PUBLISHED = {
    "llama-7b": 6_738_415_616,
    "llama-13b": 13_015_864_320,
    "llama-33b": 32_528_943_616,
    "llama-65b": 65_285_660_672,
    "llama-2-70b": 68_976_648_192,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "smollm2-135m": 134_515_008,
    "tinyllama-1.1b": 1_100_048_384,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "mistral-7b-v0.3": 7_248_023_552,
    "mistral-7b-v0.1": 7_241_732_096,
    "mistral-nemo": 12_247_782_400,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_as_published(name):
    assert se.Config.named(name).n_params == PUBLISHED[name]


@pytest.mark.parametrize("name", SIZES)
def test_every_size_is_consistent(name):
    c = se.Config.named(name)
    assert c.n_head % c.n_head_kv == 0 and c.head_dim % 2 == 0
    shapes = c.tensors()
    assert shapes["blk.0.attn_output.weight"] == (c.n_embd, c.n_head * c.head_dim)
    assert ("output.weight" in shapes) != c.tied
    assert ("blk.0.attn_q.bias" in shapes) == (c.architecture == "qwen2")


def test_ministral():
    c = se.Config.named("ministral-3-3b")
    assert (c.rope.scaling, c.rope.factor, c.rope.n_ctx_orig) == ("yarn", 16, 16384)
    assert "1 + 0.1·ln(⌊p/16,384⌋ + 1)" in str(c) and "yarn ×16" in str(c)
    assert round(c.n_params / 1e9, 1) == 3.4  # as its model card says
    assert round(se.Config.named("ministral-3-14b").n_params / 1e9, 1) == 13.5
    assert "temperature" not in str(se.Config.named("llama-7b"))


@pytest.mark.parametrize("name", SIZES)
def test_parameters_are_those_of_the_tensors(name):
    c = se.Config.named(name)
    shapes = {n: s for n, s in c.tensors().items() if n != "rope_freqs.weight"}
    assert c.n_params == sum(math.prod(s) for s in shapes.values())


def test_agrees_with_a_file(golden):
    for variant in ("llama_f32_untied", "qwen2_f32_tied", "llama_f32_ropefreqs"):
        from synapse_edu.checkpoint.container import open_container

        config = se.load(golden / f"{variant}.gguf", backend="reference").config
        found = {n: i.shape for n, i in open_container(golden / f"{variant}.gguf").tensors.items()}
        assert config.tensors() == found


def test_tables():
    c = se.Config.named("llama-3.2-1b").replace(name="<script>")
    assert "attn_k.weight        (512, 2048)" in str(c) and "each for 4 query heads" in str(c)
    assert "<script>" not in c._repr_html_() and "&lt;script&gt;" in c._repr_html_()


def test_refusals():
    with pytest.raises(BadArgument, match="Did you mean 'llama-3.2-1b'"):
        se.Config.named("llama-3.2-1")
    with pytest.raises(BadArgument, match="no field 'width'"):
        se.Config.named("llama-7b").replace(width=3)
