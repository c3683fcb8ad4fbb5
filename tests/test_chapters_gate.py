"""Chapter cells that need SmolLM2: left out with a sentence where it cannot be had, never in CI."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def chapters(tmp_path):
    """A folder with the chapters' conftest and one chapter: a plain cell and a tagged one."""
    folder = tmp_path / "chapters"
    folder.mkdir()
    shutil.copy(ROOT / "notebooks" / "conftest.py", folder)
    output = nbformat.v4.new_output("stream", name="stdout", text="1\n")
    cells = [
        nbformat.v4.new_code_cell("print(1)", outputs=[output], execution_count=1),
        nbformat.v4.new_code_cell("1 / 0", metadata={"tags": ["smollm2"]}),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "01.ipynb")
    return folder


def run(folder, **environment):
    """Pytest over the folder, with no model on the computer and no way to fetch one."""
    offline = {
        "SYNAPSE_HOME": str(folder / "empty"),
        "PIP_INDEX_URL": "http://127.0.0.1:9/",
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_FIND_LINKS": "",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_RETRIES": "0",
        "CI": "",
    }
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env"]
    command += ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={folder}", str(folder)]
    return subprocess.run(
        command,
        env={**os.environ, **offline, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


@pytest.mark.parametrize("ci, code", [("", 0), ("true", 1)])
def test_offline_the_cells_are_left_out_with_a_sentence(chapters, ci, code):
    done = run(chapters, CI=ci)
    assert done.returncode == code, done.stdout + done.stderr
    assert "1 passed, 1 deselected" in done.stdout
    assert "1 chapter cell(s) need SmolLM2 and were left out" in done.stdout
    assert "synapse-edu models get smollm2" in done.stdout
