"""Understanding, measured: how many of the words that the rules determine does a model predict?

A word counts as right if each of its tokens was the model's likeliest next token.  Chance is far
away: eight colours, ten places, sixteen names.
"""

import numpy as np

from . import storyworld
from .backward import loss_and_gradients
from .curriculum import encode_story
from .patching import run_batch, silence

F32 = np.float32


def judge(story, ids, word, best):
    """(kind, whether it was right) of each checked word of a story.

    Parameters
    ----------
    story : Story
    ids, word : list of int, length n
        As `curriculum.encode_story` gives them.
    best : sequence of int, length n − 1 or more
        The likeliest token after each one.
    """
    spans = story.spans()
    seen, wrong = set(), set()
    for t in range(1, len(ids)):
        seen.add(word[t])
        if best[t - 1] != ids[t]:
            wrong.add(word[t])
    return [(kind, i in seen and i not in wrong) for i, (_, _, kind) in enumerate(spans)]


def shares(judged):
    """Share of right words, 0 to 1: of ``all``, and of each kind (NaN where there is none)."""
    rows = {kind: [right for k, right in judged if k == kind] for kind in storyworld.KINDS}
    rows = {"all": [right for _, right in judged]} | rows
    return {kind: float(np.mean(right)) if right else float("nan") for kind, right in rows.items()}


def scores(p, config, tokenizer, stories):
    """How well parameters in training predict some stories.

    Parameters
    ----------
    p : dict of str → ndarray of float32
    config : Config
    tokenizer : Tokenizer
    stories : list of Story

    Returns
    -------
    dict
        ``loss`` in nats a token; ``all`` and each kind: share of words right, 0 to 1.
    """
    losses, judged = [], []
    for start in range(0, len(stories), 32):
        part = stories[start : start + 32]
        rows = [encode_story(tokenizer, story) for story in part]
        n_pos = max(len(ids) for ids, _ in rows)
        tokens, weights = np.zeros((len(rows), n_pos), np.int64), np.zeros((len(rows), n_pos), F32)
        for row, (ids, _) in enumerate(rows):
            tokens[row, : len(ids)], weights[row, : len(ids)] = ids, 1
        starts = np.zeros_like(tokens[:, :-1])  # (B, T): one story a row
        loss, best = loss_and_gradients(
            p, config, tokens[:, :-1], tokens[:, 1:], weights[:, 1:], starts, gradients=False
        )
        losses.append(loss)
        for story, (ids, word), row in zip(part, rows, best, strict=True):
            judged += judge(story, ids, word, row)
    return {"loss": float(np.mean(losses)), **shares(judged)}


def rule_scores(model, stories, change=None):
    """How well a loaded model predicts the rule-determined words of some stories.

    Parameters
    ----------
    model : Llama
    stories : list of Story
    change : function, optional
        As `patching.run_batch` takes it, for instance ``silence([(1, 0)])``.

    Returns
    -------
    dict of str → float
        ``all`` and each kind: share of words right, 0 to 1.
    """
    judged = []
    for story in stories:
        ids, word = encode_story(model.tokenizer, story)
        judged += judge(story, ids, word, run_batch(model, ids, change).argmax(-1))
    return shares(judged)


def scores_without(model, stories):
    """The rule scores with each head silenced in turn.

    Returns
    -------
    dict of str → ndarray of float64, shape (n_layer, n_head)
        For ``all`` and each kind, the share of words right without that head.
    """
    shape = model.config.n_layer, model.config.n_head
    found = {kind: np.zeros(shape) for kind in ("all", *storyworld.KINDS)}  # (n_layer, n_head)
    for head in np.ndindex(shape):
        for kind, share in rule_scores(model, stories, silence([head])).items():
            found[kind][head] = share
    return found
