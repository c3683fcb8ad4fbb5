"""How fast a vocabulary encodes, beside `tokenizers` and `tiktoken` where those are installed.

    python -m synapse_edu.study.tokenizer_speed MODEL.gguf TEXT.txt

Every engine gets the same words: the same merges, the same cut, no special tokens.  The table
prints megabytes a second and how the other engine compares, as a ratio.
"""

import sys
import time
from pathlib import Path

from ..checkpoint.container import open_container
from ..errors import BadArgument
from ..tokenizer.alphabet import BYTES
from ..tokenizer.tokenizer import Tokenizer
from ..tokenizer.vocabulary import Vocabulary

# The families' published regexes; those engines bring their own tables of letters and numbers.
_PUBLISHED = {
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "gpt-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
}


def seconds(encode, text):
    """(seconds of one call, number of ids)."""
    start = time.perf_counter()
    ids = encode(text)
    return time.perf_counter() - start, len(ids)


def with_tokenizers(vocabulary):
    """text → ids by the package `tokenizers`, or None if it is missing or the family is."""
    pattern = _PUBLISHED.get(vocabulary.family.split)
    try:
        from tokenizers import Regex, models, pre_tokenizers
        from tokenizers import Tokenizer as Peer
    except ImportError:
        return None
    if vocabulary.kind != "bpe" or pattern is None:
        return None
    names = {text.decode("utf-8", "replace"): i for text, i in vocabulary.ids.items()}
    merges = [tuple(line.decode("utf-8").split(" ", 1)) for line in _ordered(vocabulary.ranks)]
    whole = vocabulary.family.ignore_merges
    peer = Peer(models.BPE(names, merges, ignore_merges=whole, fuse_unk=False))
    peer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return lambda text: peer.encode(text, add_special_tokens=False).ids


def with_tiktoken(vocabulary):
    """text → ids by the package `tiktoken`, which takes ids as ranks: Llama-3's are."""
    pattern = _PUBLISHED.get(vocabulary.family.split)
    try:
        import tiktoken
    except ImportError:
        return None
    if vocabulary.kind != "bpe" or pattern is None:
        return None
    special = set(vocabulary.special)
    ranks = {
        bytes(BYTES[c] for c in text.decode("utf-8")): token
        for token, text in enumerate(vocabulary.tokens)
        if token not in special
    }
    peer = tiktoken.Encoding("peer", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return peer.encode_ordinary


def _ordered(ranks):
    """Merge lines by rank; those that are no pair of symbols are left out."""
    return [line for line in sorted(ranks, key=ranks.get) if line.count(b" ") == 1]


def compare(path, text):
    """Rows (engine, seconds, ids, MB/s, ratio to ours); the first row is this package.

    Parameters
    ----------
    path : path
        A GGUF file with a vocabulary.
    text : str
        What to encode; a new tokenizer is made, so nothing is cached yet.
    """
    size = len(text.encode("utf-8")) / 1e6
    if not size:
        raise BadArgument("The text to measure with is empty.")
    start = time.perf_counter()
    vocabulary = Vocabulary.from_metadata(open_container(path).metadata)
    tok = Tokenizer(vocabulary, say=None)
    rows = [("loading", time.perf_counter() - start, 0, 0.0, 0.0)]
    ours, n = seconds(lambda t: tok.encode(t, add_special=False), text)
    rows.append(("synapse_edu", ours, n, size / ours, 1.0))
    for name, make in (("tokenizers", with_tokenizers), ("tiktoken", with_tiktoken)):
        encode = make(vocabulary)
        if encode is not None:
            taken, n = seconds(encode, text)
            rows.append((name, taken, n, size / taken, ours / taken))
    return rows


def table(rows):
    """The rows as text."""
    lines = [f"loading the vocabulary: {rows[0][1]:.2f} s"]
    for name, taken, n, speed, ratio in rows[1:]:
        beside = "" if name == "synapse_edu" else f"  {ratio:.2f} times as fast as this package"
        lines.append(f"{name:<12} {taken:7.3f} s  {n:>9} ids  {speed:6.2f} MB/s{beside}")
    if len(rows) == 2:
        lines.append("(neither `tokenizers` nor `tiktoken` is installed for this vocabulary)")
    return "\n".join(lines)


def main(arguments):
    if len(arguments) != 2:
        print(__doc__)
        return 2
    text = Path(arguments[1]).read_text(encoding="utf-8")
    print(table(compare(arguments[0], text)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
