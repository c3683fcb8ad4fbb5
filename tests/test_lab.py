"""The working copy: an edit survives every update, and an untouched copy follows it."""

import json
import os

import pytest

from synapse_edu import lab
from synapse_edu.errors import BadArgument


def notebook(*sources, output=None):
    """A notebook of code cells as bytes; `output` is stored under each."""
    stream = {"output_type": "stream", "name": "stdout", "text": output}
    outputs = [] if output is None else [stream]
    cells = [
        {
            "cell_type": "code",
            "id": f"c{i}",
            "metadata": {},
            "execution_count": None,
            "source": source,
            "outputs": outputs,
        }
        for i, source in enumerate(sources)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


@pytest.fixture
def folders(tmp_path):
    chapters = tmp_path / "original chapters"
    chapters.mkdir()
    (chapters / "00_start_here.ipynb").write_bytes(notebook("print(1)", output="1\n"))
    (chapters / "01_shapes.ipynb").write_bytes(notebook("shapes = 2"))
    return chapters, tmp_path / "Übung ü" / "work"


def test_first_run_copies_every_chapter_and_says_nothing(folders):
    chapters, work = folders
    assert lab.refresh(chapters, work) == []
    for name in ("00_start_here.ipynb", "01_shapes.ipynb"):
        assert (work / name).read_bytes() == (chapters / name).read_bytes()


def test_helper_files_of_the_originals_are_not_copied(folders):
    chapters, work = folders
    (chapters / "conftest.py").write_text("x = 1", encoding="utf-8")
    (chapters / ".ipynb_checkpoints").mkdir()
    (chapters / ".ipynb_checkpoints" / "00-checkpoint.ipynb").write_bytes(notebook("old"))
    (chapters / "pictures").mkdir()
    (chapters / "pictures" / "block.svg").write_text("<svg/>", encoding="utf-8")
    lab.refresh(chapters, work)
    copied = {p.relative_to(work).as_posix() for p in work.rglob("*") if p.is_file()}
    assert copied == {
        lab.MEMORY,
        "00_start_here.ipynb",
        "01_shapes.ipynb",
        "pictures/block.svg",
    }


def test_an_untouched_copy_follows_the_original(folders):
    chapters, work = folders
    lab.refresh(chapters, work)
    (chapters / "01_shapes.ipynb").write_bytes(notebook("shapes = 3"))
    assert lab.refresh(chapters, work) == []
    assert (work / "01_shapes.ipynb").read_bytes() == notebook("shapes = 3")


def test_running_a_chapter_is_no_edit(folders):
    chapters, work = folders
    lab.refresh(chapters, work)
    ran = notebook("shapes = 2", output="ran\n")
    (work / "01_shapes.ipynb").write_bytes(ran)
    assert lab.refresh(chapters, work) == []
    assert (work / "01_shapes.ipynb").read_bytes() == ran  # its outputs stay
    (chapters / "01_shapes.ipynb").write_bytes(notebook("shapes = 3"))
    assert lab.refresh(chapters, work) == []
    assert (work / "01_shapes.ipynb").read_bytes() == notebook("shapes = 3")


def test_newer_stored_outputs_reach_a_copy_that_was_never_run(folders):
    chapters, work = folders
    lab.refresh(chapters, work)
    (chapters / "01_shapes.ipynb").write_bytes(notebook("shapes = 2", output="new\n"))
    assert lab.refresh(chapters, work) == []
    assert (work / "01_shapes.ipynb").read_bytes() == notebook("shapes = 2", output="new\n")


def test_an_edited_copy_is_kept_and_the_newer_chapter_offered_once(folders):
    chapters, work = folders
    lab.refresh(chapters, work)
    mine = notebook("shapes = 2  # my note")
    (work / "01_shapes.ipynb").write_bytes(mine)
    assert lab.refresh(chapters, work) == []  # nothing newer yet
    (chapters / "01_shapes.ipynb").write_bytes(notebook("shapes = 3"))
    (sentence,) = lab.refresh(chapters, work)
    offered = [p for p in work.glob("01_shapes-new-*.ipynb")]
    assert len(offered) == 1 and offered[0].name in sentence and "01_shapes.ipynb" in sentence
    assert offered[0].read_bytes() == notebook("shapes = 3")
    assert (work / "01_shapes.ipynb").read_bytes() == mine
    assert lab.refresh(chapters, work) == []
    assert len(list(work.glob("01_shapes-new-*.ipynb"))) == 1


def test_an_edited_offer_is_never_overwritten(folders):
    chapters, work = folders
    lab.refresh(chapters, work)
    (work / "01_shapes.ipynb").write_bytes(notebook("mine"))
    (chapters / "01_shapes.ipynb").write_bytes(notebook("shapes = 3"))
    lab.refresh(chapters, work)
    (offered,) = work.glob("01_shapes-new-*.ipynb")
    offered.write_bytes(notebook("edited too"))
    (work / lab.MEMORY).unlink()
    lab.refresh(chapters, work)
    assert offered.read_bytes() == notebook("edited too")


@pytest.mark.parametrize("damage", [None, b"", b"[]", b"\xff\xfe{", b'{"01_shapes.ipynb": 3}'])
def test_a_lost_memory_never_costs_an_edit(folders, damage):
    chapters, work = folders
    lab.refresh(chapters, work)
    (work / "01_shapes.ipynb").write_bytes(notebook("mine"))
    if damage is None:
        (work / lab.MEMORY).unlink()
    else:
        (work / lab.MEMORY).write_bytes(damage)
    (sentence,) = lab.refresh(chapters, work)
    assert "01_shapes.ipynb" in sentence
    assert (work / "01_shapes.ipynb").read_bytes() == notebook("mine")


def test_a_broken_copy_counts_as_edited(folders):
    chapters, work = folders
    lab.refresh(chapters, work)
    (work / "01_shapes.ipynb").write_bytes(b"\x00 not json")
    (chapters / "01_shapes.ipynb").write_bytes(notebook("shapes = 3"))
    assert len(lab.refresh(chapters, work)) == 1
    assert (work / "01_shapes.ipynb").read_bytes() == b"\x00 not json"


def test_a_deleted_copy_comes_back(folders):
    chapters, work = folders
    lab.refresh(chapters, work)
    (work / "01_shapes.ipynb").unlink()
    assert lab.refresh(chapters, work) == []
    assert (work / "01_shapes.ipynb").is_file()


def test_no_chapters_and_no_place_are_refused(folders, tmp_path):
    chapters, work = folders
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(BadArgument, match="no chapters"):
        lab.refresh(empty, work)
    in_the_way = tmp_path / "file"
    in_the_way.write_text("", encoding="utf-8")
    with pytest.raises(BadArgument, match="--work"):
        lab.refresh(chapters, in_the_way / "work")


def test_copies_are_trusted_by_jupyter(folders, monkeypatch, tmp_path):
    import nbformat
    from nbformat.sign import NotebookNotary

    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    chapters, work = folders
    lab.refresh(chapters, work)
    stored = nbformat.read(work / "00_start_here.ipynb", as_version=4)
    assert NotebookNotary().check_signature(stored)


def test_in_a_clone_the_copies_live_beside_the_chapters():
    chapters, clone = lab.originals()
    assert clone is not None and chapters == clone / "notebooks"
    assert lab.work_folder() == clone / "work"


def test_from_a_wheel_the_copies_live_in_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(lab, "PACKAGE", tmp_path / "site-packages" / "synapse_edu")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    chapters, clone = lab.originals()
    assert clone is None and chapters.parts[-2:] == ("_book", "notebooks")
    assert lab.work_folder() == tmp_path / "home" / "synapse-edu"


def test_jupyter_arguments():
    plain = lab.jupyter_arguments("work")
    assert "--no-browser" not in plain and not any("port=" in a for a in plain)
    assert any(a.endswith("/lab/tree/00_start_here.ipynb") for a in plain)
    chosen = lab.jupyter_arguments("work", browser=False, port=9000)
    assert "--no-browser" in chosen and "--ServerApp.port=9000" in chosen


@pytest.mark.parametrize("user", [0, 1000])
def test_root_is_allowed_because_containers_run_as_root(monkeypatch, user):
    monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)  # Windows has none
    assert ("--allow-root" in lab.jupyter_arguments("work")) == (user == 0)
