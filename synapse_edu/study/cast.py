"""Who and what can stand in a story, and which pairs of person and thing are kept for the test."""

from dataclasses import dataclass

WOMEN = ("Mia", "Ella", "Lucy", "Anna", "Rosa", "Nina", "Sara", "Zoe")
MEN = ("Tom", "Ben", "Max", "Leo", "Sam", "Finn", "Noah", "Hugo")
THINGS = (
    "kite", "ball", "boat", "cup", "book", "lamp", "drum", "hat",
    "coat", "bell", "ring", "map", "flute", "basket", "wagon", "clock",
)  # fmt: skip
COLOURS = ("red", "blue", "green", "white", "black", "brown", "yellow", "pink")
PLACES = (
    "park", "garden", "kitchen", "school", "forest", "market", "barn", "tower", "library", "harbour"
)  # fmt: skip
OPENINGS = (
    "It is a warm day.",
    "The morning is quiet.",
    "The sun is up.",
    "It is evening.",
    "Rain falls on the town.",
    "The wind is cold.",
    "It is early.",
    "Snow lies on the hills.",
)


@dataclass
class Thing:
    """One thing, or two of a kind."""

    name: str
    colour: str
    two: bool

    @property
    def noun(self):
        return self.name + "s" if self.two else self.name

    @property
    def owned(self):
        """As it is first told: "a red kite", "two red kites"."""
        return f"{'two' if self.two else 'a'} {self.colour} {self.noun}"


def is_held_out(person, thing):
    """Whether this pair is kept for the test: one in five, spread over all people and things."""
    names = WOMEN + MEN
    return (names.index(person) + 2 * THINGS.index(thing)) % 5 == 0
