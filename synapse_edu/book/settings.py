"""Where the book's sources are, and what ``book.yml`` says about them."""

from pathlib import Path

from ..errors import BadArgument

PACKAGE = Path(__file__).resolve().parents[1]


def home():
    """Folder of ``book.yml``, ``notebooks/`` and ``exercises/``: a clone, or a wheel's copy."""
    clone = PACKAGE.parent
    if (clone / "pyproject.toml").is_file() and (clone / "book.yml").is_file():
        return clone
    return PACKAGE / "_book"


def read(path):
    """The table of contents and the settings of a ``book.yml``.

    Returns
    -------
    contents : dict
        In the format of sphinx-external-toc.
    meta : dict
        ``title``, ``author``, ``description``.

    Raises
    ------
    BadArgument
        The file is missing, is no YAML, or has no root.
    """
    import yaml

    try:
        contents = yaml.safe_load(path.read_text(encoding="utf-8"))
        meta = contents.pop("meta", {})
    except OSError as problem:
        raise BadArgument(f"The book has no contents: {path}: {problem.strerror}.") from None
    except (yaml.YAMLError, AttributeError, TypeError) as problem:
        raise BadArgument(f"{path} is no table of contents: {problem}") from None
    if "root" not in contents:
        raise BadArgument(f"{path} names no root page.")
    return contents, {"title": "synapse_edu", "author": "", "description": "", **meta}
