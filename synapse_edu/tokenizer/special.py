"""Special tokens cut out of a text, before anything else sees it.

The longest token goes first and takes all its places in the whole text, then the next longest in
what is left; so a long token wins even against a shorter one that starts before it.  The search
is by plain bytes, inside words too.  llama.cpp: `tokenizer_st_partition`.

>>> partition(b"zyxyzzy", [(7, b"xyzzy", 0), (8, b"zyx", 0)])
[Fragment(start=0, end=2, token=None), Fragment(start=2, end=7, token=7)]
"""

from typing import NamedTuple

from .attributes import CONTROL, LSTRIP, RSTRIP, UNKNOWN

_WHITE = b" \t\n\v\f\r"  # the C locale's isspace


class Fragment(NamedTuple):
    """Bytes [start, end) of the text: a special token's id, or None for plain text."""

    start: int
    end: int
    token: int | None


def partition(raw, special, typed=b""):
    """Cut `raw` into special tokens and the plain text between them.

    Parameters
    ----------
    raw : bytes
    special : list of (id, text, attribute bits)
        In the order of search, longest text first.
    typed : bytes, optional
        Where it is 1, somebody typed that byte of `raw`: no control token is found there.

    Returns
    -------
    list of Fragment
        In order.  White space that a token strips from its neighbour is in no fragment.
    """
    fragments = [Fragment(0, len(raw), None)] if raw else []
    for token, text, bits in _occurring(raw, special):
        own = typed if bits & (CONTROL | UNKNOWN) else b""
        cut = []
        for fragment in fragments:
            if fragment.token is None:
                cut += _cut(raw, fragment, token, text, bits, own)
            else:
                cut.append(fragment)
        fragments = cut
    return fragments


def _occurring(raw, special):
    """Those special tokens whose text is somewhere in `raw`; most texts have none.

    Texts share beginnings ("<|"), so those are looked for first.
    """
    begins = {}
    for entry in special:
        begin = entry[1][:2]
        if begin not in begins:
            begins[begin] = begin in raw
        if begins[begin] and entry[1] in raw:
            yield entry


def _find(raw, text, start, end, typed):
    """Where `text` first stands without a typed byte in it, or -1."""
    at = raw.find(text, start, end)
    while at >= 0 and (last := typed.rfind(1, at, at + len(text))) >= 0:
        at = raw.find(text, last + 1, end)
    return at


def _cut(raw, fragment, token, text, bits, typed):
    """The fragment's parts around each occurrence of `text`, leftmost first."""
    start, end, _ = fragment
    while start < end and (at := _find(raw, text, start, end, typed)) >= 0:
        left, right = at, at + len(text)
        while bits & LSTRIP and left > start and raw[left - 1] in _WHITE:
            left -= 1
        if left > start:
            yield Fragment(start, left, None)
        yield Fragment(at, right, token)
        while bits & RSTRIP and right < end and raw[right] in _WHITE:
            right += 1
        start = right
    if start < end:
        yield Fragment(start, end, None)
