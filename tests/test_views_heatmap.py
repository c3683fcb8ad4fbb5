"""The attention heatmap: what it draws and says is what the forward pass computed."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from shared_data import CASES, needs_shared

import synapse_edu as se
from synapse_edu.errors import BadArgument
from synapse_edu.views import heatmap
from synapse_edu.views.heat_picture import LEVELS, Scale
from synapse_edu.views.heatmap import AttentionHeatmap, HeatState


@pytest.fixture(scope="module")
def model(golden):
    return se.load(golden / "llama_f32_tied.gguf")


@pytest.fixture(scope="module")
def trace(model):
    rng = np.random.default_rng(5)
    return se.Trace.record(model, rng.integers(0, model.config.n_vocab, 12).tolist())


@pytest.fixture(scope="module")
def long_trace(model):
    rng = np.random.default_rng(6)
    names = ["scores", "probabilities"]
    return se.Trace.record(model, rng.integers(0, model.config.n_vocab, 150).tolist(), names)


def cells(html):
    """Number of squares drawn in the grid, and of strokes in its mask."""
    grid = re.search(r"<svg[^>]*data-grid.*?</svg>", html).group(0)
    squares = sum(d.count("z") for d in re.findall(r'fill-opacity="[^"]*" d="([^"]*)"', grid))
    mask = re.search(r'class="se-stroke" d="([^"]*)"', grid).group(1)
    return squares, mask.count("M")


@pytest.mark.parametrize("stage", heatmap.STAGES)
def test_every_cell_up_to_the_diagonal_is_drawn_and_the_rest_is_hatched(trace, stage):
    n = len(trace.ids)
    html = heatmap.render(trace, HeatState(layer=1, head=1, stage=stage))
    squares, strokes = cells(html)
    assert squares == n * (n + 1) // 2
    assert strokes == 2 * n - 3  # anti-diagonals that hold a masked cell


def test_the_reading_is_the_recorded_number(trace):
    view = AttentionHeatmap(trace, layer=1, head=1)
    view.state = replace(view.state, row=7, column=3)
    weight = trace.attention(1)[1, 7, 3]
    query, key = (heatmap.visible(trace.tokens[i]) for i in (7, 3))
    assert f"{heatmap.safe(query)} → {heatmap.safe(key)} {weight:.2f}" in view.html
    view.press("ArrowUp")
    assert f"{trace.attention(1)[1, 6, 3]:.2f}" in view.html
    view.state = replace(view.state, row=3, column=7)
    assert "masked" in re.search(r'role="status"[^>]*>([^<]*)', view.html).group(1)


def test_keys_move_the_cell_the_layer_and_the_head(trace):
    start = HeatState(0, 0, "probabilities", 5, 2)
    after = {
        "ArrowLeft": (0, 0, 5, 1),
        "ArrowRight": (0, 0, 5, 3),
        "ArrowUp": (0, 0, 4, 2),
        "ArrowDown": (0, 0, 6, 2),
        "Home": (0, 0, 5, 0),
        "End": (0, 0, 5, 5),
        "PageDown": (1, 0, 5, 2),
        "PageUp": (0, 0, 5, 2),
        "Shift+ArrowRight": (0, 1, 5, 2),
        "Shift+ArrowLeft": (0, 0, 5, 2),
        "q": (0, 0, 5, 2),
    }
    for key, (layer, head, row, column) in after.items():
        assert heatmap.move(trace, start, key) == HeatState(
            layer, head, "probabilities", row, column
        )


def test_query_heads_are_bracketed_by_the_key_head_they_share(trace):
    html = heatmap.render(trace, HeatState())
    groups = re.findall(r"Heads of key/value head (\d+)(.*?)</span></span>|$", html)
    config = trace.config
    brackets = re.split(r'aria-label="Heads of key/value head \d+"', html)[1:]
    assert len(brackets) == config.n_head_kv and groups
    for kv, bracket in enumerate(brackets):
        heads = [int(h) for h in re.findall(r'data-set="head" data-value="(\d+)"', bracket)]
        assert heads == [h for h in range(config.n_head) if h // config.n_group == kv]


def test_the_legend_comes_from_the_data():
    scores = np.array([[-3.0, -np.inf], [1.0, 5.0]], np.float32)
    scale = Scale(scores, "scores")
    assert (scale.low, scale.high) == (-3.0, 5.0)
    assert scale.level(scores).tolist() == [[0, -1], [LEVELS // 2, LEVELS - 1]]
    scale = Scale(np.array([[0.25, 0.0]], np.float32), "probabilities")
    assert (scale.low, scale.high) == (0.0, 0.25)
    flat = Scale(np.full((2, 2), -np.inf, np.float32), "scores")
    assert (flat.level(np.full((2, 2), -np.inf)) == -1).all()
    one = Scale(np.zeros((1, 1), np.float32), "scores")
    assert one.level(np.zeros((1, 1))).tolist() == [[0]]


def test_a_nan_is_left_out_of_the_picture_and_read_out():
    assert Scale(np.array([[np.nan, 1.0]]), "scores").level([np.nan, 1.0]).tolist() == [-1, 0]


@pytest.mark.parametrize(
    "row, column, rows, columns",
    [(0, 0, (0, 64), (0, 64)), (70, 3, (64, 128), (0, 64)), (149, 149, (86, 150), (86, 150))],
)
def test_long_texts_are_shown_in_windows(long_trace, row, column, rows, columns):
    html = heatmap.render(long_trace, HeatState(0, 0, "probabilities", row, column))
    assert f"Queries {rows[0]}–{rows[1] - 1} and keys {columns[0]}–{columns[1] - 1}" in html
    i, j = np.indices((64, 64))
    seen = j + columns[0] <= i + rows[0]
    squares, _ = cells(html)
    assert squares == seen.sum()
    assert len(html) < 250_000


@pytest.mark.parametrize(
    "wrong",
    [{"layer": 99}, {"head": -1}, {"row": 12}, {"column": 12}, {"stage": "values"}],
)
def test_what_does_not_exist_is_refused(trace, wrong):
    with pytest.raises(BadArgument):
        heatmap.render(trace, HeatState(**wrong))


def test_a_click_chooses_a_cell(trace):
    view = AttentionHeatmap(trace)
    view.choose("cell", "4,2")
    assert (view.state.row, view.state.column) == (4, 2)
    view.choose("cell", "4,99")
    assert view.error and (view.state.row, view.state.column) == (4, 2)


@needs_shared("the tests above, on a model with grouped heads")
def test_field_case_s20():
    """Shown weights are the forward pass's own, and recording changes no logit."""
    folder = CASES / "inputs" / "S20"
    ids = json.loads((folder / "case.json").read_text(encoding="utf-8"))["expected"]["ids"]
    expected = np.load(folder / "expected.npz")
    numerics = se.Numerics.named("llama.cpp").replace(cache="float32")
    model = se.load(folder / "m.gguf", numerics=numerics)
    before = model.prefill(ids, model.new_cache(len(ids)))
    trace = se.Trace.record(model, ids)
    for layer in range(model.config.n_layer):
        weights = AttentionHeatmap(trace, layer=layer).trace.attention(layer)
        assert weights.shape[0] == model.config.n_head
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        assert (np.triu(weights, 1) == 0).all()
        np.testing.assert_allclose(weights, expected[f"layer{layer}"], atol=1e-4)
    after = model.prefill(ids, model.new_cache(len(ids)))
    assert before.tobytes() == after.tobytes() == trace.value("logits").tobytes()
