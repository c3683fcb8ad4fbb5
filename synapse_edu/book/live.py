"""The page of views that work without a kernel."""

from .recording import embed

INTRODUCTION = """\
# The views, live

In JupyterLab the views of the chapters are live: a key or a control asks the engine. A book has no
engine behind it, so a chapter's views stand still here. On this page they move. Every state of a
short text was recorded when the book was built, and your browser plays them back. Nothing is sent
anywhere.

Click into a view, or reach it with the Tab key; the line below it says which keys it takes.
"""
PROMPT = "Mia has a red"


def page():
    """The whole page, as MyST Markdown with the views in it as HTML."""
    return "\n".join([INTRODUCTION, *(_section(*row) for row in _views())])


def _section(title, text, view, limit):
    return f"## {title}\n\n{text}\n\n```{{raw}} html\n{embed(view, limit)}\n```\n"


def _views():
    """(title, words, view, states at most) of each."""
    import synapse_edu as se

    from ..views.heatmap import AttentionHeatmap
    from ..views.next_token import NextTokenBars
    from ..views.rope_view import RopeView
    from ..views.stepper import TokenStepper

    model = se.load()
    trace = se.Trace.record(model, model.tokenizer.encode(PROMPT))
    yield (
        "The token stepper",
        f"The built-in model reads “{PROMPT}”. Every step of every token. Chapter 02.",
        TokenStepper(model, trace),
        1000,
    )
    yield (
        "The attention heatmap",
        "Where each token of the same text looks, in every layer and head. Chapter 02.",
        AttentionHeatmap(trace),
        1000,
    )
    yield (
        "The next token",
        "What the model predicts after the text, and what the sampler's settings make of it. The "
        "settings near the start were recorded.",
        NextTokenBars(trace.value("logits"), model.tokenizer, n=6),
        150,
    )
    yield (
        "Rotary positions",
        "One pair of a query, turned by its position. Positions near the start were recorded. "
        "Chapter 06.",
        RopeView(model.config, position=5),
        150,
    )
