"""A Sphinx extension: in a docstring a plain ``*``, ``|`` or last ``_`` means itself."""

import re

CODE = re.compile(r"(``.*?``|`[^`]*`)")
BULLET = re.compile(r"\s*\* ")
MARK = re.compile(r"[*|]|(?<=\w)_(?!\w)")


def escape(line):
    """A line of a docstring in which ``(*inputs)``, ``|x|`` and ``fim_*`` are plain text."""
    start = BULLET.match(line)
    head = start[0] if start else ""
    parts = CODE.split(line[len(head) :])
    parts[::2] = [MARK.sub(lambda found: "\\" + found[0], part) for part in parts[::2]]
    return head + "".join(parts)


def _process(app, what, name, thing, options, lines):
    lines[:] = map(escape, lines)


def setup(app):
    app.connect("autodoc-process-docstring", _process, priority=100)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
