"""Exercises of chapter 08: blocks of eight and four bits, whole-number dots, ulps, divergence."""

import functools

import numpy as np

from ...formats import decode as formats_decode
from ...formats.layout import FORMATS, row_bytes
from ..tasks import Task, register
from .draws import normal, pick


def q8_0(x):
    d = np.abs(x).max() / np.float32(127)
    if d == 0:
        return np.zeros(len(x), int)
    scaled = x.astype(float) / float(d)
    return np.trunc(scaled + np.copysign(0.5, scaled)).astype(int)


def _blocks(rng):
    positive = np.abs(normal(rng, 32))
    return [
        (normal(rng, 32),),
        (-positive,),
        (positive * np.float32(1e-6),),
        (np.zeros(32, np.float32),),
        (np.array([127, 0.5, 1.5, 2.5, -0.5, -1.5, -126.6] + [0.0] * 25, np.float32),),
    ]


register(
    Task(
        "ex08.q8_0",
        right=q8_0,
        hints=(
            "The largest magnitude of the block becomes 127 or −127. Everything else is measured "
            "in steps of it.",
            "One step is max|x| / 127. A half is rounded away from zero, so np.round (which "
            "rounds a half to the even neighbour) is not what is asked for.",
            "np.trunc(x / d + np.copysign(0.5, x)), and zeros if all of x is 0.",
        ),
        inputs=_blocks,
        mistakes=lambda: [
            (
                lambda x: np.rint(x / max(np.abs(x).max() / 127, 1e-30)),
                "a half goes away from zero, not to the even neighbour",
            ),
            (
                lambda x: _steps(x, 127, x.max()),
                "the largest magnitude counts, also where it is negative",
            ),
            (
                lambda x: np.trunc(x / max(np.abs(x).max() / 127, 1e-30)),
                "cut off, not rounded",
            ),
            (
                lambda x: _steps(x, 128),
                "the codes run to 127, not to 128",
            ),
        ],
    )
)


def _steps(x, n, largest=None):
    largest = float(np.abs(x).max() if largest is None else largest)
    scaled = x.astype(float) / (largest / n or 1.0)
    return np.trunc(scaled + np.copysign(0.5, scaled)).astype(int)


def q4_0(block):
    raw = np.frombuffer(block, np.uint8)  # (18,)
    return formats_decode.decode(raw, "Q4_0")


def nibbles(block, first, second, offset=8, scale=lambda b: b[:2].view(np.float16)[0]):
    raw = np.frombuffer(block, np.uint8)
    codes = np.concatenate([first(raw[2:]), second(raw[2:])]).astype(float) - offset
    return float(scale(raw)) * codes


def low(q):
    return q & 15


def high(q):
    return q >> 4


def _q4_blocks(rng):
    def block(d):
        codes = rng.integers(0, 256, 16, dtype=np.uint8).tobytes()
        return (np.float16(d).tobytes() + codes,)

    return [block(0.25), block(-1.5), block(float(rng.uniform(0.01, 2))), block(0.0)]


register(
    Task(
        "ex08.q4_0",
        right=q4_0,
        hints=(
            "18 bytes: a float16 step, then 16 bytes with two codes each.",
            "The low four bits of byte i are number i, the high four bits are number i + 16. A "
            "code of 8 stands for 0.",
            "d = np.frombuffer(block[:2], np.float16)[0]; q = np.frombuffer(block[2:], np.uint8); "
            "np.concatenate([q & 15, q >> 4]), less 8, times d",
        ),
        inputs=_q4_blocks,
        mistakes=lambda: [
            (
                lambda b: nibbles(b, low, high).reshape(2, 16).T.ravel(),
                "the two codes of a byte are 16 places apart, not neighbours",
            ),
            (lambda b: nibbles(b, high, low), "the low four bits come first"),
            (lambda b: nibbles(b, low, high, 0), "a code of 8 stands for 0: take 8 off"),
            (lambda b: nibbles(b, low, high, 7), "8 is taken off, not 7"),
        ],
        rtol=1e-6,
    )
)


def dot(a, da, b, db):
    return float(da) * float(db) * int(a.astype(np.int64) @ b.astype(np.int64))


def _codes(rng, largest=127):
    a, b = rng.integers(-largest, largest + 1, (2, 32)).astype(np.int8)
    return a, float(rng.uniform(0.01, 1)), b, float(rng.uniform(0.01, 1))


register(
    Task(
        "ex08.dot",
        right=dot,
        hints=(
            "What is 100 · 100 as an int8? Try np.int8(100) * np.int8(100).",
            "The product of two codes needs 16 bits, the sum of 32 products more. Widen before "
            "you multiply. And both blocks have a step.",
            "int(a.astype(np.int32) @ b.astype(np.int32)) * da * db",
        ),
        inputs=lambda rng: [
            _codes(rng, 3),
            _codes(rng),
            (np.full(32, 127, np.int8), 0.5, np.full(32, 127, np.int8), 0.25),
            (np.full(32, -127, np.int8), 1.0, np.full(32, 127, np.int8), 1.0),
        ],
        mistakes=lambda: [
            (
                lambda a, da, b, db: float(int((a * b).astype(np.int64).sum()) * da * db),
                "the products overflow: widen before you multiply",
            ),
            (
                lambda a, da, b, db: dot(a, da, b, 1.0),
                "the step of the second block is missing",
            ),
            (
                lambda a, da, b, db: float((a.astype(np.int16) * b).sum(dtype=np.int16)) * da * db,
                "the sum overflows 16 bits",
            ),
            (
                lambda a, da, b, db: float((a * b).sum(dtype=np.int8)) * da,
                "products and sum overflow, and the second step is missing",
            ),
        ],
        rtol=1e-9,
    )
)


def ulps(a, b):
    def ordered(x):
        bits = np.asarray(x, np.float32).view(np.int32).astype(np.int64)
        return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)

    return np.abs(ordered(a) - ordered(b))


def _float_pairs(rng):
    x = normal(rng, 6)
    near = x.copy()
    for _ in range(5):
        near = np.nextafter(near, np.float32(np.inf))
    small = np.array([1e-45, -1e-45, 0.0, -0.0, 1.0], np.float32)
    other = np.array([-1e-45, 1e-45, -0.0, 3e-45, 2.0], np.float32)
    return [(x, near), (small, other), (x, -x), (x, x), (normal(rng, 3), normal(rng, 3))]


def _as_bits(x):
    return x.view(np.int32).astype(np.int64)


register(
    Task(
        "ex08.ulps",
        right=ulps,
        hints=(
            "The bits of a positive float32, read as a whole number, count the floats: the next "
            "float is the next whole number.",
            "x.view(np.int32) are the bits. For a negative x the sign bit is set, and the rest "
            "counts away from zero; make −(bits & 0x7FFFFFFF) of it. Use int64, so that "
            "differences fit.",
            "i = x.view(np.int32).astype(np.int64); i = np.where(i < 0, -(i & 0x7FFFFFFF), i) for "
            "both, then the absolute difference.",
        ),
        inputs=_float_pairs,
        mistakes=lambda: [
            (
                lambda a, b: np.abs(_as_bits(a) - _as_bits(b)),
                "across zero the bits do not count: −0 and 0 are the same number",
            ),
            (
                lambda a, b: np.abs(a - b) / np.spacing(np.abs(a)),
                "a step is not equally long everywhere between the two",
            ),
            (lambda a, b: ulps(a, b) - 1, "the next float is one ulp away"),
        ],
    )
)

register(
    Task(
        "ex08.bytes",
        right=lambda format, rows, columns: rows * row_bytes(format, columns),
        question=(
            "A matrix of {rows} rows with {columns} numbers each is stored as {format}. How many "
            "bytes is that?"
        ),
        given={"format": "Q4_K", "rows": 2048, "columns": 8192},
        draw=lambda rng: {
            "format": pick(rng, "Q5_K", "Q6_K", "Q8_0", "Q4_0", "Q5_0"),
            "rows": 64 * int(rng.integers(5, 60)),
            "columns": 256 * int(rng.integers(2, 40)),
        },
        hints=(
            "The matrix is a row of blocks. How many numbers has a block, and how many bytes?",
            "FORMATS[{format!r}].block and .nbytes. A Q4_K block: two float16 scales, 12 bytes of "
            "6-bit scales and minima, 128 bytes of codes: 144 for 256 numbers.",
            "rows · columns / block · bytes of a block",
        ),
        mistakes=lambda format, rows, columns: [
            (
                rows * columns * int(format[1]) // 8,
                "the scales of the blocks are missing",
            ),
            (rows * columns, "that is one byte a number"),
            (
                int(rows * columns * FORMATS[format].bits_per_weight),
                "these are bits",
            ),
            (row_bytes(format, columns), "this is one row"),
        ],
    )
)

PLACES = {
    "activations": "the activations are no longer rounded to 8 bits",
    "cache": "keys and values are stored in 32 bits",
    "probabilities": "the soft-max weights are no longer rounded to 16 bits",
}


@functools.lru_cache
def _first_step(switch):
    """The first step of a pass over a short prompt whose numbers change with one switch."""
    from ...model.load import load
    from ...study.divergence import diverge

    model = load("built-in")
    base = model.numerics
    ids = model.tokenizer.encode("Mia has a red ball. Where is Mia?")
    alone = {"cache": base.cache, "q": base.q, "probabilities": base.probabilities}
    other = base.replace(**{**alone, switch: "float32"})
    return diverge(model, ids, base, other).first_over().name


register(
    Task(
        "ex08.divergence",
        right=lambda switch, what: _first_step(switch),
        question=(
            "Two passes of the built-in model over the same prompt, with llama.cpp's numerics; in "
            "the second {what}. At which step of layer 0 do the last token's numbers differ first? "
            "Answer with one of 'attn_norm', 'q', 'q_rope', 'scores', 'probabilities', "
            "'attention', 'attn_output', 'ffn_down'."
        ),
        given={"switch": "cache", "what": PLACES["cache"]},
        draw=lambda rng: (
            lambda switch: {"switch": switch, "what": PLACES[switch]}
        )(pick(rng, *PLACES)),
        hints=(
            "Go through a layer in order. Which step is the first to use what was changed?",
            "A step differs only if something that goes into it does. Norms and rotations read no "
            "weights in blocks, and no cache.",
            "Activations are rounded for the first matrix product, keys are read for the scores, "
            "the weights of the soft-max meet the values in the weighted sum.",
        ),
        mistakes=lambda switch, what: [
            (wrong, cause)
            for wrong, cause in (
                ("attn_norm", "the norm comes before anything is rounded"),
                ("probabilities", "they are rounded when they meet the values, a step later; and "
                 "scores come before them"),
                ("q", "no cache and no soft-max weight goes into the query"),
                ("scores", "the query is made by a matrix product before, and the soft-max comes "
                 "after"),
                ("attention", "something before it differs already"),
                ("ffn_down", "that is the end of the layer"),
            )
            if wrong != _first_step(switch)
        ],
    )
)  # fmt: skip
