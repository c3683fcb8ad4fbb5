"""Unit: one stretch of text on its way to ids, with the merges that it went through."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..errors import TokenizerProblem
from .alphabet import BYTES
from .spm import SPACE
from .vocabulary import Vocabulary


class Part(NamedTuple):
    """A symbol at some moment.

    ``symbol`` is its token text, ``raw`` the bytes that it stands for, ``ids`` what it would give
    now, ``how`` ("token", "bytes", "dropped") says by which rule.
    """

    symbol: bytes
    raw: bytes
    ids: tuple[int, ...]
    how: str


class Candidate(NamedTuple):
    """A pair of neighbours that can merge; the lowest (rank, position) goes first."""

    rank: int
    position: int
    left: bytes
    right: bytes


@dataclass(frozen=True, eq=False)
class Unit:
    """A stretch of text that merges on its own.

    Attributes
    ----------
    start, end : int
        Bytes of the text.
    kind : {"begin", "special", "word", "stretch", "end"}
    reason : str
        Why the stretch ends where it does, in words.
    symbols : tuple of bytes
        Before the first merge; one, the token's text, for a special token.
    merges : tuple of (int, int, int)
        Positions of the left and the right symbol, and the rank, in order.
    whole, token : int or None
        Id of a word taken whole; id of a special token.
    """

    vocabulary: Vocabulary
    start: int
    end: int
    kind: str
    reason: str
    symbols: tuple
    merges: tuple = ()
    whole: int | None = None
    token: int | None = None
    encoder: object = None

    def state(self, k):
        """(position, symbol) of what is left after `k` merges."""
        text = list(self.symbols)
        for left, right, _ in self.merges[:k]:
            text[left] += text[right]
            text[right] = None
        return [(at, symbol) for at, symbol in enumerate(text) if symbol is not None]

    def candidates(self, k):
        """All pairs that could merge after `k` merges, the one that does first."""
        state = self.state(k)
        found = []
        for (at, left), (_, right) in zip(state, state[1:], strict=False):
            rank = self.encoder.ranks.get(left + self.encoder.glue + right)
            if rank is not None:
                found.append(Candidate(rank, at, left, right))
        return sorted(found)

    def priority(self, candidate):
        """A candidate's rank (BPE) or the score of the merged text (SPM), in words."""
        if self.vocabulary.kind == "bpe":
            return f"rank {candidate.rank}"
        token = self.vocabulary.ids[candidate.left + candidate.right]
        return f"score {self.vocabulary.scores[token]:g}"

    @cached_property
    def _final(self):
        return self._parts_of(symbol for _, symbol in self.state(len(self.merges)))

    def parts(self, k=None):
        """The Parts after `k` merges, by default after all."""
        if self.token is not None:
            return [Part(self.symbols[0], self.symbols[0], (self.token,), "token")]
        if self.whole is not None:
            text = b"".join(self.symbols)
            return [Part(text, self.as_bytes(text), (self.whole,), "token")]
        if k is None or k == len(self.merges):
            return self._final
        return self._parts_of(symbol for _, symbol in self.state(k))

    def _parts_of(self, symbols):
        return [
            Part(symbol, self.as_bytes(symbol), tuple(ids), self._how(symbol, ids))
            for symbol in symbols
            for ids in [self._ids(symbol)]
        ]

    def _ids(self, symbol):
        """What the symbol would give; nothing if it only passes by and has no byte tokens."""
        try:
            return self.encoder.lookup(symbol)
        except TokenizerProblem:
            return []

    def _how(self, symbol, ids):
        if symbol in self.vocabulary.ids:
            return "token"
        return "bytes" if len(ids) == len(symbol) else "dropped"

    def as_bytes(self, symbol):
        """The bytes of the text that a symbol stands for."""
        if self.vocabulary.kind == "spm":
            return symbol.replace(SPACE, b" ")
        return bytes(BYTES[character] for character in symbol.decode("utf-8"))

    def raw(self):
        """The bytes of the stretch as merging sees them (U+FFFD for what was no character)."""
        return self.as_bytes(b"".join(self.symbols))
