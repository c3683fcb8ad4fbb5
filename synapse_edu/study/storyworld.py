"""The story world: small English stories whose rules say which next words are right.

Two people own things, are at places, move, and give things away.  Then the story says who has
what, where somebody is, and what colour a thing has.  Those words follow from what was told
before, so a model's understanding can be measured: at each such word, does it predict a right one?

Five kinds of words are checked.  ``copy``: a name or a thing that has to be taken from an earlier
sentence.  ``possession``: who has a thing now.  ``place`` and ``colour``: where and what colour.
``agreement``: she or he, her or his, is or are, belong or belongs.

Some pairs of person and thing never occur in training.  They are kept for the test, so that a
high score there means that the rule was learned and not the pairs.

Examples
--------
>>> print(story(3).text)                                                     # doctest: +SKIP
It is a warm day. Ben has a green boat. Ella has two blue cups. ...
"""

import random
from dataclasses import dataclass, field

from ..errors import BadArgument
from .cast import COLOURS, MEN, OPENINGS, PLACES, THINGS, WOMEN, Thing, is_held_out

KINDS = ("copy", "possession", "place", "colour", "agreement")


@dataclass(frozen=True)
class Word:
    """A piece of a story.

    Attributes
    ----------
    text : str
        With its leading space, as it stands in the story.
    kind : str or None
        Which rule determines it; None if it was free.
    """

    text: str
    kind: str | None = None


@dataclass
class Story:
    """The words of one story, in order."""

    words: list = field(default_factory=list)

    @property
    def text(self):
        return "".join(word.text for word in self.words)

    def spans(self):
        """Character ranges of the checked words: list of (start, end, kind)."""
        spans, at = [], 0
        for word in self.words:
            if word.kind is not None:
                spans.append((at, at + len(word.text), word.kind))
            at += len(word.text)
        return spans


class Teller:
    """Writes one story and keeps track of who has what, and who is where."""

    def __init__(self, rng, held_out):
        self.rng, self.story = rng, Story()
        self.people = [rng.choice(WOMEN), rng.choice(MEN)]
        if rng.random() < 0.3:  # sometimes two women or two men
            group = rng.choice((WOMEN, MEN))
            self.people = rng.sample(group, 2)
        rng.shuffle(self.people)
        colours = rng.sample(COLOURS, 2)
        names = self._things(held_out)
        self.things = [Thing(n, c, rng.random() < 0.3) for n, c in zip(names, colours, strict=True)]
        self.owner = dict(zip(names, self.people, strict=True))
        places = rng.sample(PLACES, 2)
        self.place = dict(zip(self.people, places, strict=True))

    def _things(self, held_out):
        """One thing for each person; `held_out` says on which side of the split the pairs are."""
        while True:
            names = self.rng.sample(THINGS, 2)
            outside = [is_held_out(p, t) for p, t in zip(self.people, names, strict=True)]
            if all(outside) if held_out else not any(outside):
                return names

    # --- writing -------------------------------------------------------------------------------
    def say(self, *parts):
        """Append words; a part is text, or (text, kind) where the rules determine it."""
        for part in parts:
            text, kind = part if isinstance(part, tuple) else (part, None)
            punctuation = text[0] in ".,?"
            space = "" if punctuation or not self.story.words else " "
            self.story.words.append(Word(space + text, kind))

    def she(self, person):
        return "She" if person in WOMEN else "He"

    def her(self, person):
        return "her" if person in WOMEN else "his"

    def be(self, thing):
        return ("are" if thing.two else "is", "agreement")

    def owned_by(self, person):
        return [t for t in self.things if self.owner[t.name] == person]

    # --- what happens --------------------------------------------------------------------------
    def introduce(self):
        if self.rng.random() < 0.5:
            self.tell_weather()
        self.tell_belongings()
        for person in self.people:
            self.say(person, "is", "in", "the", self.place[person], ".")

    def tell_weather(self):
        self.say(*self.rng.choice(OPENINGS).replace(".", " .").split())

    def tell_belongings(self):
        for person, thing in zip(self.people, self.things, strict=True):
            self.say(person, "has", *thing.owned.split(), ".")

    def move(self, person=None):
        person = person or self.rng.choice(self.people)
        place = self.rng.choice([p for p in PLACES if p != self.place[person]])
        self.place[person] = place
        self.say(person, "goes", "to", "the", place, ".")

    def give(self, thing=None):
        if thing is None:
            giver = self.rng.choice([p for p in self.people if self.owned_by(p)])
            thing = self.rng.choice(self.owned_by(giver))
        giver = self.owner[thing.name]
        taker = next(p for p in self.people if p != giver)
        owned = self.owned_by(giver)
        noun = (thing.noun, "copy") if len(owned) == 1 else thing.noun
        self.say(giver, "gives", (self.her(giver), "agreement"), noun, "to", (taker, "copy"), ".")
        self.owner[thing.name] = taker

    # --- what follows from it ------------------------------------------------------------------
    def tell_owner(self, thing=None):
        thing = thing or self.rng.choice(self.things)
        owner = self.owner[thing.name]
        self.say("Now", "the", thing.noun, ("belong" if thing.two else "belongs", "agreement"))
        self.say("to", (owner, "possession"), ".")

    def tell_place(self, person=None):
        person = person or self.rng.choice(self.people)
        self.say("Where", "is", person, "?", (self.she(person), "agreement"), "is", "in", "the")
        self.say((self.place[person], "place"), ".")

    def tell_colour(self, thing=None):
        thing = thing or self.rng.choice(self.things)
        self.say("The", thing.noun, self.be(thing), (thing.colour, "colour"), ".")

    def tell_like(self):
        people = [p for p in self.people if len(self.owned_by(p)) == 1]
        if not people:
            return
        person = self.rng.choice(people)
        thing = self.owned_by(person)[0]
        self.say(person, "likes", (self.her(person), "agreement"))
        self.say((thing.colour, "colour"), (thing.noun, "possession"), ".")

    def tell(self):
        self.introduce()
        for _ in range(self.rng.randint(1, 2)):
            self.rng.choice((self.move, self.give))()
        endings = [self.tell_owner, self.tell_place, self.tell_colour, self.tell_like]
        for ending in self.rng.sample(endings, 4):
            ending()
        return self.story


def drill(rng):
    """A plain exercise in keeping facts apart: three or four facts of one kind, then a question
    about each.  Training begins with these."""
    teller = Teller(rng, held_out=False)
    teller.people = rng.sample(WOMEN + MEN, rng.randint(3, 4))
    n = len(teller.people)
    if rng.random() < 0.4:
        teller.place = dict(zip(teller.people, rng.sample(PLACES, n), strict=True))
        for person in teller.people:
            teller.say(person, "is", "in", "the", teller.place[person], ".")
        for person in rng.sample(teller.people, n):
            teller.tell_place(person)
        return teller.story
    names = rng.sample(THINGS, n)
    colours = rng.sample(COLOURS, n)
    teller.things = [Thing(t, c, rng.random() < 0.3) for t, c in zip(names, colours, strict=True)]
    if any(is_held_out(p, t) for p, t in zip(teller.people, names, strict=True)):
        return drill(rng)
    teller.owner = dict(zip(names, teller.people, strict=True))
    for person, thing in zip(teller.people, teller.things, strict=True):
        teller.say(person, "has", *thing.owned.split(), ".")
    tell = rng.choice((teller.tell_colour, teller.tell_owner))
    for thing in rng.sample(teller.things, n):
        tell(thing)
    return teller.story


def story(seed, held_out=False):
    """One story.

    Parameters
    ----------
    seed : int or random.Random
    held_out : bool
        Use only pairs of person and thing that never occur in training, instead of only the
        others.

    Returns
    -------
    Story
    """
    rng = seed if isinstance(seed, random.Random) else random.Random(seed)
    return Teller(rng, held_out).tell()


def stories(n, seed=0, held_out=False):
    """A list of `n` stories; the same seed gives the same list."""
    if n < 0:
        raise BadArgument("stories: n must not be negative.")
    rng = random.Random(seed)
    return [story(rng, held_out) for _ in range(n)]


def lexicon():
    """Every word that a story can hold, each once, as training text for a tokenizer."""
    rng = random.Random(0)
    words = set()
    for held_out in (False, True):
        for item in (story(rng, held_out) for _ in range(2000)):
            words.update(word.text.strip() for word in item.words)
    return sorted(words)
