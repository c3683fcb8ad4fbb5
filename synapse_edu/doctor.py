"""What is wrong with this installation, and how to mend it: one small check for each thing."""

import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import chromium
from .checkpoint import catalogue
from .checkpoint.download import check as check_sha256
from .errors import SynapseError

GOOD, NOTE, BAD = "good", "note", "bad"
OLDEST = (3, 11)
ROOM = 500 * 2**20  # bytes: SmolLM2 with its download, and compiled code
SETTINGS = (
    "SYNAPSE_MODEL", "SYNAPSE_HOME", "SYNAPSE_PACKED", "SYNAPSE_PROGRESS", "NUMBA_CACHE_DIR",
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes
    ----------
    status : {"good", "note", "bad"}
        A note is something to know; only what is bad keeps the workbook from working.
    what : str
    mend : str
        What to do about it; empty if nothing.
    """

    status: str
    what: str
    mend: str = ""


def examine():
    """Run every check.

    Yields
    ------
    Finding
        A check that fails in a way nobody thought of is a finding too.
    """
    for check in CHECKS:
        try:
            yield from check()
        except Exception as problem:
            name = check.__name__.strip("_")
            yield Finding(BAD, f"The check of {name} failed: {type(problem).__name__}: {problem}")


def _python():
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST:
        yield Finding(BAD, f"Python {version} is too old.", "Install Python 3.11 or newer.")
    else:
        yield Finding(GOOD, f"Python {version} at {sys.executable}")


def _packages():
    """Each package that synapse_edu asks for, and the versions that were tested together."""
    from packaging.requirements import Requirement

    try:
        wanted = importlib.metadata.requires("synapse_edu") or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding(
            BAD, "synapse_edu is not installed, only found.",
            "In the clone: python -m pip install -c constraints.txt -e .",
        )  # fmt: skip
        return
    tested, wrong, newer = _tested_versions(), [], []
    for text in wanted:
        need = Requirement(text)
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        try:
            found = importlib.metadata.version(need.name)
        except importlib.metadata.PackageNotFoundError:
            wrong.append(f"{need.name} is missing")
            continue
        if not need.specifier.contains(found, prereleases=True):
            wrong.append(f"{need.name} is {found}, and {need.specifier} is needed")
        elif need.name in tested and found not in tested[need.name]:
            newer.append(f"{need.name} {found} (tested: {', '.join(sorted(tested[need.name]))})")
    mend = "python -m pip install -c constraints.txt -e .  (or, with uv: python -m uv sync)"
    for problem in wrong:
        yield Finding(BAD, f"The package {problem}.", mend)
    if newer:
        yield Finding(NOTE, f"Other versions than those tested together: {'; '.join(newer)}.", mend)
    if not wrong:
        yield Finding(GOOD, f"{len(wanted)} packages are asked for, and none needed is missing")


def _tested_versions():
    """Name → versions of ``constraints.txt``, of which a package can have one for each Python."""
    package = Path(__file__).resolve().parent
    versions = {}
    for path in (package.parent / "constraints.txt", package / "_book" / "constraints.txt"):
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                name, _, version = line.partition(";")[0].strip().partition("==")
                if version:
                    versions.setdefault(name.lower(), set()).add(version)
            break
    return versions


def _numba():
    """Compile one function and run it; where compiled code is kept."""
    try:
        import numba
        import numpy as np

        double = numba.njit(lambda x: x + x)
        if double(np.float32(1.5)) != 3:
            raise ArithmeticError("1.5 + 1.5 is not 3")
    except Exception as problem:
        yield Finding(
            BAD, f"Numba cannot compile: {type(problem).__name__}: {problem}",
            'Install it again: python -m pip install --force-reinstall numba. Until then se.load('
            'backend="reference") computes everything in NumPy.',
        )  # fmt: skip
        return
    from .ops.fast import jit

    folder = jit.cache_folder()
    if folder is None:
        yield Finding(
            NOTE, "Compiled code can be kept nowhere, so that every start compiles anew.",
            "Set NUMBA_CACHE_DIR to a folder of yours that can be written.",
        )  # fmt: skip
    else:
        kept = sum(1 for _ in folder.glob("*.bin"))
        yield Finding(
            GOOD, f"Numba {numba.__version__} compiles; {kept} functions kept in {folder}"
        )
        if not kept:
            yield Finding(
                NOTE,
                "The fast functions are not compiled yet: the first use waits.",
                "synapse-edu doctor --compile",
            )


def _folders():
    """Folders that the workbook writes to."""
    from . import lab
    from .classroom.progress import path as progress_path

    places = {
        "your copies of the chapters": lab.work_folder(),
        "downloaded models": catalogue.home(),
        "your progress": progress_path().parent,
    }
    for what, folder in places.items():
        if problem := _unwritable(folder):
            yield Finding(
                BAD, f"The folder of {what} cannot be written: {folder}: {problem}",
                "Give yourself the right to write there, or choose another folder: `synapse-edu "
                "lab --work FOLDER`, SYNAPSE_HOME, SYNAPSE_PROGRESS.",
            )  # fmt: skip
        else:
            yield Finding(GOOD, f"The folder of {what} can be written: {folder}")


def _unwritable(folder):
    """Why no file can be made in a folder, or in the first folder above it that there is."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as problem:
        return problem.strerror or str(problem)


def _models():
    import synapse_edu as se

    model = se.load("built-in")
    ids = model.tokenizer.encode(
        "Mia has a red ball. Mia is in the park. Where is Mia? She is in the"
    )
    best = int(model.prefill(ids, model.new_cache()).argmax())
    said = model.tokenizer.decode([best])
    if said != " park":
        yield Finding(
            BAD,
            f"The built-in model says {said!r} where it should say ' park'.",
            "Install synapse_edu again.",
        )
    else:
        yield Finding(GOOD, "The built-in model computes what it should")
    for download in catalogue.DOWNLOADS.values():
        place = catalogue.place(download)
        if not place.exists():
            yield Finding(
                NOTE, f"{download.name} is not on this computer; a few cells need it.",
                f"synapse-edu models get {download.name}",
            )  # fmt: skip
            continue
        try:
            check_sha256(place, download.file_sha256, str(place))
            yield Finding(GOOD, f"{download.name} is whole: {place}")
        except SynapseError as problem:
            yield Finding(
                BAD, str(problem), f"Delete {place}, then synapse-edu models get {download.name}"
            )


def _disk():
    folder = catalogue.home()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < ROOM:
        yield Finding(
            NOTE, f"Only {free / 2**20:.0f} MiB are free where models are kept ({folder}).",
            "Free some room, or set SYNAPSE_HOME to a folder on another disk.",
        )  # fmt: skip
    else:
        yield Finding(GOOD, f"{free / 2**30:.1f} GiB are free where models are kept")


def _threads():
    from .study import machine

    yield Finding(GOOD, machine.sentence(machine.describe()))
    given = os.environ.get("OPENBLAS_NUM_THREADS")
    if given not in (None, "1"):
        yield Finding(
            NOTE, f"OPENBLAS_NUM_THREADS is {given}: small products then run up to ten times "
            f"slower on a shared computer.", "Unset it; `synapse-edu lab` sets it to 1.",
        )  # fmt: skip
    for name in SETTINGS:
        if name in os.environ:
            yield Finding(NOTE, f"{name} is set to {os.environ[name]!r}")


def _jupyter():
    if importlib.util.find_spec("jupyterlab") is None:
        yield Finding(BAD, "JupyterLab is missing.", "python -m pip install jupyterlab")
        return
    yield Finding(GOOD, f"JupyterLab {importlib.metadata.version('jupyterlab')}")


def _chromium():
    found = chromium.find()
    if found:
        yield Finding(GOOD, f"Chromium at {found}")
    else:
        yield Finding(
            NOTE, "There is no Chromium here. Only the browser tests and `book --pdf` need "
            "one.", "Debian, Ubuntu: apt install chromium. Elsewhere any Chrome will do.",
        )  # fmt: skip


CHECKS = (_python, _packages, _jupyter, _numba, _folders, _models, _disk, _threads, _chromium)


def compile_ahead(say):
    """Compile the fast functions, so that the first use does not wait.

    Parameters
    ----------
    say : callable
        Takes a line of text.
    """
    from .model import fast

    say("Compiling the fast functions; this takes a minute or two.")
    fast.compile_ahead()
    say("Compiled.")
