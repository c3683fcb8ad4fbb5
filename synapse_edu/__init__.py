"""A workbook that shows, number by number, what a Llama model computes.

The names a notebook needs, each imported when it is first used:

>>> import synapse_edu as se
>>> se.Numerics.named("llama.cpp").cache
'float16'
"""

from importlib import import_module

__version__ = "0.1.0"

_WHERE = {
    "load": "model.load",
    "load_tokenizer": "model.load",
    "Llama": "model.llama",
    "KVCache": "model.cache",
    "Sampler": "model.sampling",
    "Trace": "model.trace",
    "STEPS": "model.steps",
    "models": "checkpoint.catalogue",
    "Config": "config",
    "Numerics": "numerics",
}
__all__ = [*_WHERE, "errors"]


def __getattr__(name):
    if name == "errors":
        return import_module(".errors", __name__)
    if name in _WHERE:
        value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
