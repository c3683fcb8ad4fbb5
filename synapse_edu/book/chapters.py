"""A notebook as the book needs it: terms linked, pictures described, solutions folded."""

import base64
import re

from ..classroom import editions
from . import glossary

TERM = re.compile(r"(?<!\*)\*\*([A-Za-z][^*\n]{1,40})\*\*(?!\*)")
EXERCISES = re.compile(r"\[([^\]]*)\]\(\.\./(exercises/[^)#]*)\)")
CHAPTERS = re.compile(r"\[([^\]]*)\]\((\d\d_[^)/#]*\.ipynb)\)")
FENCED = re.compile(r"(```.*?```|\$\$.*?\$\$|`[^`]*`)", re.S)
# Where no word is linked: code, formulas, links, headings, directives and HTML.
NOT_PROSE = re.compile(
    r"(```.*?```|\$\$.*?\$\$|\$[^$\n]+\$|`[^`]*`|\[[^\]]*\]\([^)]*\)"
    r"|^#.*?$|^:::.*?$|^<.*?(?=\n\n|\Z))",
    re.S | re.M,
)
FOLD = "Show the solution"


def prepare(notebook, terms, exercises, chapters):
    """Turn a notebook, as plain dicts, into the book's copy of it, in place.

    Parameters
    ----------
    notebook : dict
        From `editions.read`.
    terms : dict of str → str
        Terms of the glossary by their lower-case forms.
    exercises : dict of str → str
        The page of each folder of exercises, both as paths from the book's root.
    chapters : container of str
        File names of the chapters that there are.
    """
    if any(editions.marks(cell) for cell in notebook["cells"]):
        notebook["cells"] = fold_solutions(notebook["cells"])
    known = dict(terms)
    prose = [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    for cell in prose:
        cell["source"] = link_terms(cell["source"], known)
    for cell in prose:  # what is nowhere in bold is linked where it is first mentioned
        text = link_exercises(link_mentions(cell["source"], known), exercises)
        cell["source"] = CHAPTERS.sub(lambda m: m[0] if m[2] in chapters else m[1], text)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            describe_picture(output.get("data", {}))
    return notebook


def link_terms(text, known):
    """Link each bold term to the glossary where it stands in bold for the first time.

    A term that was linked is taken out of `known`.
    """

    def link(found):
        return _role(found[1], known) or found[0]

    parts = FENCED.split(text)
    return "".join(part if i % 2 else TERM.sub(link, part) for i, part in enumerate(parts))


def link_mentions(text, known):
    """Link each of the terms left in `known` where it is mentioned first, in bold or not.

    Words that everybody uses in other senses too (`glossary.EVERYDAY`) have to be in bold.
    """
    forms = [form for form, name in known.items() if name not in glossary.EVERYDAY]
    if not forms:
        return text
    longest_first = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    mention = re.compile(rf"(?<![\w-])(?:{longest_first})(?![\w-])", re.I)
    parts = NOT_PROSE.split(text)
    return "".join(
        part if i % 2 else mention.sub(lambda found: _role(found[0], known) or found[0], part)
        for i, part in enumerate(parts)
    )


def _role(words, known):
    """A link of `words` to the glossary, and the term taken out of `known`; None for no term."""
    term = known.get(words.lower())
    if term is None:
        return None
    for form in [form for form, name in known.items() if name == term]:
        del known[form]
    return f"{{term}}`{words} <{term}>`"


def link_exercises(text, exercises):
    """Point links to an exercise's folder at its notebook; without one only the words stay."""

    def link(found):
        page = exercises.get(found[2].rstrip("/"))
        return f"[{found[1]}](../{page})" if page else found[1]

    return EXERCISES.sub(link, text)


def describe_picture(data):
    """Put a stored PNG into the page as an image with its description.

    ``figure.picture`` gives each picture a text form, ``Picture: …``; Sphinx would drop it.
    """
    words = "".join(data.get("text/plain", ""))
    if "image/png" not in data or not words.startswith("Picture: "):
        return
    alt = words.removeprefix("Picture: ").replace("&", "&amp;").replace('"', "&quot;")
    code = base64.b64encode(base64.b64decode("".join(data.pop("image/png")))).decode()
    data["text/html"] = f'<img class="picture" alt="{alt}" src="data:image/png;base64,{code}">'


def fold_solutions(cells):
    """The student's cells, each solution after its stub and folded; hidden tests are left out."""
    made = []
    for cell in cells:
        mark = editions.marks(cell)
        student = {**cell, "source": editions.HIDDEN.sub("", cell["source"]).rstrip("\n")}
        if not mark.get("solution"):
            made.append(student)
            continue
        stub = editions.without_solution(cell["source"], cell["cell_type"])
        made.append({**student, "source": stub})
        made.append(_folded(cell))
    for cell in made:
        if cell["cell_type"] == "code":
            cell["outputs"] = []
    for number, cell in enumerate(made):
        cell["id"] = f"cell-{number}"
    return made


def _folded(cell):
    lines = [line for line in cell["source"].split("\n") if "### " not in line[:24]]
    text = "\n".join(lines).strip("\n")
    if cell["cell_type"] == "code":
        text = f"```python\n{text}\n```"
    opening = f'<details class="solution"><summary>{FOLD}</summary>'
    source = f"{opening}\n\n{text}\n\n</details>"
    return {"cell_type": "markdown", "metadata": {}, "source": source}
