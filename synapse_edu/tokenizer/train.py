"""Train a small byte-level BPE from a text.

Byte-pair encoding (Gage, 1994; Sennrich et al., 2016) starts from single bytes.  It joins the
most frequent pair of neighbours into a new token, again and again.  The order of these joins is
the ranking by which text is later merged.

>>> learned = train("low lower lowest low", n_merges=3)
>>> [line.decode() for line in learned["tokenizer.ggml.merges"]]
['l o', 'lo w', 'Ġ low']
"""

from collections import Counter

import numpy as np

from ..errors import BadArgument
from .alphabet import CHARACTERS, to_alphabet
from .families import family_of
from .pretokenize import Splitter

END = "<|endoftext|>"
NORMAL, CONTROL = 1, 3


def train(text, n_merges, pre="smollm", special=(END,)):
    """Learn up to `n_merges` merges.

    Parameters
    ----------
    text : str
    n_merges : int
        Fewer are learned when no pair occurs twice any more.
    pre : str
        Name of the pre-tokenizer that cuts text into words; no merge crosses a word's edge.
    special : tuple of str
        Control tokens, which get the first ids; the first of them begins and ends a sequence.

    Returns
    -------
    dict
        Metadata as a GGUF file holds it; ``Vocabulary.from_metadata`` takes it as it is.
    """
    if n_merges < 0:
        raise BadArgument("train: n_merges must not be negative.")
    words = Counter(Splitter(family_of(pre).split).split(text))
    # each distinct word once, as a list of symbols, with how often it occurs
    spelled = [(to_alphabet(word.encode("utf-8")), n) for word, n in sorted(words.items())]
    merges = []
    while len(merges) < n_merges:
        best = most_frequent_pair(spelled)
        if best is None:
            break
        merges.append(best)
        for symbols, _ in spelled:
            join(symbols, *best)
    return metadata(merges, pre, special)


def most_frequent_pair(spelled):
    """The pair of neighbours that occurs most often, at least twice; ties go to the one that
    sorts first, so that the result does not depend on chance.  None if there is none."""
    counts = Counter()
    for symbols, n in spelled:
        for pair in zip(symbols, symbols[1:], strict=False):
            counts[pair] += n
    if not counts:
        return None
    pair, n = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return pair if n > 1 else None


def join(symbols, left, right):
    """Replace every neighbouring `left`, `right` in the list by their union, in place.

    >>> symbols = ["a", "b", "a", "b"]
    >>> join(symbols, "a", "b")
    >>> symbols
    ['ab', 'ab']
    """
    i = 0
    while i < len(symbols) - 1:
        if symbols[i] == left and symbols[i + 1] == right:
            symbols[i : i + 2] = [left + right]
        i += 1


def metadata(merges, pre, special):
    """A vocabulary of the special tokens, the 256 bytes and one token a merge."""
    tokens = [*special, *CHARACTERS, *(left + right for left, right in merges)]
    types = [CONTROL] * len(special) + [NORMAL] * (len(tokens) - len(special))
    found = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": [token.encode("utf-8") for token in tokens],
        "tokenizer.ggml.token_type": np.array(types, np.int32),  # (n_tokens,)
        "tokenizer.ggml.merges": [f"{left} {right}".encode() for left, right in merges],
    }
    if special:
        found["tokenizer.ggml.bos_token_id"] = np.uint32(0)
        found["tokenizer.ggml.eos_token_id"] = np.uint32(0)
        found["tokenizer.ggml.add_bos_token"] = np.bool_(True)
    return found
