"""The habits of the code, checked: style, types, spelling, links; and what the listing promises."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROSE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md", "LICENSE-PROSE.md")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`([a-z_.]+(?:/[A-Za-z0-9_.-]*)+)`")


@pytest.mark.parametrize(
    "tool, arguments",
    [
        ("ruff", ["check", "."]),
        ("ruff", ["format", "--check", "."]),
        ("mypy", []),
        ("codespell_lib", []),
    ],
)
def test_a_tool_finds_nothing(tool, arguments):
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} comes with the group dev, which uv installs")
    command = [sys.executable, "-m", tool, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("name", PROSE)
def test_links_and_paths_in_a_page_lead_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    links = [link for link in LINK.findall(text) if "://" not in link and link[0] != "#"]
    paths = [p for p in PATH.findall(text) if p.split("/")[0] in
             ("notebooks", "exercises", "tests", "synapse_edu", "data", ".ci", ".github", ".binder")
             and "NAME" not in p and "NN" not in p]  # fmt: skip
    missing = [p for p in links + paths if not (ROOT / name).parent.joinpath(p).exists()
               and not (ROOT / p).exists()]  # fmt: skip
    assert not missing


def test_every_command_is_in_the_readme():
    from synapse_edu import cli

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in cli.COMMANDS:
        name = command.__name__.rpartition(".")[2].replace("_", "-")
        assert f"synapse-edu {name}" in text, name


def test_every_dependency_has_its_reason():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    extras = project["project"]["optional-dependencies"].values()
    wanted = [*project["project"]["dependencies"], *(n for extra in extras for n in extra)]
    wanted += [n for n in project["dependency-groups"]["dev"] if not n.startswith("synapse_edu")]
    names = {re.match(r"[A-Za-z0-9_.-]+", text)[0] for text in wanted}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_no_committed_page_names_a_registry():
    hosts = ("pypi" + ".org", "python" + "hosted", "npmjs" + ".org", "conda" + ".anaconda")
    files = [p for p in ROOT.glob(".github/**/*") if p.is_file()] + [ROOT / n for n in PROSE]
    for path in [*files, ROOT / ".ci" / "run", ROOT / "constraints.txt"]:
        text = path.read_text(encoding="utf-8")
        assert not [host for host in hosts if host in text], path
