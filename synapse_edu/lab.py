"""The learner's working copy of the chapters: made once, refreshed later, never overwritten.

The chapters under version control (or inside an installed package) are originals.  A learner
works in copies, so that running a chapter changes no original, and a newer version of the
package changes no copy that a learner has edited.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

from .atomic import replacing
from .errors import BadArgument

START = "00_start_here.ipynb"
MEMORY = ".synapse-edu.json"
PACKAGE = Path(__file__).resolve().parent


def originals():
    """Folder of the original chapters, and the clone it belongs to (None for a wheel).

    Returns
    -------
    chapters : Path
    clone : Path or None
    """
    clone = PACKAGE.parent
    if (clone / "pyproject.toml").is_file() and (clone / "notebooks").is_dir():
        return clone / "notebooks", clone
    return PACKAGE / "_book" / "notebooks", None


def work_folder():
    """Where the copies live: ``work/`` in a clone, else ``synapse-edu/`` in the home folder."""
    _, clone = originals()
    return clone / "work" if clone else Path.home() / "synapse-edu"


def fingerprint(content):
    """A hash of what a person can edit: the cells' kinds and sources, not their outputs.

    Running a chapter stores outputs in it; that alone must not count as an edit.  A file that is
    no notebook is hashed whole.
    """
    try:
        cells = json.loads(content)["cells"]
        edited = [[c["cell_type"], "".join(c["source"])] for c in cells]
        content = json.dumps(edited).encode()
    except (ValueError, KeyError, TypeError):
        pass
    return hashlib.sha256(content).hexdigest()


def refresh(chapters, work):
    """Bring the working copy up to date without losing an edit.

    A copy that the learner has not edited is replaced by the newer chapter.  An edited copy stays
    as it is, and the newer chapter is laid beside it under another name.  A deleted copy comes
    back, which is how a learner starts a chapter afresh.

    Parameters
    ----------
    chapters, work : Path
        Folder of the originals; folder of the copies (made if it is absent).

    Returns
    -------
    list of str
        One sentence for each chapter whose newer version was laid beside an edited copy.

    Raises
    ------
    BadArgument
        There are no chapters, or the folder cannot be written.
    """
    sources = [p for p in sorted(Path(chapters).rglob("*")) if _is_material(p, chapters)]
    if not sources:
        raise BadArgument(
            f"There are no chapters in {chapters}. Install synapse_edu again, or run this in a "
            f"complete clone."
        )
    try:
        work.mkdir(parents=True, exist_ok=True)
        memory = _recall(work)
        sentences = []
        for source in sources:
            name = source.relative_to(chapters).as_posix()
            memory[name], sentence = _refresh_one(source, work / name, memory.get(name, {}))
            sentences += [sentence] if sentence else []
        _write(work / MEMORY, json.dumps(memory, indent=1, sort_keys=True).encode())
    except OSError as problem:
        raise BadArgument(
            f"Cannot write the working copy in {work}: {problem.strerror or problem}. Choose "
            f"another folder with --work."
        ) from None
    return sentences


def _is_material(path, chapters):
    parts = path.relative_to(chapters).parts
    hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
    return path.is_file() and not hidden and path.suffix != ".py"


def _recall(work):
    """What `refresh` knew of each file: the hash of the original it copied, and its fingerprint."""
    try:
        memory = json.loads((work / MEMORY).read_text(encoding="utf-8"))
        return {k: dict(v) for k, v in memory.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}  # lost or damaged: every copy that differs then counts as edited


def _refresh_one(source, target, known):
    """Refresh one file; return what to remember of it, and a sentence or None."""
    new = source.read_bytes()
    remember = {"bytes": hashlib.sha256(new).hexdigest(), "cells": fingerprint(new)}
    if not target.exists():
        _copy(target, new)
        return remember, None
    old = target.read_bytes()
    if old == new or fingerprint(old) == remember["cells"]:
        # The same chapter.  Newer stored outputs replace a copy that has never been run.
        if old != new and hashlib.sha256(old).hexdigest() == known.get("bytes"):
            _copy(target, new)
        return remember, None
    if fingerprint(old) == known.get("cells"):
        _copy(target, new)
        return remember, None
    if known.get("cells") == remember["cells"]:
        return known, None  # edited, and nothing newer to offer
    beside = target.with_name(f"{target.stem}-new-{remember['cells'][:8]}{target.suffix}")
    if not beside.exists():
        _copy(beside, new)
    return remember, (
        f"{target.name} has your edits, so it stays as it is; the newer chapter is beside it as "
        f"{beside.name}."
    )


def _copy(target, content):
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(target, content)
    if target.suffix == ".ipynb":
        _trust(target)


def _write(target, content):
    with replacing(target) as part:
        part.write_bytes(content)


def _trust(notebook):
    """Tell Jupyter that these stored outputs are ours, so that it shows them before a run."""
    try:
        import nbformat
        from nbformat.sign import NotebookNotary

        NotebookNotary().sign(nbformat.read(notebook, as_version=4))
    except Exception:  # a picture that waits for the first run is no reason to fail
        pass


def jupyter_arguments(folder, browser=True, port=None):
    """Arguments of JupyterLab that open `START` in `folder`.

    Parameters
    ----------
    folder : Path
        Root of JupyterLab's file browser.
    browser : bool
        Whether a browser window opens.
    port : int or None
        None: 8888, or the next free one.
    """
    arguments = [
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/tree/{START}",
        # Nothing asks the network for news or newer versions: the workbook works offline.
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=None",
    ]
    if not browser:
        arguments.append("--no-browser")
    if port is not None:
        arguments += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--allow-root")  # containers; JupyterLab would refuse to start
    return arguments


def run_jupyter(arguments):
    """Run JupyterLab in this process until it is stopped.  The kernel is this Python's own."""
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    # Kernels inherit this.  The products here are small: more BLAS threads than free cores make
    # them ten times slower, and a class shares one server.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from jupyterlab.labapp import main
    except ImportError:
        raise BadArgument(
            f"JupyterLab is not installed beside {sys.executable}. Run "
            f"`python -m pip install jupyterlab`."
        ) from None
    main(arguments)
