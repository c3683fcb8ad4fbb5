"""Longer documents from stories: filler about other people between the sentences."""

import random

from .cast import MEN, OPENINGS, PLACES, WOMEN
from .storyworld import Story, Word, story


def filler(rng, people, weather=0.3):
    """A sentence that says nothing about anybody else: the weather, or where one of `people` goes.

    `weather` is the share of the first kind.
    """
    if rng.random() < weather:
        return rng.choice(OPENINGS)
    return f"{rng.choice(people)} goes to the {rng.choice(PLACES)}."


def words_of(sentence):
    """The words of a filler sentence, each with its leading space; none is checked."""
    return [Word(" " + word) for word in sentence[:-1].split()] + [Word(".")]


def lengthened(seed, n_words, held_out=False, weather=0.3):
    """A story with filler at random places, as many sentences as fit into `n_words` words.

    In the story world's vocabulary a word is a token, and so is a full stop.

    Parameters
    ----------
    seed, held_out
        As for `storyworld.story`.
    n_words : int
        A story that is longer by itself stays as it is.
    weather : float
        Share of the filler that is about the weather.

    Returns
    -------
    Story
    """
    rng = seed if isinstance(seed, random.Random) else random.Random(seed)
    told = story(rng, held_out)
    inside = {word.text.strip() for word in told.words}
    others = rng.sample([name for name in WOMEN + MEN if name not in inside], 4)
    parts, n = sentences_of(told), len(told.words)
    while True:
        more = words_of(filler(rng, others, weather))
        n += len(more)
        if n > n_words:
            break
        parts.insert(rng.randint(1, len(parts) - 1), more)
    return Story([word for part in parts for word in part])


def sentences_of(told):
    """A story's words, a list for each sentence; a question and its answer stay together."""
    parts = [[]]
    for word in told.words:
        parts[-1].append(word)
        if word.text == ".":
            parts.append([])
    return parts[:-1]
