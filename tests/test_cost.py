"""The cost model, to the digit, and against what is really mapped, allocated and executed."""

import numpy as np
import pytest

import synapse_edu as se
from synapse_edu.config import Config
from synapse_edu.errors import BadArgument
from synapse_edu.ops.reference import matmul as matmul_module
from synapse_edu.study.cost import MIB, Cost, dense_weights


@pytest.fixture(scope="module")
def llama_1b():
    return Cost.of(Config.named("llama-3.2-1b"), "Q4_K_M")


def test_llama_3_2_1b_to_the_digit(llama_1b):
    layer = sum(t.n_weights for t in llama_1b.layer() if t.is_matrix)
    assert layer == 60_817_408
    assert llama_1b.layer_macs == 973_078_528 and llama_1b.logit_macs == 262_668_288
    assert llama_1b.layer_macs + llama_1b.logit_macs == 1_235_746_816
    plain_layer = sum(t.nbytes for t in llama_1b.layer(2))
    assert round(plain_layer / MIB) == 33
    assert round(llama_1b.bytes_per_pass / MIB, 1) == 762.8
    assert llama_1b.attention_macs(0) == 65_536 and llama_1b.attention_macs(9) == 655_360
    decode = llama_1b.decode(93)
    assert round(100 * decode.attention_macs / decode.matrix_macs, 1) == 0.5
    assert round(decode.matrix_intensity, 3) == 1.545 and round(decode.intensity, 3) == 1.553
    assert round(decode.intensity, 1) == 1.6  # attention included; without it, it rounds to 1.5
    assert round(llama_1b.layer_macs / 1e6) == 973 and round(llama_1b.logit_macs / 1e6) == 263
    assert llama_1b.cache_bytes(1) == 32 * 1024
    assert llama_1b.cache_bytes(1, materialised=True) == 128 * 1024


def test_prefill_intensity(llama_1b):
    assert round(llama_1b.prefill(64, batch=64).matrix_intensity) == 78
    uneven = llama_1b.prefill(93, batch=64)
    assert uneven.n_reads == 2 and round(uneven.matrix_intensity) == 57


def test_parameter_counts_by_formula():
    assert dense_weights(1, 16, 32, 16) == 2_560
    assert dense_weights(1, 16, 32, 16) - 16 * 16 == 2_304
    assert dense_weights(12, 768, 3072, 50_000) == 161_734_656
    assert dense_weights(32, 4096, 11008, 32_000, gated=True) == 6_738_149_376
    layers = dense_weights(32, 4096, 11008, 0, gated=True)
    assert round(512 * layers / 1e9, 1) == 3315.7 and round(layers / 1e9, 1) == 6.5


@pytest.mark.parametrize(
    "n_layer, heads, width, size, one, long",
    [
        (1, 1, 16, 1, 32, 0.125),
        (32, 32, 128, 2, 524_288, 2048),
        (32, 32, 128, 1, 262_144, 1024),
        (32, 8, 128, 1, 65_536, 256),
        (40, 8, 128, 1, 81_920, 320),
    ],
)
def test_cache_of_a_token_and_of_4096(n_layer, heads, width, size, one, long):
    cost = Cost.of(Config("llama", n_layer, width * heads, heads, heads, width, 64, 16, 4096))
    assert cost.cache_bytes(1, bytes_per_element=size) == one
    assert cost.cache_bytes(4096, bytes_per_element=size) == long * MIB


def test_one_byte_a_weight_gives_as_many_operations_a_byte_as_tokens():
    """A 7B-class model of int8 weights, its layers alone: 512 for a prompt, 1 for a token."""
    layers = dense_weights(32, 4096, 11008, 0, gated=True)
    config = Config("llama", 32, 4096, 32, 32, 128, 11008, 32_000, 4096)
    cost = Cost.of(config, "Q8_0")
    assert cost.layer_macs == layers and cost.prefill(512).n_reads == 1
    assert cost.decode().matrix_macs - cost.logit_macs == layers
    assert cost.prefill(512).matrix_macs - cost.logit_macs == 512 * layers


def test_grouped_cache_of_8192_tokens():
    config = Config.named("llama-3-8b")
    gqa = Cost.of(config)
    mha = Cost.of(config.replace(n_head_kv=32))
    assert gqa.cache_bytes(8192) == 2**30
    assert mha.cache_bytes(8192) == 4 * gqa.cache_bytes(8192)
    assert gqa.cache_bytes(131_072) == 16 * gqa.cache_bytes(8192)
    assert gqa.cache_bytes(8192, n_sequences=4) == mha.cache_bytes(8192)


@pytest.mark.parametrize(
    "variant",
    [
        "llama_f32_tied",
        "llama_f32_untied",
        "llama_mix_q4km",
        "llama_f32_allbias",
        "qwen2_q8_0",
        "llama_f32_ropefreqs",
    ],
)
def test_bytes_mapped_and_allocated(golden, variant):
    model = se.load(golden / f"{variant}.gguf", backend="reference")
    cost = Cost.of_model(model)
    weights = model.weights
    mapped = weights.token_embd.nbytes + weights.output_norm.nbytes
    if weights.output is not weights.token_embd:
        mapped += weights.output.nbytes
    for vector in (weights.output_bias, weights.rope_freqs):
        mapped += 0 if vector is None else vector.nbytes
    for layer in weights.layers:
        mapped += sum(v.nbytes for v in vars(layer).values() if v is not None)
    assert cost.nbytes == mapped == Cost.of_file(golden / f"{variant}.gguf").nbytes
    cache = model.new_cache(n_ctx=32)
    assert cache.nbytes == cost.cache_bytes(32)


def test_operations_executed(golden, monkeypatch):
    """Count the multiply-accumulates that a walk really asks of matmul."""
    model = se.load(golden / "llama_f32_untied.gguf", backend="reference")
    counted = []
    original = matmul_module.matmul

    def counting(weight, x, *args, **kwargs):
        counted.append(weight.n_out * weight.n_in * np.atleast_2d(x).shape[0])
        return original(weight, x, *args, **kwargs)

    for module in list(__import__("sys").modules.values()):
        if getattr(module, "matmul", None) is original:
            monkeypatch.setattr(module, "matmul", counting)
    cache = model.new_cache(n_ctx=16)
    model.prefill([1, 2, 3], cache, logits="all")
    cost = Cost.of_model(model)
    assert sum(counted) == cost.prefill(3, logits="all").matrix_macs


@pytest.mark.parametrize("variant", ["llama_f32_untied", "llama_mix_q4km", "qwen2_q8_0"])
@pytest.mark.parametrize("rows", ["last", "all"])
def test_operations_executed_by_compiled_code(golden, variant, rows):
    """The fast backend counts what its kernels were given, on one thread and on two."""
    for n_threads in (1, 2):
        model = se.load(golden / f"{variant}.gguf", backend="fast", n_threads=n_threads)
        cost, cache = Cost.of_model(model), model.new_cache(n_ctx=16)
        # Rows of the output matrix are padded to whole registers of eight.
        padding = -cost.output.shape[0] % 8 * cost.output.shape[1]
        assert model.backend.macs == 0
        model.prefill([1, 2, 3, 4], cache, logits=rows)
        prefill = model.backend.macs
        model.decode(5, cache)
        assert model.backend.macs - prefill == cost.decode(4).matrix_macs + padding
        n_rows = {"last": 1, "all": 4}[rows]
        assert prefill == cost.prefill(4, logits=rows).matrix_macs + n_rows * padding


def test_refusals():
    config = Config.named("smollm2-135m")
    with pytest.raises(BadArgument, match="Q9"):
        Cost.of(config, "Q9")
    with pytest.raises(BadArgument, match="at least 1"):
        Cost.of(config).prefill(0)


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.cache_bytes(-5),
        lambda c: c.cache_bytes("a"),
        lambda c: c.decode(-1),
        lambda c: c.decode(1.5),
        lambda c: c.decode(0, n_sequences=0),
        lambda c: c.attention(5, n=0),
        lambda c: c.attention_macs(-1),
        lambda c: c.layer(99),
        lambda c: c.prefill(5, start=-3),
        lambda c: c.prefill(0),
        lambda c: c.prefill(5, logits=[1]),
    ],
)
def test_what_cannot_be_costed_is_refused(call):
    with pytest.raises(BadArgument, match="Cost"):
        call(Cost.of(Config.named("llama-3.2-1b"), "Q4_K_M"))
