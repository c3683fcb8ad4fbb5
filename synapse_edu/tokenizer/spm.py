"""SPM: text → ids, merging the pair whose text has the highest score first.

There are no words: a space is a character (U+2581), and merges may run over it.  Symbols start as
characters, cut by the lead byte alone.  A symbol that is no token in the end falls back to byte
tokens `<0xHH>`.

A text of a million characters in one heap would be slow, so it is cut first wherever no merge can
ever cross: between two symbols that stand side by side in no token's text.  That changes no id,
because a merge across the cut would have to make a token that holds the two.
"""

import re

import numpy as np

from ..errors import TokenizerProblem
from .merging import merge

SPACE = "▁".encode()
_SYMBOL = re.compile(rb"(?s)[\xc0-\xdf].?|[\xe0-\xef].{0,2}|[\xf0-\xff].{0,3}|.")

CACHE_PIECES = 50_000
CACHE_LENGTH = 60
"""The cache keeps at most this many pieces, none longer than this many bytes (some 10 MB)."""


def characters(raw):
    """Symbols of `raw`: the lead byte tells the length, and followers are taken unseen.

    >>> characters(b"a\\xe2\\x96\\x81\\xe2b")
    [b'a', b'\\xe2\\x96\\x81', b'\\xe2b']
    """
    return _SYMBOL.findall(raw)


def ranks_of_scores(tokens, scores):
    """Token text → rank, 0 for the highest score; equal scores share a rank.

    >>> ranks_of_scores([b"a", b"b", b"c"], np.float32([-1, 0, -1]))
    {b'a': 1, b'b': 0, b'c': 1}
    """
    _, inverse = np.unique(-scores, return_inverse=True)  # (n,)
    return dict(zip(tokens, inverse.tolist(), strict=True))


def neighbours_in(tokens):
    """All pairs of symbols that stand side by side in some token's text."""
    pairs = set()
    for text in tokens:
        symbols = characters(text)
        pairs.update(zip(symbols, symbols[1:], strict=False))
    return pairs


class ScoreEncoder:
    """Encodes stretches of text that hold no special token.

    Parameters
    ----------
    vocabulary : Vocabulary
        Of kind "spm".
    """

    glue = b""

    def __init__(self, vocabulary):
        self.vocabulary = vocabulary
        self.ranks = ranks_of_scores(vocabulary.tokens, vocabulary.scores)
        self.neighbours = neighbours_in(vocabulary.tokens)
        self._cache = {}

    def encode(self, raw, prefix=False):
        """Ids of the bytes `raw`; `prefix` puts a space in front first."""
        out = []
        for piece in self.pieces(self.escape(raw, prefix)):
            ids = self._cache.get(piece)
            if ids is None:
                ids = self.encode_piece(piece)
                self._remember(piece, ids)
            out += ids
        return out

    def escape(self, raw, prefix):
        """The text as merging sees it: the space in front, and every space a U+2581."""
        return (b" " + raw if prefix else raw).replace(b" ", SPACE)

    def pieces(self, escaped):
        """The text cut wherever no merge can cross, in order."""
        symbols = characters(escaped)
        possible = self.neighbours
        pairs = zip(symbols, symbols[1:], strict=False)
        cuts = [at for at, pair in enumerate(pairs, 1) if pair not in possible]
        starts, ends = [0, *cuts], [*cuts, len(symbols)]
        join = b"".join
        return [join(symbols[a:b]) for a, b in zip(starts, ends, strict=True)]

    def encode_piece(self, piece, log=None):
        """Ids of one piece; `log` receives the merges (see `merging.merge`)."""
        ids = []
        for symbol in merge(characters(piece), self.ranks, self.glue, log):
            ids += self.lookup(symbol)
        return tuple(ids)

    def lookup(self, symbol):
        """Ids of a symbol that merging left: its own, or one byte token for each byte."""
        ids = self.vocabulary.ids
        if symbol in ids:
            return [ids[symbol]]
        return [self._byte_token(byte) for byte in symbol]

    def _byte_token(self, byte):
        ids = self.vocabulary.ids
        token = ids.get(b"<0x%02X>" % byte, ids.get(bytes([byte])))
        if token is None:
            raise TokenizerProblem(
                f"The vocabulary has no token for the byte 0x{byte:02X}: neither '<0x{byte:02X}>' "
                f"nor the byte itself. This text cannot be encoded with it."
            )
        return token

    def _remember(self, piece, ids):
        if len(piece) > CACHE_LENGTH:
            return
        if len(self._cache) >= CACHE_PIECES:
            self._cache.clear()
        self._cache[piece] = ids
