"""What all views share: keys, errors, static pages, and that nothing piles up."""

import gc
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from ipywidgets.widgets.widget import _instances

import synapse_edu as se
from synapse_edu.views import AttentionHeatmap, NextTokenBars, TokenStepper, frame
from synapse_edu.views.microscope import Microscope
from synapse_edu.views.playground import TokenizerPlayground
from synapse_edu.views.rope_view import RopeView

PROMPT = 'the <script>window.broken = 1</script> & "cat"'
VOID = {"input", "meta", "br", "img"}


@pytest.fixture(scope="module")
def model():
    return se.load("built-in")


@pytest.fixture(scope="module")
def trace(model):
    return se.Trace.record(model, model.tokenizer.encode(PROMPT))


@pytest.fixture(params=["stepper", "heatmap", "bars"])
def make(request, model, trace):
    return {
        "stepper": lambda: TokenStepper(model, trace),
        "heatmap": lambda: AttentionHeatmap(trace),
        "bars": lambda: NextTokenBars(trace.value("logits"), model.tokenizer),
    }[request.param]


class Page(HTMLParser):
    """Reads HTML strictly: every element is closed where it should be."""

    def __init__(self, html):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("live", [True, False])
def test_a_page_is_sound_and_runs_nothing(make, live):
    view = make()
    page = Page(view.html if live else view.static())
    tags = {tag for tag, _ in page.seen}
    assert "script" not in tags
    assert not [a for _, a in page.seen for name in a if name.startswith("on")]
    assert not re.search(r'(href|src)="', view.static())  # nothing is fetched
    assert "table" in tags and "details" in tags  # the picture's numbers as text
    pictures = [a for tag, a in page.seen if tag == "svg"]
    assert pictures and all(a.get("role") == "img" and a.get("aria-label") for a in pictures)


def test_a_static_page_has_no_controls_and_takes_focus_only_to_scroll(make):
    page = Page(make().static())
    assert not {tag for tag, _ in page.seen} & {"button", "input", "select"}
    assert not [a for _, a in page.seen if a.get("role") == "application"]
    assert [a for _, a in page.seen if a.get("data-part") == "stage"][0]["tabindex"] == "0"


def test_a_live_page_takes_focus_and_speaks(make):
    page = Page(make().html)
    (stage,) = [a for _, a in page.seen if a.get("role") == "application"]
    assert stage["data-part"] == "stage" and stage["aria-label"] and stage["tabindex"] == "0"
    assert [a for _, a in page.seen if a.get("aria-live") == "polite"]
    labelled = [a for tag, a in page.seen if tag in ("button", "input", "select")]
    assert labelled


def test_every_key_is_taken_at_both_ends(make):
    view = make()
    keys = [a + b for a in ("", "Shift+") for b in ("ArrowLeft", "ArrowRight", "ArrowUp")]
    keys += ["ArrowDown", "Home", "End", "PageUp", "PageDown", "x", ""]
    for key in keys * 2:
        view.press(key)
        assert view.error is None
        Page(view.html)


@pytest.mark.parametrize("kind", ["stepper", "heatmap", "bars", "playground", "microscope", "rope"])
def test_what_a_key_changes_is_said(model, trace, kind):
    view = {
        "stepper": lambda: TokenStepper(model, trace),
        "heatmap": lambda: AttentionHeatmap(trace),
        "bars": lambda: NextTokenBars(trace.value("logits"), model.tokenizer),
        "playground": lambda: TokenizerPlayground(
            {"one": model.tokenizer, "two": model.tokenizer}, "Mia has a red ball"
        ),
        "microscope": lambda: Microscope(model, trace.ids[:3]),
        "rope": lambda: RopeView(model.config),
    }[kind]()
    heard = 0
    for key in ["Home", "ArrowRight", "ArrowDown", "PageDown", "End", "ArrowLeft", "ArrowUp"] * 2:
        before, said = view.html, _said(view)
        view.press(key)
        assert (view.html == before) == (_said(view) == said), key
        heard += view.html != before
    assert heard > 5


def _said(view):
    return re.search(r'role="status"[^>]*>(.*?)</p>', view.html).group(1)


def test_an_error_is_shown_and_the_next_action_recovers(make, monkeypatch):
    view = make()
    widget = view.widget
    before = view.html
    view.choose("no such control", "<b>1</b>")
    assert view.error is not None and "no control" in widget.html
    assert "&#x27;no such control&#x27;" in widget.html
    view.press("End")
    assert view.error is None and "no control" not in widget.html
    monkeypatch.setattr(view, "_render", lambda state, live: 1 / 0)
    view.press("Home")
    assert "ZeroDivisionError" in widget.html and view.html != before
    monkeypatch.undo()
    view.press("Home")
    assert "ZeroDivisionError" not in widget.html
    view.close()


@pytest.mark.parametrize("junk", [{}, {"set": "cell", "value": None}, {"press": 3}, {"set": 1}])
def test_messages_that_make_no_sense_do_no_harm(make, junk):
    view = make()
    view._receive(None, junk)
    view.press("Home")
    assert view.error is None


def test_the_widget_follows_the_view(make):
    view = make()
    before = view.widget.html
    view._receive(None, {"press": "ArrowDown"})
    view._receive(None, {"press": "ArrowRight"})
    assert view.widget.html == view.html != before
    view.close()


def test_a_state_that_does_not_exist_is_refused(make, trace):
    view = make()
    kept = view.state
    name = {"stepper": "index", "heatmap": "head", "bars": "chosen"}[view.kind]
    with pytest.raises(se.errors.BadArgument):
        view.state = type(kept)(**{name: 10_000})
    assert view.state == kept


def test_a_bundle_for_every_reader(make):
    view = make()
    bundle = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"] == repr(view) and "0x" not in repr(view)
    assert bundle["text/html"] == view.static() == make().static()
    view.close()


def test_fifty_views_leave_nothing_behind(make):
    import matplotlib.pyplot as plt

    make()._repr_mimebundle_()
    gc.collect()
    before, figures = len(_instances), plt.get_fignums()
    for _ in range(50):
        view = make()
        view._repr_mimebundle_()
        for _ in range(3):
            view.press("ArrowRight")
    gc.collect()
    assert len(_instances) <= before and plt.get_fignums() == figures


def test_in_a_notebook_a_cell_keeps_the_views_of_its_last_run(trace, monkeypatch):
    running = ["cell-a", "run-1"]
    monkeypatch.setattr(frame, "_running_cell", lambda: tuple(running))
    monkeypatch.setattr(frame, "_live", {})
    first, second = AttentionHeatmap(trace), AttentionHeatmap(trace, layer=1)
    first.widget, second.widget  # noqa: B018  two views in one cell live side by side
    running[:] = ["cell-b", "run-2"]
    elsewhere = AttentionHeatmap(trace)
    elsewhere.widget  # noqa: B018
    assert first._widget and second._widget
    running[:] = ["cell-a", "run-3"]
    again = AttentionHeatmap(trace)
    again.widget  # noqa: B018
    assert first._widget is None and second._widget is None
    assert elsewhere._widget and again._widget
    for view in (elsewhere, again):
        view.close()


def test_building_a_view_changes_no_number(model, trace):
    before = {key: trace.all(*key).tobytes() for key in trace.names}
    view = TokenStepper(model, trace)
    for key in ("PageDown", "End", "ArrowUp"):
        view.press(key)
    AttentionHeatmap(trace, stage="scores")
    assert before == {key: trace.all(*key).tobytes() for key in trace.names}
    assert np.array_equal(
        trace.value("logits"), NextTokenBars(trace.value("logits"), model.tokenizer).logits
    )
