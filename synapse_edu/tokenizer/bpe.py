"""Byte-level BPE: words → ids, merging the pair of lowest rank first.

A word's bytes become characters of the byte alphabet, neighbours merge by the vocabulary's ranks,
and each symbol that is left is looked up.  Nothing here asks whether a symbol is a token before
the end: a merge may pass through texts that are not.  A symbol without a token falls back to its
single bytes, and a byte without a token is dropped, as llama.cpp does.
"""

from .alphabet import SYMBOLS
from .merging import merge
from .pretokenize import Splitter
from .utf8 import decode_lenient, encode_lenient

CACHE_WORDS = 50_000
CACHE_LENGTH = 40
"""The cache keeps at most this many words, none longer than this many characters (some 10 MB)."""


class BytePairEncoder:
    """Encodes stretches of text that hold no special token.

    Parameters
    ----------
    vocabulary : Vocabulary
        Of kind "bpe".
    """

    glue = b" "

    def __init__(self, vocabulary):
        self.vocabulary = vocabulary
        self.ranks = vocabulary.ranks
        self.splitter = Splitter(vocabulary.family.split)
        self._cache = {}

    def encode(self, raw, prefix=False):
        """Ids of the bytes `raw`; BPE never puts a space in front, so `prefix` is not asked."""
        words = self.splitter.split(decode_lenient(raw))
        known = self._cache
        new = {word: self.encode_word(word) for word in set(words).difference(known)}
        out = []
        for word in words:
            out += new[word] if word in new else known[word]
        self._remember(new)
        return out

    def encode_word(self, word, log=None):
        """Ids of one word; `log` receives the merges (see `merging.merge`).

        >>> BytePairEncoder(vocabulary).encode_word(" the")      # doctest: +SKIP
        [262]
        """
        symbols = self.symbols(word)
        whole = self.whole_word(symbols)
        if whole is not None:
            return (whole,)
        ids = []
        for symbol in merge(symbols, self.ranks, self.glue, log):
            ids += self.lookup(symbol)
        return tuple(ids)

    def symbols(self, word):
        """The word's bytes, each as its character of the byte alphabet (in UTF-8)."""
        return [SYMBOLS[byte] for byte in encode_lenient(word)]

    def whole_word(self, symbols):
        """Id of a word that is itself a token, in families that ignore merges for those."""
        if not self.vocabulary.family.ignore_merges:
            return None
        return self.vocabulary.ids.get(b"".join(symbols))

    def lookup(self, symbol):
        """Ids of a symbol that merging left: one, or those of its bytes that have a token."""
        ids = self.vocabulary.ids
        if symbol in ids:
            return [ids[symbol]]
        single = (ids.get(symbol[i : i + 1]) for i in range(len(symbol)))
        return [token for token in single if token is not None]

    def _remember(self, new):
        short = {word: ids for word, ids in new.items() if len(word) <= CACHE_LENGTH}
        if len(self._cache) + len(short) > CACHE_WORDS:
            self._cache = {}
        if len(short) <= CACHE_WORDS:
            self._cache.update(short)
