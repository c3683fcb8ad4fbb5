"""The API's pages: one for each room of the package, from its docstrings."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
ROOMS = {
    "top": ("The package itself", ["errors", "config", "numerics"]),
    "formats": ("formats: numbers and bytes", None),
    "checkpoint": ("checkpoint: a GGUF file", None),
    "tokenizer": ("tokenizer: text and ids", None),
    "ops": ("ops: the operations, to be read", None),
    "model": ("model: ids to the next id", None),
    "study": ("study: what the chapters measure", None),
    "views": ("views: pictures to step through", None),
    "classroom": ("classroom: checks and exercises", None),
}
# Operations to be read have a page.  Their fast twins have the same names and the same contract.
LEFT_OUT = ("ops/fast", "classroom/exercises", "classroom/checks")


def modules(room):
    """Dotted names of a room's modules, in the order of the alphabet."""
    found = []
    for path in sorted((PACKAGE / room).rglob("*.py")):
        place = path.relative_to(PACKAGE).with_suffix("")
        if place.name == "__init__" or place.as_posix().startswith(LEFT_OUT):
            continue
        found.append(".".join(("synapse_edu", *place.parts)))
    return found


def pages():
    """Path in the book → Markdown of each page."""
    made = {}
    for room, (title, names) in ROOMS.items():
        found = [f"synapse_edu.{n}" for n in names] if names else modules(room)
        made[f"api/{room}.md"] = "\n".join([f"# {title}\n", *map(_module, found)])
    return made


def _module(name):
    short = name.removeprefix("synapse_edu.")
    return (
        f"## {short}\n\n```{{eval-rst}}\n.. automodule:: {name}\n"
        f"   :members:\n   :exclude-members: __weakref__\n```\n"
    )
