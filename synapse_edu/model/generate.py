"""Generation: a prompt continued token by token, as text that can be printed while it comes."""

from collections import namedtuple
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from ..arguments import is_whole
from ..errors import BadArgument, TokenizerProblem
from .sampling import Sampler, log_probabilities, ranked

Candidate = namedtuple("Candidate", "id text logprob probability")


@dataclass(eq=False)
class Token:
    """One generated token.

    Attributes
    ----------
    id : int
    text : str
        What this token adds to the printed text.  A character whose bytes are spread over
        several tokens is in the text of the last of them.
    piece : bytes
        The token's own bytes.
    logits : ndarray of float32, shape (n_vocab,)
        What it was chosen from.  A token keeps them: 4 · n_vocab bytes each.
    logprob : float
        Natural logarithm of the model's own probability of it, before the sampler's filters.
    """

    id: int
    text: str
    piece: bytes
    logits: np.ndarray = field(repr=False)
    _tokenizer: object = field(repr=False, default=None)

    @property
    def logprob(self):
        return float(log_probabilities(self.logits)[self.id])

    @property
    def probability(self):
        return float(np.exp(self.logprob))

    def top(self, n=5):
        """The n most probable tokens in its place: a list of (id, text, logprob, probability)."""
        logs = log_probabilities(self.logits)  # (n_vocab,)
        return [
            Candidate(
                int(i),
                piece(self._tokenizer, i).decode("utf-8", "replace"),
                float(logs[i]),
                float(np.exp(logs[i])),
            )
            for i in ranked(self.logits, n)
        ]


class Generation:
    """An iterator of `Token`.

    Attributes
    ----------
    prompt_ids : list of int
    ids : list of int
        The ids generated so far.
    text : str
        The text generated so far.
    stop_reason : str or None
        None while it runs; then ``"end_token"``, ``"max_tokens"`` or ``"context_full"``.
    end_id : int or None
        The end token that stopped it.  It is not yielded.
    n_reused : int
        Ids of the prompt that the cache already held and that were not computed again.
    cache : KVCache
    """

    def __init__(self, model, prompt, max_tokens=None, sampler=None, cache=None, stop=True):
        if max_tokens is not None and (not is_whole(max_tokens) or max_tokens < 0):
            raise BadArgument(f"max_tokens must be a whole number or None, not {max_tokens!r}.")
        text = isinstance(prompt, str | bytes)
        try:
            self._tokenizer = model.tokenizer
        except TokenizerProblem:
            if text:
                raise
            self._tokenizer = None  # ids in, ids out: the texts stay empty
        if text:
            prompt = self._tokenizer.encode(prompt, add_special=True, parse_special=False)
        self.prompt_ids = model.check_ids(prompt)
        self.cache = model.new_cache() if cache is None else cache
        self.cache.check(model.config, model.numerics.cache, model.weights.fingerprint)
        self.cache.require(len(self.prompt_ids), after=0)  # it is rewound where they differ
        self.sampler = Sampler.greedy() if sampler is None else sampler
        if not (hasattr(self.sampler, "pick") and hasattr(self.sampler, "restart")):
            raise BadArgument(f"sampler must be a Sampler(seed=1) or the like, not {sampler!r}.")
        self.ids, self.text, self.stop_reason, self.end_id, self.n_reused = [], "", None, None, 0
        self._model, self._max_tokens = model, max_tokens
        if stop is True:
            self._stop = _end_ids(self._tokenizer)
        else:
            self._stop = frozenset(model.check_ids(list(stop))) if stop else frozenset()
        self._tokens = self._run()

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._tokens)

    def __repr__(self):
        return f"Generation({len(self.ids)} tokens, stop_reason={self.stop_reason!r})"

    def _run(self):
        """Give each token its text, and hold those back that end within a character."""
        if self._tokenizer is None:
            for token in self._choose():
                yield from self._release([token])
            return
        stream, held = self._tokenizer.new_stream(continuing=True), []
        for token in self._choose():
            token.text = stream.push(token.id) if self._known(token.id) else ""
            held.append(token)
            if not stream.pending:
                yield from self._release(held)
        if held:
            held[-1].text += stream.flush()
            yield from self._release(held)

    def _known(self, id):
        """Whether the vocabulary names this id; some models have spare rows beyond it."""
        return id < self._tokenizer.vocabulary.n_tokens

    def _release(self, held):
        while held:
            token = held.pop(0)
            self.ids.append(token.id)
            self.text += token.text
            yield token

    def _choose(self):
        """Tokens as the sampler picks them, each evaluated only when the next is asked for."""
        if self._max_tokens == 0:
            self.stop_reason = "max_tokens"
            return
        logits = self._begin()  # (n_vocab,)
        for done in count(1):
            id = self.sampler.pick(logits)
            if id in self._stop:
                self.stop_reason, self.end_id = "end_token", id
                return
            yield Token(id, "", piece(self._tokenizer, id), logits, self._tokenizer)
            if done == self._max_tokens:
                self.stop_reason = "max_tokens"
                return
            if self.cache.n >= self.cache.n_ctx:
                self.stop_reason = "context_full"
                return
            logits = self._model.decode(id, self.cache)  # (n_vocab,)

    def _begin(self):
        """Evaluate what the cache does not hold of the prompt, at least its last id."""
        self.sampler.restart()
        known = self.cache.ids[: self.cache.n_clean]
        same = 0
        for a, b in zip(known, self.prompt_ids[:-1], strict=False):
            if a != b:
                break
            same += 1
        self.n_reused = same
        self.cache.truncate(same)
        return self._model.prefill(self.prompt_ids[same:], self.cache)


def piece(tokenizer, id):
    """Bytes of a token; none without a vocabulary, or for a spare row beyond it."""
    if tokenizer is None or id >= tokenizer.vocabulary.n_tokens:
        return b""
    return tokenizer.piece(int(id), special=True)


def _end_ids(tokenizer):
    """Ids that end a generation."""
    return frozenset() if tokenizer is None else tokenizer.vocabulary.eog
