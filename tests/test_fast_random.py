"""Models of every shape, drawn at random: both backends give the same logits and the same cache."""

from dataclasses import fields

import numpy as np
from golden_data import differing
from hypothesis import given, settings
from hypothesis import strategies as st
from test_fast_backend import SERVED, run, same_cache

from synapse_edu.checkpoint.weights import LayerWeights, Weights
from synapse_edu.config import Config, Rope
from synapse_edu.formats.matrix import Matrix
from synapse_edu.model.llama import Llama


def matrix(rng, name, n_out, n_in, formats):
    """Random weights in one of the formats whose blocks divide a row."""
    fitting = [f for f in formats if f.startswith(("F", "B")) or n_in % 32 == 0]
    x = (rng.standard_normal((n_out, n_in)) * 0.3).astype(np.float32)  # (n_out, n_in)
    return Matrix.from_float32(x, str(rng.choice(fitting)), name=name)


def drawn_model(rng, head_dim, n_head_kv, n_group, tied):
    """(config, weights): odd widths, any bias, either layout of RoPE, YaRN, factors, warmth."""
    n_rot = 2 * int(rng.integers(1, head_dim // 2 + 1))
    rope = Rope(
        n_rot=n_rot,
        layout=str(rng.choice(["normal", "neox"])),
        n_ctx_orig=8,
        **({"scaling": "yarn", "factor": 4.0} if rng.random() < 0.5 else {}),
    )
    config = Config(
        architecture="llama", n_layer=2, n_embd=32 * int(rng.integers(1, 4)),
        n_head=n_head_kv * n_group, n_head_kv=n_head_kv, head_dim=head_dim,
        n_ff=int(rng.integers(1, 90)), n_vocab=int(rng.integers(5, 60)), n_ctx_train=64,
        tied=tied, rope=rope, attn_temperature_scale=float(rng.choice([0.0, 0.1])),
    )  # fmt: skip
    formats, n = ("F32", "F16", "BF16", "Q4_0", "Q8_0"), config.n_embd

    def vector(size):
        return rng.standard_normal(size).astype(np.float32)

    layers = []
    for number in range(config.n_layer):
        shapes = {
            name.split(".")[0]: shape
            for name, shape in config.layer_tensors().items()
            if len(shape) == 2
        }
        values = {k: matrix(rng, f"blk.{number}.{k}", *v, formats) for k, v in shapes.items()}
        biases = [f.name for f in fields(LayerWeights) if f.name.endswith("_bias")]
        values |= {b: vector(shapes[b[:-5]][0]) for b in biases if rng.random() < 0.4}
        layers.append(LayerWeights(attn_norm=vector(n), ffn_norm=vector(n), **values))
    table = matrix(rng, "token_embd.weight", config.n_vocab, n, formats)
    output = table if tied else matrix(rng, "output.weight", config.n_vocab, n, formats)
    factors = np.abs(vector(n_rot // 2)) + np.float32(0.5) if rng.random() < 0.4 else None
    bias = vector(config.n_vocab) if rng.random() < 0.4 else None
    weights = Weights(table, vector(n), output, layers, output_bias=bias, rope_freqs=factors)
    return config, weights


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([2, 6, 16, 40, 64, 80, 96, 128]),
    st.integers(1, 3),
    st.integers(1, 14),
    st.booleans(),
    st.sampled_from(SERVED),
    st.integers(1, 4),
)
def test_both_backends_agree(seed, head_dim, n_head_kv, n_group, tied, numerics, n_threads):
    rng = np.random.default_rng(seed)
    config, weights = drawn_model(rng, head_dim, n_head_kv, n_group, tied)
    ids = rng.integers(0, config.n_vocab, 19).tolist()
    slow = Llama(config, weights, numerics=numerics, backend="reference")
    fast = Llama(config, weights, numerics=numerics, backend="fast", n_threads=n_threads)
    want, kept = run(slow, ids, [19])
    got, cache = run(fast, ids, [7, 0, 0, 1, 9])
    assert differing(got, want) == 0
    assert same_cache(cache, kept)
