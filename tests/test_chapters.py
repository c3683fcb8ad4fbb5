"""What the chapters store: nothing that another run or another machine would print differently."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

CHAPTERS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("[0-9]*.ipynb"))
LIVE = "nbval-ignore-output"
MEASURES = re.compile(
    r"perf_counter|%time|Stopwatch|_rate\(\w*\d|product_seconds\(|step_seconds\(|read_bandwidth\("
    r"|roofline\.(measure|scaling)\(|float32_macs\(|int8_macs\("
)
OPENS = ("load", "load_tokenizer", "resolve")
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")


def code_cells(path):
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]


def texts(cell):
    """All text that a cell has stored."""
    for output in cell.outputs:
        yield output.get("text", "")
        for kind, value in output.get("data", {}).items():
            if kind.startswith("text") and isinstance(value, str):
                yield value


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem[:2])
def test_a_cell_that_measures_is_tagged_and_stores_nothing(path):
    for cell in code_cells(path):
        live = LIVE in cell.metadata.get("tags", [])
        if MEASURES.search(cell.source):
            assert live, f"cell {cell.id} measures this machine: tag it {LIVE}"
        if live:
            assert cell.outputs == [], f"cell {cell.id} stores a measurement"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem[:2])
def test_no_address_of_an_object_is_stored(path):
    for cell in code_cells(path):
        for text in texts(cell):
            assert not ADDRESS.search(text.replace("at 0xADDRESS", "")), cell.id


def test_the_first_chapter_links_to_every_other():
    first, *others = CHAPTERS
    text = "".join(c.source for c in nbformat.read(first, as_version=4).cells)
    missing = [path.name for path in others if f"]({path.name})" not in text]
    assert not missing, f"put these into the table of {first.name}: {missing}"


def nameless(source):
    """Calls that would open whatever SYNAPSE_MODEL names: chapters quote one model's numbers."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call)
        for call in calls
        if getattr(call.func, "attr", getattr(call.func, "id", None)) in OPENS and not call.args
    ]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem[:2])
def test_a_chapter_loads_its_model_by_name(path):
    for cell in code_cells(path):
        assert not nameless(cell.source), f'cell {cell.id}: write se.load("built-in")'


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem[:2])
def test_a_chapter_imports_what_helps_with_its_checks(path):
    sources = [cell.source for cell in code_cells(path)]
    assert any("classroom import check, hint, progress\n" in source for source in sources)


def test_a_model_without_a_name_is_found():
    assert nameless('m = se.load(numerics="textbook")') and nameless("catalogue.resolve()")
    assert not nameless('se.load("built-in", backend="fast"); json.load(file)')


def test_the_patterns_find_what_they_are_for():
    assert MEASURES.search("t = time.perf_counter()") and MEASURES.search("w.decode_rate(16)")
    assert not MEASURES.search("rate(cost)") and ADDRESS.search("<A object at 0x7f00deadbeef>")
