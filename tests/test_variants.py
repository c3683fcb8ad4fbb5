"""Designs with one choice changed: their gradients, their sizes, and Llama's among them."""

from dataclasses import replace

import numpy as np
import pytest

from synapse_edu.config import Config, Rope
from synapse_edu.errors import BadArgument
from synapse_edu.study import backward, pieces, variants
from synapse_edu.study.variants import Design

BASE = Design(30, 16, n_layer=2, n_embd=24, n_head=4, n_head_kv=2, n_ff=64)
CHANGES = [
    {},
    {"norm_place": "post"},
    {"norm_place": "none"},
    {"norm": "layer"},
    {"norm": "layer", "norm_place": "post"},
    {"positions": "learned"},
    {"positions": "none"},
    {"n_head_kv": 4},
    {"n_head_kv": 1},
    {"ffn": "relu", "n_ff": 96},
    {"ffn": "gelu", "n_ff": 96},
    {"tied": False},
]


def drawn(seed=0):
    rng = np.random.default_rng(seed)
    tokens, targets = rng.integers(0, 30, (2, 2, 9))
    return tokens, targets, rng.random((2, 9))


def start(design, dtype=np.float64):
    """Parameters away from the beginning's zeros and ones."""
    rng = np.random.default_rng(1)
    p = variants.initial(design, 0, np.float64)
    return {name: (x + 0.1 * rng.standard_normal(x.shape)).astype(dtype) for name, x in p.items()}


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_gradients_against_finite_differences(change):
    design, rng = replace(BASE, **change), np.random.default_rng(2)
    p, batch = start(design), drawn()
    value, grads = variants.loss_and_gradients(p, design, *batch)
    assert grads.keys() == p.keys() == design.shapes().keys()
    assert value == pytest.approx(float(variants.loss(p, design, *batch)))
    for name, x in p.items():
        direction = rng.standard_normal(x.shape)
        if name == "position_embd":  # rows of positions that were not seen
            assert not grads[name][9:].any()
        step, kept = 1e-6, x.copy()
        ends = []
        for sign in (1, -1):
            p[name] = kept + sign * step * direction
            ends.append(float(variants.loss(p, design, *batch)))
        p[name] = kept
        slope = (ends[0] - ends[1]) / (2 * step)
        assert slope == pytest.approx(float((grads[name] * direction).sum()), rel=1e-5, abs=1e-8)


def test_llamas_design_is_the_pass_that_trains_the_built_in_model():
    """The same parameters, packed documents: the loss and every gradient of `backward`."""
    config = Config("llama", 2, 24, 4, 2, 6, 64, 30, 16, tied=True, rope=Rope(n_rot=6), name="twin")
    assert {f"{k}.weight": v for k, v in BASE.shapes().items()} == config.tensors()
    assert BASE.n_params == config.n_params
    p, (tokens, targets, weights) = start(BASE, np.float32), drawn()
    weights, starts = weights.astype(np.float32), np.zeros((2, 9), int)
    starts[1, 4:] = 4
    batch = tokens, targets, weights, starts
    mine, grads = variants.loss_and_gradients(p, BASE, *batch)
    theirs, want = backward.loss_and_gradients(p, config, *batch)
    assert mine == pytest.approx(theirs, rel=1e-6)
    for name, g in want.items():
        assert grads[name].dtype == np.float32
        assert np.abs(grads[name] - g).max() < 1e-5 * np.abs(g).max() + 1e-7, name


@pytest.mark.parametrize("d", [24, 48, 96])
def test_two_matrices_of_4d_hold_what_three_of_8_thirds_do(d):
    def ffn(kind, width):
        design = replace(BASE, n_embd=d, ffn=kind, n_ff=width)
        assert sum(x.size for x in variants.initial(design, 0).values()) == design.n_params
        shapes = design.shapes().items()
        return sum(int(np.prod(shape)) for name, shape in shapes if ".ffn_" in name)

    norms = ffn("relu", 0)  # with no width only the norms are left
    plain, fair, wide = (
        x - norms for x in (ffn("relu", 4 * d), ffn("swiglu", 8 * d // 3), ffn("swiglu", 4 * d))
    )
    assert ffn("gelu", 4 * d) - norms == plain == fair == 2 * BASE.n_layer * 4 * d * d
    assert 2 * wide == 3 * plain


def test_other_counts():
    d, v = BASE.n_embd, BASE.n_vocab
    assert replace(BASE, tied=False).n_params - BASE.n_params == v * d
    assert replace(BASE, positions="none").n_params == BASE.n_params
    assert replace(BASE, positions="learned").n_params - BASE.n_params == 16 * d
    assert replace(BASE, norm="layer").n_params - BASE.n_params == (2 * BASE.n_layer + 1) * d
    assert [replace(BASE, n_head_kv=n).cache_bytes for n in (4, 2, 1)] == [192, 96, 48]


def test_positions_are_what_tells_the_order():
    """Without positions the last token sees a bag of words; with either kind it sees an order."""
    tokens = np.array([[3, 7, 9, 11, 5]])
    swapped = tokens[:, [2, 0, 1, 3, 4]]
    for positions, same in (("none", True), ("rope", False), ("learned", False)):
        # one layer: in the second, the mask alone already tells how many came before
        design = replace(BASE, positions=positions, n_layer=1)
        p = start(design)
        last = [variants.logits(p, t, design)[-1] for t in (tokens, swapped)]
        assert np.allclose(*last) == same


def test_no_token_sees_a_later_one():
    for change in CHANGES:
        design = replace(BASE, **change)
        p, (tokens, *_) = start(design), drawn()
        other = tokens.copy()
        other[:, 5:] = (other[:, 5:] + 1) % 30
        a, b = (variants.logits(p, t, design).reshape(2, 9, -1)[:, :5] for t in (tokens, other))
        assert np.array_equal(a, b)


def test_designs_that_share_a_parameter_begin_with_the_same_numbers():
    base, other = (variants.initial(replace(BASE, **c), 7) for c in ({}, {"norm_place": "post"}))
    assert all(np.array_equal(x, base[name]) for name, x in other.items())
    assert not np.array_equal(base["token_embd"], variants.initial(BASE, 8)["token_embd"])
    assert not np.array_equal(base["blk.0.attn_q"], base["blk.1.attn_q"])


def test_losses_of_tokens_are_those_of_the_mean():
    p, (tokens, targets, _) = start(BASE), drawn()
    each = variants.token_losses(p, BASE, tokens, targets)  # (B, T)
    assert each.shape == tokens.shape
    whole = variants.loss(p, BASE, tokens, targets, np.ones(tokens.shape))
    assert each.mean() == pytest.approx(float(whole))


def test_norms_by_layer():
    """Before the first layer the stream is the embedding; the gradient there is the table's."""
    design = replace(BASE, tied=False)  # so that the table's gradient comes from the input alone
    p, (tokens, targets, _) = start(design), drawn()
    tokens = np.arange(18).reshape(2, 9)  # each token once
    activations, gradients = variants.norms_by_layer(p, design, tokens, targets)
    assert len(activations) == len(gradients) == design.n_layer + 1
    table = p["token_embd"][tokens]
    assert activations[0] == pytest.approx(np.sqrt(np.mean(table**2)))
    _, grads = variants.loss_and_gradients(p, design, tokens, targets, np.ones(tokens.shape))
    assert gradients[0] == pytest.approx(np.linalg.norm(grads["token_embd"]))


def test_layer_norm():
    x = np.array([[2.0, -1.0, 0.5, 4.5]])
    y = pieces.layer_norm(x, np.ones(4), np.zeros(4), 1e-5)
    assert y.round(3).tolist() == [[0.246, -1.231, -0.492, 1.477]]
    shifted = pieces.layer_norm(x + 100, np.ones(4), np.zeros(4), 1e-5)
    assert np.allclose(shifted, y)  # the mean does not matter
    rms = pieces.rms_norm(x, np.ones(4), 1e-5)
    assert np.allclose(pieces.rms_norm(3 * x, np.ones(4), 1e-5), rms)  # the length does not


def test_gelu_is_near_its_definition():
    """x · Φ(x), Φ the normal distribution's; the form with tanh is within a thousandth."""
    from math import erf, sqrt

    x = np.linspace(-5, 5, 201)
    exact = np.array([z * (1 + erf(z / sqrt(2))) / 2 for z in x])
    assert np.abs(pieces.gelu(x) - exact).max() < 1e-3


@pytest.mark.parametrize(
    "change, says",
    [
        ({"norm_place": "between"}, "norm_place='between'; choose one of pre, post, none"),
        ({"ffn": "gate"}, "ffn='gate'"),
        ({"n_head_kv": 0}, "on 0 key/value heads"),
        ({"n_head_kv": 3}, "do not make 4 heads of even width on 3"),
        ({"n_embd": 25}, "25 numbers"),
    ],
)
def test_impossible_designs(change, says):
    with pytest.raises(BadArgument, match=says):
        replace(BASE, **change)
