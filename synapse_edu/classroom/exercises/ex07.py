"""Exercises of chapter 07: merges by rank and by score, digits, bytes."""

from ..tasks import Task, register
from .draws import pick

LETTERS = "abcd"


def bpe(parts, ranks, choose=min):
    """Merge the pair of the lowest rank, the leftmost first, until none is known."""
    parts = list(parts)
    while True:
        known = [
            (ranks[pair], i)
            for i, pair in enumerate(zip(parts, parts[1:], strict=False))
            if pair in ranks
        ]
        if not known:
            return parts
        _, i = choose(known)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


def _word(rng, n):
    return [pick(rng, *LETTERS) for _ in range(n)]


def _ranks(rng, n):
    """`n` merges as training makes them: each joins pieces that exist by then."""
    pieces, ranks = list(LETTERS), {}
    while len(ranks) < n:
        pair = (pick(rng, *pieces), pick(rng, *pieces))
        if pair not in ranks and len(pair[0] + pair[1]) <= 4:
            ranks[pair] = len(ranks)
            pieces.append(pair[0] + pair[1])
    return ranks


TRAP = {("b", "c"): 0, ("a", "b"): 1, ("a", "bc"): 2}
LEFT = {("a", "a"): 0}
UNREACHABLE = {("b", "c"): 0, ("a", "b"): 1, ("ab", "c"): 2}  # no way leads to abc


def _merge_inputs(rng):
    cases = [(list("abc"), TRAP), (list("aaaaa"), LEFT), (["a"], TRAP), ([], TRAP)]
    cases.append((list("abcabc"), UNREACHABLE))
    for _ in range(8):
        cases.append((_word(rng, 14), _ranks(rng, 9)))
    return cases


def longest_first(parts, ranks):
    """The greedy reading of a vocabulary: from the left, the longest known piece."""
    text, known, out = "".join(parts), {a + b for a, b in ranks} | set(parts), []
    while text:
        size = max(n for n in range(1, len(text) + 1) if text[:n] in known)
        out.append(text[:size])
        text = text[size:]
    return out


def from_the_left(parts, ranks):
    return bpe(parts, ranks, choose=lambda known: min(known, key=lambda pair: pair[1]))


register(
    Task(
        "ex07.merge",
        right=bpe,
        hints=(
            "Look at all pairs of neighbours at once; take the one with the lowest rank; look "
            "again, because a new pair may have come up.",
            "min() over (rank, place) gives the lowest rank and, of equal ranks, the leftmost.",
            "known = [(ranks[a, b], i) for i, (a, b) in enumerate(zip(parts, parts[1:])) if (a, b) "
            "in ranks]; then _, i = min(known), and parts[i:i+2] = [parts[i] + parts[i+1]].",
        ),
        inputs=_merge_inputs,
        mistakes=lambda: [
            (lambda parts, ranks: bpe(parts, ranks, max), "the highest rank goes first"),
            (from_the_left, "the leftmost known pair goes first, whatever its rank"),
            (longest_first, "the longest piece goes first: that is no merging"),
            (
                lambda parts, ranks: bpe(parts, ranks, lambda known: min(known, key=_rightmost)),
                "of equal ranks the rightmost goes first",
            ),
        ],
    )
)


def _rightmost(known):
    return known[0], -known[1]


def _by_hand(word, merges):
    ranks = {tuple(line.split(" ")): rank for rank, line in enumerate(merges.split(", "))}
    return bpe(word, ranks)


def _draw_word(rng):
    while True:
        word = "".join(_word(rng, 7))
        ranks = _ranks(rng, 5)
        numbers = {"word": word, "merges": ", ".join(f"{a} {b}" for a, b in ranks)}
        answers = [f(list(word), ranks) for f in (bpe, from_the_left, longest_first)]
        answers.append(bpe(list(word), ranks, max))
        # a question in which every wrong order gives another answer, and something is merged
        if answers[0] not in answers[1:] and len(answers[0]) < 6:
            return numbers


def _wrong_orders(word, merges):
    ranks = {tuple(line.split(" ")): rank for rank, line in enumerate(merges.split(", "))}
    found = [
        (bpe(list(word), ranks, max), "the highest rank goes first"),
        (from_the_left(list(word), ranks), "the leftmost known pair goes first"),
        (longest_first(list(word), ranks), "the longest piece goes first: that is no merging"),
        (list(word), "nothing is merged"),
    ]
    seen = []
    return [
        (wrong, cause)
        for wrong, cause in found
        if wrong not in seen and not seen.append(wrong) and wrong != bpe(list(word), ranks)
    ]


register(
    Task(
        "ex07.by_hand",
        right=_by_hand,
        question=(
            "The merges, from rank 0 on, are: {merges}. Into which pieces does {word!r} fall? "
            "Answer with a list of strings."
        ),
        given={"word": "abcdabb", "merges": "c d, b c, a b, ab cd, ab b"},
        draw=_draw_word,
        hints=(
            "Write the letters down with gaps, and look for the first merge of the list.",
            "Join it wherever it occurs, from the left. Then the next rank, but look back: a join "
            "may have made a pair that is earlier in the list.",
            "Start: {word!r} as single letters. The list is: {merges}.",
        ),
        mistakes=_wrong_orders,
    )
)


def threes(digits):
    return [digits[i : i + 3] for i in range(0, len(digits), 3)]


def from_the_right(digits):
    return [digits[max(0, i - 3) : i] for i in range(len(digits), 0, -3)][::-1]


register(
    Task(
        "ex07.digits",
        right=threes,
        hints=(
            "Where does the short group stand, if the number of digits is no multiple of 3?",
            "Llama 3's expression takes up to three digits at a time, from the left. So the rest "
            "is at the end.",
            "[digits[i:i+3] for i in range(0, len(digits), 3)]",
        ),
        inputs=lambda rng: [
            ("1234567",),
            ("12",),
            ("123456",),
            ("".join(str(int(rng.integers(10))) for _ in range(int(rng.integers(10, 21)))),),
            ("".join(str(int(rng.integers(10))) for _ in range(11)),),
            ("7",),
        ],
        mistakes=lambda: [
            (from_the_right, "the short group is on the left, as people write numbers"),
            (lambda d: list(d), "one digit a piece: that is Qwen2's way"),
            (lambda d: [d], "all digits in one piece: that is GPT-2's way"),
        ],
    )
)


def complete(data):
    """How many bytes at the beginning are whole characters."""
    for back in range(1, min(4, len(data)) + 1):
        first = data[-back]
        if first & 0b1100_0000 != 0b1000_0000:  # not a continuation byte: here a character begins
            size = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            return len(data) if back == size else len(data) - back
    return len(data)


def _cut_texts(rng):
    texts = ["Việt Nam", "👩‍👧 ok", "é", "naïve café", "a", "नमस्ते", "x👍"]
    cases = []
    for text in texts:
        data = text.encode("utf-8")
        cases.append((data[: int(rng.integers(1, len(data) + 1))],))
    emoji = "👍".encode()
    cases += [(emoji[:n],) for n in (1, 2, 3, 4)]
    cases += [("aé".encode()[:2],), ("aé".encode(),), ("a€".encode()[:3],), (b"",), (b"plain",)]
    return cases


register(
    Task(
        "ex07.complete",
        right=complete,
        hints=(
            "The first byte of a character says how many bytes it has: below 0x80 one, from 0xC0 "
            "two, from 0xE0 three, from 0xF0 four. All others are 0x80 to 0xBF.",
            "Look back from the end for the last byte that is not 0x80 to 0xBF: there the last "
            "character begins. Does it have all of its bytes?",
            "If it is complete, the answer is len(data), otherwise the place where it begins. An "
            "empty text has 0.",
        ),
        inputs=_cut_texts,
        mistakes=lambda: [
            (len, "a character that is cut in the middle counts as whole"),
            (lambda d: max(0, len(d) - 1), "the last byte is held back, whatever it is"),
            (lambda d: sum(b < 0x80 for b in d), "only letters of one byte are counted"),
            (lambda d: len(d.decode("utf-8", "ignore")), "these are characters, not bytes"),
        ],
    )
)


register(
    Task(
        "ex07.bytes",
        right=lambda word: len(word.encode("utf-8")),
        question=(
            "A byte-level vocabulary has all 256 bytes and not one merge. Into how many tokens "
            "does it cut {word!r} (the space included)?"
        ),
        given={"word": " Việt"},
        draw=lambda rng: {
            "word": " "
            + pick(rng, "café", "naïve", "Zürich", "Łódź", "Ελλάς", "日本", "привет", "👍", "Tōkyō")
        },
        hints=(
            "Without merges, a token is a byte.",
            "ASCII letters and the space take one byte in UTF-8; é, ü, ł take two; ệ, 日 take "
            "three; an emoji takes four.",
            "len({word!r}.encode('utf-8'))",
        ),
        mistakes=lambda word: [
            (len(word), "these are characters; most outside of ASCII take more than one byte"),
            (len(word.encode("utf-8")) - 1, "the space is a byte too"),
            (1, "without merges nothing is joined"),
        ],
    )
)
