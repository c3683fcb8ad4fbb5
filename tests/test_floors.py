"""Imports point down only, and nothing below the top imports the package itself."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "synapse_edu"

# A module may import its own room, and rooms on a lower floor: nothing beside it, nothing above.
FLOOR = {
    "errors": 0,
    "arguments": 0,
    "atomic": 0,
    "chromium": 0,
    "config_named": 0,
    "config": 1,
    "numerics": 1,
    "formats": 2,
    "checkpoint": 3,
    "tokenizer": 3,
    "ops": 3,
    "model": 4,
    "study": 5,
    "views": 6,
    "classroom": 6,
    "lab": 7,
    "describe": 7,
    "doctor": 8,
    "offline_kit": 7,
    "book": 8,
    "commands": 9,
    "cli": 10,
    "__main__": 11,
    "__init__": 7,
}


def room_of(path):
    """The room of a file: the first folder, or the module itself at the top."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


def imported_rooms(source, package):
    """Rooms of synapse_edu that `source`, a module of `package` (a tuple of names), imports."""
    rooms = []
    for node in ast.walk(ast.parse(source)):
        targets = []
        if isinstance(node, ast.Import):
            targets = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base = tuple(base) + tuple(node.module.split(".") if node.module else ())
            targets = [base + (alias.name,) for alias in node.names]
        for target in targets:
            if target[0] != "synapse_edu":
                continue
            known = len(target) > 1 and target[1] in FLOOR
            rooms.append((target[1] if known else "__init__", node.lineno))
    return rooms


def violations(source, package, room):
    """Sentences for each import of `source` that does not point down."""
    wrong = []
    for other, line in imported_rooms(source, package):
        if other != room and FLOOR[other] >= FLOOR[room]:
            wrong.append(f"line {line}: {room} (floor {FLOOR[room]}) imports {other}")
    return wrong


def modules():
    return sorted(p for p in PACKAGE.rglob("*.py") if "_book" not in p.parts)


def test_every_room_has_a_floor():
    unknown = {room_of(p) for p in modules()} - set(FLOOR)
    assert not unknown, f"give these rooms a floor, or move them: {sorted(unknown)}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path):
    package = ("synapse_edu",) + path.relative_to(PACKAGE).parent.parts
    assert violations(path.read_text(encoding="utf-8"), package, room_of(path)) == []


@pytest.mark.parametrize(
    "source, package, room",
    [
        ("from ..checkpoint import container", ("synapse_edu", "tokenizer"), "tokenizer"),
        ("from ..model.llama import Llama", ("synapse_edu", "ops"), "ops"),
        ("def f():\n    from ...views import stepper", ("synapse_edu", "ops", "fast"), "ops"),
        ("from .. import load", ("synapse_edu", "views"), "views"),
        ("import synapse_edu as se", ("synapse_edu", "study"), "study"),
        ("import synapse_edu.classroom.check", ("synapse_edu", "views"), "views"),
        ("from .config import Config", ("synapse_edu",), "errors"),
    ],
)
def test_an_import_that_points_up_or_sideways_is_found(source, package, room):
    assert violations(source, package, room)


@pytest.mark.parametrize(
    "source, package, room",
    [
        ("from ..errors import BadArgument", ("synapse_edu", "views"), "views"),
        ("from ..reference import matmul", ("synapse_edu", "ops", "fast"), "ops"),
        ("from .stepper import TokenStepper\nimport numpy", ("synapse_edu", "views"), "views"),
        ("from . import lab\nfrom .model import llama", ("synapse_edu",), "cli"),
    ],
)
def test_an_import_that_points_down_is_allowed(source, package, room):
    assert violations(source, package, room) == []
