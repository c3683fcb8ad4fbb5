"""A cell run twice gives the same as run once: no cell changes what an earlier cell made.

A reader runs a cell again after reading on, or after changing a number in it.  `x = x + y` in a
cell of its own then adds twice, and everything below is wrong without a word.
"""

import ast
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("exercises/*/*.ipynb")])
CHANGES = (
    "append",
    "extend",
    "insert",
    "pop",
    "remove",
    "update",
    "sort",
    "reverse",
    "add",
    "clear",
)


class Names(ast.NodeVisitor):
    """Names that the top level of a cell reads before it has made them, and those it makes."""

    def __init__(self):
        self.made, self.needed, self.changed = set(), set(), set()

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Store):
            if node.id in self.needed and node.id not in self.made:
                self.changed.add(node.id)
            self.made.add(node.id)
        elif node.id not in self.made:
            self.needed.add(node.id)

    def visit_Assign(self, node):
        self.visit(node.value)  # the right side is read first
        for target in node.targets:
            self.visit(target)

    def visit_AugAssign(self, node):
        self.visit(node.value)
        name = node.target
        while isinstance(name, ast.Subscript | ast.Attribute):
            name = name.value
        if isinstance(name, ast.Name) and name.id not in self.made:
            self.changed.add(name.id)

    def visit_For(self, node):
        self.visit(node.iter)
        self.visit(node.target)
        for statement in [*node.body, *node.orelse]:
            self.visit(statement)

    def visit_Call(self, node):
        f = node.func
        if isinstance(f, ast.Attribute) and f.attr in CHANGES and isinstance(f.value, ast.Name):
            if f.value.id not in self.made and f.value.id != "np":  # np.append changes nothing
                self.changed.add(f.value.id)
        self.generic_visit(node)

    def _own_scope(self, node):
        self.made.add(getattr(node, "name", ""))

    visit_FunctionDef = visit_ClassDef = _own_scope

    def visit_Lambda(self, node):
        pass

    def _comprehension(self, node):
        inner = {n.id for g in node.generators for n in ast.walk(g.target) if hasattr(n, "id")}
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id not in inner | self.made:
                self.needed.add(part.id)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Import(self, node):
        self.made |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}

    visit_ImportFrom = visit_Import


def changed_by(source):
    """Names that a cell changes although another cell made them."""
    names = Names()
    names.visit(ast.parse(source))
    return names.changed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_no_cell_changes_what_another_cell_made(path):
    notebook = nbformat.read(path, as_version=4)
    faults = [
        f"{cell.id}: {', '.join(sorted(found))}"
        for cell in notebook.cells
        if cell.cell_type == "code" and (found := changed_by(cell.source))
    ]
    assert faults == []


@pytest.mark.parametrize(
    "source, changed",
    [
        ("x = x + 1", {"x"}),
        ("x += 1", {"x"}),
        ("x[0] += 1", {"x"}),
        ("rows.append(1)", {"rows"}),
        ("for i in x:\n    x = i", {"x"}),
        ("x = 0\nx += 1", set()),
        ("rows = []\nrows.append(1)", set()),
        ("y = x + 1", set()),
        ("def f(x):\n    x += 1\n    return x", set()),
        ("a, b = b, 1", {"b"}),
        ("z = [x for x in y]\nx = 1", set()),
        ("f = lambda x: x\nx = 1", set()),
        ("x = np.append(y, 1)", set()),
    ],
)
def test_the_search_finds_what_it_should(source, changed):
    assert changed_by(source) == changed
