"""Stored outputs: refreshed twice they are the same bytes, and nbval then agrees with them."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("refresh", HERE / "refresh_notebooks.py")
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)

SOURCES = [
    "class Thing:\n    pass\nThing()",
    "import ipywidgets\nipywidgets.IntSlider(3)",
    "print('<0x0A> after 16 s')\nprint('two')",
]


def write(path, *sources):
    cells = [nbformat.v4.new_code_cell(s, id=f"c{i}") for i, s in enumerate(sources)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.fixture(scope="module")
def refreshed(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("chapters") / "01 chapter.ipynb", *SOURCES)
    assert tool.refresh(path) is None
    return path


def test_a_second_refresh_changes_no_byte(refreshed):
    first = refreshed.read_bytes()
    assert tool.refresh(refreshed) is None
    assert refreshed.read_bytes() == first


def test_only_what_differs_between_runs_is_masked(refreshed):
    text = refreshed.read_text(encoding="utf-8")
    assert "at 0xADDRESS" in text and "<0x0A> after 16 s" in text
    assert tool.WIDGET not in text


def nbval(path, **environment):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval"]
        + ["--nbval-current-env", f"--nbval-sanitize-with={HERE / 'nbval_sanitize.cfg'}"]
        + [f"--rootdir={path.parent}", "-c", os.devnull, str(path)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_nbval_agrees_with_what_was_stored_also_on_one_thread(refreshed):
    done = nbval(refreshed, NUMBA_NUM_THREADS="1")
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout


def test_nbval_sees_a_changed_output(refreshed, tmp_path):
    changed = tmp_path / "changed.ipynb"
    text = refreshed.read_text(encoding="utf-8")
    changed.write_text(text.replace('"<0x0A> after 16 s', '"<0x0B> after 16 s'), encoding="utf-8")
    assert "1 failed, 2 passed" in nbval(changed).stdout


@pytest.mark.parametrize(
    "source, words",
    [("1 / 0", "ZeroDivisionError"), ("import sys\nprint('oh', file=sys.stderr)", "oh")],
)
def test_a_chapter_that_fails_is_left_as_it_was(tmp_path, source, words):
    path = write(tmp_path / "bad.ipynb", source)
    before = path.read_bytes()
    assert words in tool.refresh(path)
    assert path.read_bytes() == before


def test_measurements_are_run_and_not_stored(tmp_path):
    path = write(tmp_path / "05.ipynb", "import time\nprint(time.time())", "import sys\nprint(1)")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].metadata["tags"] = [tool.LIVE]
    nbformat.write(notebook, path)
    assert tool.refresh(path) is None
    live, kept = nbformat.read(path, as_version=4).cells
    assert live.outputs == [] and live.execution_count == 1
    assert kept.outputs[0]["text"] == "1\n"
    live.source = "1 / 0"
    nbformat.write(nbformat.v4.new_notebook(cells=[live]), path)
    assert "ZeroDivisionError" in tool.refresh(path)
