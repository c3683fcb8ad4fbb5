"""Answers that a model in training gives to notes: drawn, packed into a batch, and scored."""

from dataclasses import dataclass

import numpy as np

from ..errors import BadArgument
from ..model import ragged
from ..model.batched import Transformer
from ..model.params import ModelArgs
from .backward import forward
from .differentiate import official
from .judge import Judged, judge

F32 = np.float32
LONGEST = 64  # tokens of an answer: eight sentences are about 55


@dataclass(frozen=True)
class Answer:
    """One answer.

    Attributes
    ----------
    notes, text : str
    prompt, ids : tuple of int
        Ids of the notes after their begin token, and of the answer; with the end token, unless
        the answer was cut off at `LONGEST` tokens.
    judged : Judged
    """

    notes: str
    text: str
    prompt: tuple
    ids: tuple
    judged: Judged


@dataclass(frozen=True)
class Batch:
    """Rows of prompt and answer, filled up at the end.

    Attributes
    ----------
    tokens, targets : ndarray of int, shape (B, T)
    weights : ndarray of float32, shape (B, T)
        1 where the target belongs to the answer.
    """

    tokens: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    @property
    def starts(self):
        """One document a row: (B, T) of 0."""
        return np.zeros_like(self.tokens)

    @classmethod
    def of(cls, answers):
        if not answers:
            raise BadArgument("A batch needs at least one answer.")
        n = max(len(a.prompt) + len(a.ids) for a in answers)
        rows, weights = np.zeros((len(answers), n), np.int64), np.zeros((len(answers), n), F32)
        for row, a in enumerate(answers):
            n_prompt, n_all = len(a.prompt), len(a.prompt) + len(a.ids)
            rows[row, :n_all], weights[row, n_prompt:n_all] = [*a.prompt, *a.ids], 1
        return cls(rows[:, :-1], rows[:, 1:], weights[:, 1:])


def log_shares(logits):
    """Log-probabilities of logits (N, V), row by row."""
    logits = logits - logits.max(-1, keepdims=True)  # (N, V)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def answer_sums(logits, batch):
    """Log-probability of each row's whole answer: the sum over its tokens, float64 (B,)."""
    rows = np.arange(batch.targets.size)  # (B·T,)
    each = log_shares(logits)[rows, batch.targets.ravel()].reshape(batch.targets.shape)  # (B, T)
    return (each.astype(np.float64) * batch.weights).sum(-1)


def log_probabilities(p, config, answers):
    """log π(answer | notes) of each answer, in nats: float64 (n,)."""
    found = []
    for start in range(0, len(answers), 32):
        batch = Batch.of(answers[start : start + 32])
        found.append(answer_sums(forward(p, config, batch.tokens, batch.starts)[0], batch))
    return np.concatenate(found)


def draw(p, config, tokenizer, notes, n=8, seed=0, temperature=1.0):
    """Let the model answer each of some notes `n` times.

    Parameters
    ----------
    p : dict of str → ndarray of float32
    config : Config
    tokenizer : Tokenizer
    notes : list of str
    n, seed : int
    temperature : float
        0 takes the likeliest token each time.

    Returns
    -------
    list of list of Answer
        One list for each of the notes.
    """
    end = tokenizer.encode("")[0]  # the begin token of the next document ends this one
    prompts = [tokenizer.encode(text) for text in notes]
    size = {"max_batch_size": n * len(notes), "max_seq_len": max(map(len, prompts)) + LONGEST}
    transformer = Transformer(ModelArgs.from_config(config, **size), official(p))
    drawn = ragged.generate(
        transformer, [x for x in prompts for _ in range(n)], LONGEST, (end,), temperature, 1.0, seed
    )
    answers = []
    for i, ids in enumerate(drawn):
        text = tokenizer.decode(ids)
        ids = tuple(ids) + ((end,) if len(ids) < LONGEST else ())
        told = notes[i // n]
        answers.append(Answer(told, text, tuple(prompts[i // n]), ids, judge(told, text)))
    return [answers[i : i + n] for i in range(0, len(answers), n)]
