"""Files written whole or not at all: an interruption or a power cut leaves the older file."""

import os
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path):
    """A path to write to, which takes the place of `path` when the block ends without an error.

    Parameters
    ----------
    path : str or Path
        In a folder that exists.  Whatever stands there is kept until the new file is complete.

    Yields
    ------
    Path
        A name beside `path` that no other process uses.  After an error nothing is left of it.
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
