"""Wrong answers to the exercises of chapter 07."""

from synapse_edu.classroom.exercises.ex07 import bpe, from_the_left, from_the_right, longest_first


def once(parts, ranks):
    known = [(ranks[p], i) for i, p in enumerate(zip(parts, parts[1:], strict=False)) if p in ranks]
    if not known:
        return list(parts)
    i = min(known)[1]
    return parts[:i] + [parts[i] + parts[i + 1]] + parts[i + 2 :]


def one_pass(parts, ranks):
    """Goes through the list of merges once and never looks back."""
    parts = list(parts)
    for a, b in sorted(ranks, key=ranks.get, reverse=True):
        i = 0
        while i < len(parts) - 1:
            if (parts[i], parts[i + 1]) == (a, b):
                parts[i : i + 2] = [a + b]
            i += 1
    return parts


def from_the_right_end(parts, ranks):
    return bpe(parts, ranks, choose=lambda known: max(known, key=lambda pair: pair[1]))


def by_union(parts, ranks):
    """Takes a rank for a property of the joined text, as scores are."""
    unions = {a + b: r for (a, b), r in ranks.items()}
    parts = list(parts)
    while True:
        known = [
            (unions[a + b], i)
            for i, (a, b) in enumerate(zip(parts, parts[1:], strict=False))
            if a + b in unions
        ]
        if not known:
            return parts
        i = min(known)[1]
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


def in_place(parts, ranks):
    parts[:] = bpe(parts, ranks)
    return parts


WRONG = {
    "ex07.merge": [
        lambda parts, ranks: bpe(parts, ranks, max),
        from_the_left,
        longest_first,
        once,
        one_pass,
        from_the_right_end,
        by_union,
        lambda parts, ranks: list(parts),
        lambda parts, ranks: ["".join(parts)],
        lambda parts, ranks: bpe(parts, ranks)[::-1],
        lambda parts, ranks: " ".join(bpe(parts, ranks)),
        lambda parts, ranks: bpe(
            parts, ranks, lambda known: min(known, key=lambda k: (k[0], -k[1]))
        ),
        lambda parts, ranks: ["abc"],
        in_place,
    ],
    "ex07.by_hand": [
        ["ab", "cd", "ab", "b"],
        ["abcd", "ab", "b"],
        ["a", "bcd", "abb"],
        ["a", "bc", "d", "abb"],
        ["abc", "d", "abb"],
        ["abcdabb"],
        ["ab", "cd", "abb"],
        list("abcdabb"),
        ["abb", "abcd"],
        "abcd abb",
        ["abcd", "a", "bb"],
        ("abcd", "abb", ""),
    ],
    "ex07.digits": [
        from_the_right,
        list,
        lambda d: [d],
        lambda d: [d[i : i + 3] for i in range(0, len(d) - 2, 3)],
        lambda d: [d[i : i + 2] for i in range(0, len(d), 2)],
        lambda d: [d[i : i + 4] for i in range(0, len(d), 4)],
        lambda d: [d[i : i + 3] for i in range(len(d))],
        lambda d: [int(d[i : i + 3]) for i in range(0, len(d), 3)],
        lambda d: ",".join(d[i : i + 3] for i in range(0, len(d), 3)),
        lambda d: ["123", "456", "7"],
        lambda d: [d[:3], d[3:6], d[6:]],
        lambda d: [d[i : i + 3] for i in range(0, len(d), 3)][::-1],
    ],
    "ex07.complete": [
        len,
        lambda d: max(0, len(d) - 1),
        lambda d: max(0, len(d) - 3),
        lambda d: sum(b < 0x80 for b in d),
        lambda d: len(d.decode("utf-8", "ignore")),
        lambda d: len(d.decode("utf-8", "replace").encode("utf-8")),
        lambda d: max((i for i, b in enumerate(d) if b & 0xC0 != 0x80), default=0),
        lambda d: max((i + 1 for i, b in enumerate(d) if b < 0x80), default=0),
        lambda d: 0 if any(b > 127 for b in d) else len(d),
        lambda d: len(d) - sum(b & 0xC0 == 0x80 for b in d),
        lambda d: len(d) // 2 * 2,
        lambda d: d,
        lambda d: len(d) - (d[-1] >= 0xC0 if d else 0),
    ],
    "ex07.bytes": [5, 4, 6, 8, 1, 9, 10, 2, "7", [7], 256],
}
