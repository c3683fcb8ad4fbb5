"""Speeds that were measured once, with the machine they were measured on: ``data/*.json``."""

import json

from ..checkpoint.catalogue import data_folder
from ..errors import FileProblem


def recorded(name):
    """A recorded measurement as a dict.

    Parameters
    ----------
    name : str
        ``"speed"``, or ``"bench-smollm2"`` and so on: a file of the package's data.
    """
    path = data_folder() / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in data_folder().glob("*.json")))
        raise FileProblem(f"Nothing is recorded under the name {name!r}. There is: {known}.")
    return json.loads(path.read_text(encoding="utf-8"))
