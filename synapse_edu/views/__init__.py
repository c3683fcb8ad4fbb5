"""Pictures of a computation: pure render functions, and thin widgets that choose what to render."""

from importlib import import_module

_WHERE = {
    "TokenStepper": "stepper",
    "AttentionHeatmap": "heatmap",
    "NextTokenBars": "next_token",
}
__all__ = list(_WHERE)


def __getattr__(name):
    # Only a view that is used is imported: the widget libraries take longer than the engine.
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
