"""What a step of training sees: random sequences that repeat, drills, and stories.

A batch is drawn from (seed, step) alone, so that a run which is interrupted and resumed sees the
same batches as one that is not.
"""

import random

import numpy as np

from . import storyworld

F32 = np.float32
BOS = 0


def encode_story(tokenizer, story):
    """Ids of a story after its begin token, and for each id the number of its checked word.

    A vocabulary that asks for no begin token gets none.

    Returns
    -------
    ids : list of int
    word : list of int
        −1 for a token that belongs to no checked word.
    """
    ids = tokenizer.encode(story.text, add_special=False)
    word, spans, at = [], story.spans(), 0
    for token in ids:
        end = at + len(tokenizer.piece(token))
        word.append(next((i for i, (a, b, _) in enumerate(spans) if at >= a and end <= b), -1))
        at = end
    begin = tokenizer.encode("")
    return begin + ids, [-1] * len(begin) + word


def story_document(tokenizer, rng, recipe, drills):
    tell = storyworld.drill if rng.random() < drills else storyworld.story
    return document(tokenizer, tell(rng), recipe.rule_weight)


def document(tokenizer, story, rule_weight):
    """A story's ids, and their weights: `rule_weight` where the rules determine a word, else 1."""
    ids, word = encode_story(tokenizer, story)
    return ids, [rule_weight if w >= 0 else 1.0 for w in word]


def repeat_document(rng, n_vocab):
    """A random sequence that repeats; only the repetition can be predicted, so only it counts."""
    part = [rng.randrange(257, n_vocab) for _ in range(rng.randint(6, 24))]
    n = rng.randint(2, 3)
    return [BOS, *(part * n)], [0.0] * (1 + len(part)) + [1.0] * (len(part) * (n - 1))


def batch(tokenizer, config, recipe, step):
    """The batch of one step, packed: tokens, targets, weights and starts, each (B, T)."""
    rng = random.Random(f"{recipe.seed}/{step}")
    share = max(recipe.least_repeat, 0.7 * (1 - step / recipe.n_repeat) if recipe.n_repeat else 0)
    drills = max(recipe.least_drill, 1 - step / recipe.n_drill if recipe.n_drill else 0)

    def draw():
        if rng.random() < share:
            return repeat_document(rng, config.n_vocab)
        return story_document(tokenizer, rng, recipe, drills)

    return pack(draw, recipe.n_batch, recipe.n_pos)


def pack(draw, n_batch, n_pos):
    """Documents one after another in rows; the last of a row is cut off.

    Parameters
    ----------
    draw : function
        Returns a document: its ids, and the weight of each in the loss.
    n_batch, n_pos : int

    Returns
    -------
    tokens, targets, weights, starts : ndarray, shape (n_batch, n_pos) each
    """
    shape = (n_batch, n_pos + 1)
    tokens, weights = np.zeros(shape, np.int64), np.zeros(shape, F32)  # (B, T + 1) each
    starts = np.zeros(shape, np.int64)  # (B, T + 1)
    for row in range(n_batch):
        at = 0
        while at < shape[1]:
            ids, weight = draw()
            n = min(len(ids), shape[1] - at)
            tokens[row, at : at + n], weights[row, at : at + n] = ids[:n], weight[:n]
            starts[row, at : at + n] = at
            at += len(ids)
    # the target of a document's last token is the next one's begin token: "the end"
    return tokens[:, :-1], tokens[:, 1:], weights[:, 1:], starts[:, :-1]
