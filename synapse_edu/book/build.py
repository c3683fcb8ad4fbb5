"""Build the book: gather its sources, run Sphinx, and print a PDF if asked."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .. import chromium
from ..errors import BadArgument

CONFIGURATION = Path(__file__).parent
NEEDED = ("sphinx", "myst_nb", "sphinx_book_theme", "sphinx_external_toc")


def build(out, pdf=None, strict=True):
    """Build the site.

    Parameters
    ----------
    out : Path
        Folder of the site; made, or brought up to date.
    pdf : Path or None
        Also print the whole book to this file.
    strict : bool
        Whether a warning fails the build.

    Returns
    -------
    Path
        The page to open.

    Raises
    ------
    BadArgument
        A package of the book is missing, the folder holds something else, there is no Chromium
        for the PDF, or Sphinx refused the sources; the message says what to do.
    """
    _need_packages()
    browser = _chromium() if pdf else None
    _need_own_folder(out)
    from .polish import polish_all
    from .sources import gather

    with tempfile.TemporaryDirectory(prefix="synapse-book-") as folder:
        source = Path(folder) / "source"
        source.mkdir()
        meta = gather(source)
        _sphinx("html", source, out, meta, strict)
        polish_all(out)
        if pdf:
            single = Path(folder) / "single"
            _sphinx("singlehtml", source, single, meta, strict)
            _print(browser, next(single.glob("**/00_start_here.html")), Path(pdf))
    start = out / "index.html"
    return start if start.exists() else next(out.glob("notebooks/00_*.html"))


def _need_packages():
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise BadArgument(
            f"Building the book needs {', '.join(missing)}. Get it with `python -m pip install "
            f'"synapse_edu[book]"`, or in a clone `python -m uv run --extra book synapse-edu book`.'
        )


def _need_own_folder(out):
    """Refuse to write a site among files that are not one's."""
    if out.exists() and not out.is_dir():
        raise BadArgument(f"{out} is a file; give a folder for the site.")
    if out.is_dir() and any(out.iterdir()) and not (out / "objects.inv").exists():
        raise BadArgument(f"{out} holds other files; give an empty folder for the site.")


def _sphinx(builder, source, out, meta, strict):
    command = [sys.executable, "-m", "sphinx", "-q", "--keep-going", "-b", builder]
    command += ["-W"] if strict else []
    command += ["-c", str(CONFIGURATION), "-d", str(source.parent / f"{builder}-state")]
    environment = {
        **os.environ,
        "SYNAPSE_BOOK_META": json.dumps({**meta, "static": str(source / "static")}),
        "PYTHONUTF8": "1",
    }
    done = subprocess.run(
        [*command, str(source), str(out)],
        env=environment, capture_output=True, text=True, encoding="utf-8", errors="replace",
    )  # fmt: skip
    said = (done.stdout + done.stderr).replace(str(source) + os.sep, "").strip()
    if done.returncode:
        raise BadArgument(f"Sphinx refused the book:\n{said}")
    if said:
        print(said, file=sys.stderr)


def _chromium():
    found = chromium.find()
    if found is None:
        raise BadArgument("A PDF is printed by Chromium, and none was found. Install it first.")
    return found


def _print(browser, page, pdf):
    """Let Chromium print one page, images and all, without a window and without the network."""
    pdf.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        flags = ["--headless", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
        flags += ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        flags += ["--disable-background-networking", "--no-pdf-header-footer"]
        command = [browser, *flags, f"--print-to-pdf={pdf.resolve()}", page.resolve().as_uri()]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=600
        )
    if not pdf.exists() or not pdf.stat().st_size:
        raise BadArgument(f"Chromium printed nothing: {done.stderr.strip()[-500:]}")
