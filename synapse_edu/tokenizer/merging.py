"""The one loop behind both kinds of vocabulary: merge the best neighbours until none can merge.

BPE asks for the lowest rank of a pair, SPM for the highest score of the merged text.  Scores are
turned into ranks beforehand, so both ask the same: among all pairs of neighbours that have a
rank, take the lowest rank, and of equal ranks the leftmost pair.

>>> merge([b"a", b"b", b"c"], {b"b c": 0, b"a b": 1, b"a bc": 2}, b" ")
[b'abc']
"""

from heapq import heapify, heappop, heappush

_SHIFT = 40  # an entry is rank << 40 | position: one integer compares faster than a pair
_MASK = (1 << _SHIFT) - 1


def merge(symbols, ranks, glue, log=None):
    """Merge neighbours by rank until no pair of neighbours has one.

    Parameters
    ----------
    symbols : list of bytes
        The text's smallest pieces, in order.
    ranks : dict of bytes to int
        Rank of a pair, under the key ``left + glue + right``.
    glue : bytes
        b" " where a rank belongs to a pair (BPE), b"" where it belongs to the merged text (SPM).
    log : list, optional
        Receives (position of the left symbol, position of the right one, rank) of every merge.

    Returns
    -------
    list of bytes
        The symbols that are left.

    Notes
    -----
    A heap holds the candidates; an entry is stale when the pair that now starts at its position
    has another rank.  n symbols cost O(n log n) steps.  llama.cpp: `llm_tokenizer_bpe_session`
    and `llm_tokenizer_spm_session`.
    """
    n = len(symbols)
    if n < 2:
        return symbols
    rank_of = ranks.get
    text = list(symbols)
    current = [rank_of(left + glue + right) for left, right in zip(text, text[1:], strict=False)]
    current.append(None)  # rank of the pair that starts here
    heap = [rank << _SHIFT | at for at, rank in enumerate(current) if rank is not None]
    if not heap:
        return symbols
    heapify(heap)
    after = list(range(1, n + 1))
    before = list(range(-1, n - 1))
    while heap:
        entry = heappop(heap)
        at, rank = entry & _MASK, entry >> _SHIFT
        if current[at] != rank:
            continue
        right = after[at]
        if log is not None:
            log.append((at, right, rank))
        merged = text[at] = text[at] + text[right]
        text[right] = None
        current[right] = None
        follower = after[at] = after[right]
        if follower < n:
            before[follower] = at
            new = current[at] = rank_of(merged + glue + text[follower])
            if new is not None:
                heappush(heap, new << _SHIFT | at)
        else:
            current[at] = None
        left = before[at]
        if left >= 0:
            new = current[left] = rank_of(text[left] + glue + merged)
            if new is not None:
                heappush(heap, new << _SHIFT | left)
    return [symbol for symbol in text if symbol is not None]
