"""axe-core on every view, as it is stored in a chapter and as it is while it can be stepped."""

import pytest
from accessible import problems, wider_than_the_window

import synapse_edu as se
from synapse_edu.book.recording import embed, script
from synapse_edu.views.block import BlockDrawing
from synapse_edu.views.heatmap import AttentionHeatmap
from synapse_edu.views.microscope import Microscope
from synapse_edu.views.next_token import NextTokenBars
from synapse_edu.views.playground import TokenizerPlayground
from synapse_edu.views.rope_view import RopeView
from synapse_edu.views.stepper import TokenStepper


def views():
    model = se.load("built-in")
    ids = model.tokenizer.encode("Mia has a red ball. Tom has two green cups.")
    trace = se.Trace.record(model, ids)
    return [
        TokenStepper(model, trace),
        AttentionHeatmap(trace),
        NextTokenBars(trace.value("logits"), model.tokenizer),
        RopeView(model.config),
        TokenizerPlayground(model.tokenizer, "Once upon a time"),
        Microscope(model, ids[:6], other="llama.cpp-avx2"),
    ]


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    """One page with every view twice: as a stored picture, and live."""
    parts = [
        f"<section><h2>{type(v).__name__}</h2>{v.static()}{embed(v, limit=1)}</section>"
        for v in views()
    ]
    parts.append(BlockDrawing(se.Config.named("llama-3.2-1b"))._repr_html_())
    path = tmp_path_factory.mktemp("views") / "gallery.html"
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Views</title>'
        '<meta name="viewport" content="width=device-width"></head><body><main><h1>Views</h1>'
        f"{''.join(parts)}</main><script>{script()}</script></body></html>",
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1300])
def test_axe_finds_nothing_serious_in_any_view(browser, gallery, scheme, width):
    page = browser.new_page()
    try:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(gallery.as_uri())
        page.wait_for_function("document.querySelectorAll('[role=application]').length === 6")
        assert problems(page) == []
        assert wider_than_the_window(page) <= 0
    finally:
        page.close()


def test_axe_would_find_a_mistake(browser, gallery):
    page = browser.new_page()
    try:
        page.goto(gallery.as_uri())
        page.evaluate("document.querySelector('svg[role=img]').removeAttribute('aria-label')")
        page.evaluate("document.querySelector('.se-status').style.color = '#eee'")
        found = " ".join(problems(page))
        assert "svg-img-alt" in found and "color-contrast" in found
    finally:
        page.close()
