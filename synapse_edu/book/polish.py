"""What the theme leaves open, mended in the pages that Sphinx wrote."""

import re

# The arrow that opens a part of the contents has no name; a wide table cannot be reached by key.
ARROW = re.compile(r"<summary>(\s*<span class=\"toctree-toggle\")")
TABLE = re.compile(r'<div class="pst-scrollable-table-container">')


def polish(text):
    """One page, with what a keyboard and a screen reader need."""
    text = ARROW.sub(r'<summary aria-label="Show its sections">\1', text)
    return TABLE.sub('<div class="pst-scrollable-table-container" tabindex="0">', text)


def polish_all(folder):
    """Every page of a site, in place."""
    for path in folder.rglob("*.html"):
        before = path.read_text(encoding="utf-8")
        after = polish(before)
        if after != before:
            path.write_text(after, encoding="utf-8", newline="\n")
