"""The glossary's terms, for linking the chapters to it."""

import re

ENTRY = re.compile(r"^([A-Za-z][^\n]*)\n:\s", re.M)
IRREGULAR = {"query": "queries", "batch": "batches", "micro-batch": "micro-batches"}
# Terms whose words also mean something else: a chapter writes them in bold where it means ours.
EVERYDAY = {
    "activation", "block (quantization)", "id", "key", "margin", "rank", "sampling", "temperature",
    "tied", "value",
}  # fmt: skip


def terms(text):
    """Every way in which a chapter may write a term, in lower case → the term.

    Parameters
    ----------
    text : str
        The glossary's page: each term on a line of its own, and below it ``: `` and what it
        means.  Words in brackets after a term are left out by a chapter.
    """
    forms = {}
    for line in ENTRY.findall(text):
        name = line.strip()
        short = re.sub(r"\s*\(.*\)$", "", name).lower()
        inside = re.search(r"\(([^)]*)\)$", name)
        ways = [short, *([inside[1].lower()] if inside else [])]
        for way in ways:
            for form in (way, way + "s", IRREGULAR.get(way, way)):
                forms.setdefault(form, name)
    return forms
