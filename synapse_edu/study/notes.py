"""Two more kinds of story: notes that leave one place open, and stories of an exchange."""

import random

from .storyworld import Teller


class _NoteTaker(Teller):
    def tell(self):
        told = self.rng.choice(self.people)
        self.tell_belongings()
        self.say(told, "is", "in", "the", self.place[told], ".")
        for _ in range(2):
            self.move(told) if self.rng.random() < 0.5 else self.give()
        return self.story


class _Exchange(Teller):
    def tell(self, weather):
        if weather:
            self.tell_weather()
        self.tell_belongings()
        for thing in self.rng.sample(self.things, 2):
            self.give(thing)
        self.tell_like()
        return self.story


def notes(seed, held_out=False):
    """The told half of a story: who has what, where one person is, and two events.

    Nobody says where the other person is, so an answer that knows it has invented it.

    Parameters
    ----------
    seed, held_out
        As for `storyworld.story`.

    Returns
    -------
    Story
    """
    rng = seed if isinstance(seed, random.Random) else random.Random(seed)
    return _NoteTaker(rng, held_out).tell()


def exchange(seed, held_out=False, weather=True):
    """A story in which two people give each other what they have, and one likes what they got.

    Which thing that is, and its colour, follow only from two sentences together.

    Parameters
    ----------
    seed, held_out
        As for `storyworld.story`.
    weather : bool
        Begin with a sentence about the day, which tells nothing about the people.

    Returns
    -------
    Story
    """
    rng = seed if isinstance(seed, random.Random) else random.Random(seed)
    return _Exchange(rng, held_out).tell(weather)
