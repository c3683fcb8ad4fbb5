"""Lay the book's sources out in one folder: chapters, exercises, pages written and pages made."""

import shutil
from pathlib import Path

import yaml

from ..classroom import editions
from . import api, chapters, glossary, live, recording, settings, symbols

PAGES = Path(__file__).with_name("pages")


def gather(folder):
    """Write every source of the book into an empty folder.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    dict
        The settings of ``book.yml``.
    """
    home = settings.home()
    contents, meta = settings.read(home / "book.yml")
    notebooks = _notebooks(home)
    terms = glossary.terms((PAGES / "glossary.md").read_text(encoding="utf-8"))
    exercises = {n.rsplit("/", 1)[0]: n for n in notebooks if n.startswith("exercises/")}
    names = {path.name for path in notebooks.values()}
    for name, path in notebooks.items():
        notebook = editions.read(path)
        chapters.prepare(notebook, terms, exercises, names)
        editions.write(notebook, folder / name)
    shutil.copytree(PAGES, folder / "pages")
    made = {**api.pages(), "pages/symbols.md": symbols.page(), "pages/views.md": live.page()}
    for name, text in made.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (folder / "static").mkdir()
    (folder / "static" / "views.js").write_text(recording.script(), encoding="utf-8")
    prune(contents, folder)
    (folder / "_toc.yml").write_text(yaml.safe_dump(contents, sort_keys=False), encoding="utf-8")
    return meta


def prune(entry, folder):
    """Take out of a table of contents, in place, what is not there, and parts left empty.

    A pattern becomes the files that it finds, in the order of their names.
    """
    for key in ("parts", "chapters", "sections"):
        if key not in entry:
            continue
        kept = [child for given in entry[key] for child in _found(given, folder)]
        for child in kept:
            prune(child, folder)
        entry[key] = [child for child in kept if key != "parts" or child.get("chapters")]


def _found(entry, folder):
    if "glob" in entry:
        files = sorted(folder.glob(entry["glob"] + ".*"))
        return [{"file": path.relative_to(folder).with_suffix("").as_posix()} for path in files]
    if "file" not in entry:
        return [entry]
    there = any((folder / f"{entry['file']}{end}").exists() for end in (".ipynb", ".md"))
    return [entry] if there else []


def _notebooks(home):
    """Path in the book → file, of every chapter and every exercise that there is."""
    found = [*home.glob("notebooks/*.ipynb"), *home.glob("exercises/*/*_exercises.ipynb")]
    return {path.relative_to(home).as_posix(): path for path in sorted(found)}
