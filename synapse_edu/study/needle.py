"""Long context, tested three ways: one fact in much other text, two facts that must be combined.

A test case is a text of a wanted length that ends just before a word, and that word.  The text
begins with the model's begin token.  Filler sentences tell of other people, so that none of them
answers the question.

- ``retrieve``: "Mia has a red kite." somewhere; at the end "The kite is" → red.
- ``own``: the same fact; at the end "Mia likes her" → red.
- ``combine``: "Mia has a red kite. Tom has a green cup."; later they give each other what they
  have; at the end "Mia likes her" → green: whose it is now and what colour it was stand in
  different sentences.
"""

import random
from dataclasses import dataclass

import numpy as np

from ..errors import BadArgument
from .backward import forward
from .cast import COLOURS, MEN, THINGS, WOMEN
from .lengthen import filler

KINDS = ("retrieve", "own", "combine")


@dataclass(frozen=True)
class Case:
    """One test: ids up to the asked word, the ids that would be right, and what else was told.

    Attributes
    ----------
    text : str
    ids : tuple of int
    answer, other : int
        Id of the right colour, and of the other colour that the text tells.
    """

    text: str
    ids: tuple
    answer: int
    other: int


def case(tokenizer, kind, n_tokens, depth=0.5, seed=0):
    """One test case.

    Parameters
    ----------
    tokenizer : Tokenizer
    kind : {"retrieve", "own", "combine"}
    n_tokens : int
        Length of the prompt; it comes out up to seven tokens shorter.
    depth : float
        Where the facts stand: 0 at the beginning, 1 just before the question.
    seed : int

    Returns
    -------
    Case
    """
    if kind not in KINDS or not 0 <= depth <= 1:
        raise BadArgument(f"case: choose one of {', '.join(KINDS)}, and a depth from 0 to 1.")
    rng = random.Random(f"{seed}/{kind}/{n_tokens}")
    women, men = rng.sample(WOMEN, 3), rng.sample(MEN, 3)
    her, him = women[0], men[0]
    mine, yours = rng.sample(THINGS, 2)
    red, green = rng.sample(COLOURS, 2)
    facts = [f"{her} has a {red} {mine}.", f"{him} has a {green} {yours}."]
    if kind == "combine":
        facts += [f"{her} gives her {mine} to {him}.", f"{him} gives his {yours} to {her}."]
    question = f"The {mine} is" if kind == "retrieve" else f"{her} likes her"
    answer, other = (green, red) if kind == "combine" else (red, green)

    def size(lines):
        return len(tokenizer.encode(" ".join(lines)))

    room = n_tokens - size([*facts, question])
    if room < 0:
        raise BadArgument(f"case: {kind} needs {n_tokens - room} tokens; {n_tokens} are too few.")
    others, used = [], 0
    while True:
        line = filler(rng, women[1:] + men[1:])
        used += size([line]) - 1
        if used > room:
            break
        others.append(line)
    at = round(depth * len(others))
    text = " ".join([*others[:at], *facts, *others[at:], question])
    right, wrong = (tokenizer.encode(f" {word}", add_special=False)[0] for word in (answer, other))
    return Case(text, tuple(tokenizer.encode(text)), right, wrong)


def solved(tokenizer, kind, n_tokens, depth=0.5, seed=0):
    """The ids of a test case with its answer behind them, as they must not stand in training."""
    one = case(tokenizer, kind, n_tokens, depth, seed)
    return [*one.ids, one.answer]


def accuracy(p, config, tokenizer, kind, n_tokens, depths=(0.1, 0.5, 0.9), n=20, seed=0):
    """Share of cases in which the right colour is the model's likeliest next token.

    Parameters
    ----------
    p : dict of str → ndarray of float32
    config : Config
    kind, n_tokens
        As `case` takes them.
    depths : sequence of float
    n, seed : int
        Cases at each depth.

    Returns
    -------
    ndarray of float64, shape (len(depths),)
    """
    found = []
    for depth in depths:
        cases = [case(tokenizer, kind, n_tokens, depth, f"{seed}/{i}") for i in range(n)]
        best = predictions(p, config, [c.ids for c in cases])
        found.append(np.mean([b == c.answer for b, c in zip(best, cases, strict=True)]))
    return np.array(found)


def predictions(p, config, rows, at_once=4096):
    """The likeliest next token after each of some rows of ids."""
    best = []
    n_pos = max(map(len, rows))
    n_batch = max(1, at_once // n_pos)
    for start in range(0, len(rows), n_batch):
        part = rows[start : start + n_batch]
        tokens = np.zeros((len(part), n_pos), np.int64)  # (B, T)
        for i, row in enumerate(part):
            tokens[i, : len(row)] = row
        logits, _ = forward(p, config, tokens, np.zeros_like(tokens))
        logits = logits.reshape(*tokens.shape, -1)  # (B, T, V)
        best += [int(logits[i, len(row) - 1].argmax()) for i, row in enumerate(part)]
    return best
