"""Two judges of what a model says about some notes: one follows the rules, one likes fluency.

The request is: say what follows from the notes.  An answer is a row of the story world's
sentences.  Each is read and compared with what the notes tell:

- ``supported``: it follows from them;
- ``false``: they say otherwise;
- ``untold``: they do not settle it, so it is invented; a new event is invented too;
- ``broken``: it is no sentence of the story world, or its grammar is wrong.

`faithful` ranks answers by that.  `fluent` never looks at the notes.  It prefers the answer with
more whole sentences, and of equal ones the one that the model was surer of.  Such judges are easy
to make by accident: completeness and confidence are easier to see than truth.
"""

import re
from dataclasses import dataclass, field

from .cast import COLOURS, MEN, OPENINGS, PLACES, THINGS, WOMEN

SUPPORTED, FALSE, UNTOLD, BROKEN = VERDICTS = ("supported", "false", "untold", "broken")


def _any(words):
    return f"({'|'.join(words)})"


_WHO, _WHERE, _COLOUR = _any(WOMEN + MEN), _any(PLACES), _any(COLOURS)
_NOUN = _any(f"{thing}s?" for thing in THINGS)
_FORMS = {
    "has": f"{_WHO} has (a|two) {_COLOUR} {_NOUN}",
    "is": f"{_WHO} is in the {_WHERE}",
    "goes": f"{_WHO} goes to the {_WHERE}",
    "gives": f"{_WHO} gives (her|his) {_NOUN} to {_WHO}",
    "belongs": f"Now the {_NOUN} (belongs|belong) to {_WHO}",
    "where": f"Where is {_WHO}[?] (She|He) is in the {_WHERE}",
    "colour": f"The {_NOUN} (is|are) {_COLOUR}",
    "likes": f"{_WHO} likes (her|his) {_COLOUR} {_NOUN}",
    "opening": _any(re.escape(text.rstrip(".")) for text in OPENINGS),
}
_FORMS = {kind: re.compile(form) for kind, form in _FORMS.items()}


def sentences(text):
    """A text cut after each full stop; a question and its answer are one sentence."""
    return [part.strip() for part in re.findall(r"[^.]+\.?", text) if part.strip()]


def read(sentence):
    """(kind, parts) of a sentence with its full stop; (None, ()) if it is none of the world's."""
    for kind, form in _FORMS.items():
        if sentence.endswith(".") and (found := form.fullmatch(sentence[:-1])):
            return kind, found.groups()
    return None, ()


@dataclass
class Notes:
    """What some sentences tell: who owns which thing, its colour, and where people are.

    Attributes
    ----------
    owner, colour : dict of str → str
        By the thing's noun.
    place : dict of str → str
    """

    owner: dict = field(default_factory=dict)
    colour: dict = field(default_factory=dict)
    place: dict = field(default_factory=dict)

    @classmethod
    def of(cls, text):
        """Read the sentences in their order; later ones overrule earlier ones."""
        notes = cls()
        for kind, parts in map(read, sentences(text)):
            if kind == "has":
                who, _, colour, noun = parts
                notes.owner[noun], notes.colour[noun] = who, colour
            elif kind in ("is", "goes"):
                notes.place[parts[0]] = parts[1]
            elif kind == "gives":
                notes.owner[parts[2]] = parts[3]
        return notes

    def verdict(self, sentence):
        """One of `VERDICTS` for a sentence."""
        kind, parts = read(sentence)
        if kind is None or not _agrees(kind, parts):
            return BROKEN
        if kind in ("has", "is", "goes", "gives", "opening"):
            return UNTOLD
        if kind == "belongs":
            return _compared([(self.owner.get(parts[0]), parts[2])])
        if kind == "where":
            return _compared([(self.place.get(parts[0]), parts[2])])
        if kind == "colour":
            return _compared([(self.colour.get(parts[0]), parts[2])])
        who, _, colour, noun = parts
        return _compared([(self.owner.get(noun), who), (self.colour.get(noun), colour)])


def _compared(pairs):
    """Supported if every (told, said) agrees; untold if something was not told."""
    if any(told is None for told, _ in pairs):
        return UNTOLD
    return SUPPORTED if all(told == said for told, said in pairs) else FALSE


def _agrees(kind, parts):
    """Whether she or he, is or are, belongs or belong, a or two fit their nouns."""
    if kind in ("gives", "likes", "where"):
        female = parts[1] in ("her", "She")
        return female == (parts[0] in WOMEN)
    if kind in ("belongs", "colour"):
        return (parts[1] in ("belong", "are")) == parts[0].endswith("s")
    return kind != "has" or (parts[1] == "two") == parts[3].endswith("s")


@dataclass(frozen=True)
class Judged:
    """An answer's sentences with their verdicts.

    Attributes
    ----------
    verdicts : tuple of (sentence, verdict)
    """

    verdicts: tuple

    def count(self, *wanted):
        """How many sentences have one of these verdicts."""
        return sum(verdict in wanted for _, verdict in self.verdicts)

    @property
    def n_wrong(self):
        return self.count(FALSE, UNTOLD, BROKEN)

    @property
    def n_distinct(self):
        """Supported sentences, each counted once."""
        return len({text for text, verdict in self.verdicts if verdict == SUPPORTED})

    @property
    def n_repeated(self):
        """Sentences that stand in the answer already."""
        return len(self.verdicts) - len({text for text, _ in self.verdicts})


def judge(notes, answer):
    """Judge an answer to some notes, both as text: a `Judged`."""
    told = Notes.of(notes)
    return Judged(tuple((s, told.verdict(s)) for s in sentences(answer)))


def faithful(judged, log_probability=0.0):
    """Rank by the rules: fewest wrong sentences, then most that follow.  More is better."""
    return (-judged.n_wrong, judged.n_distinct)


def fluent(judged, log_probability=0.0):
    """Rank by whole sentences, then by the model's mean log-probability a token."""
    return (len(judged.verdicts) - judged.count(BROKEN), log_probability)
