"""Wrong answers to the exercises of chapter 08."""

import numpy as np

from synapse_edu.classroom.exercises.ex08 import dot, high, low, nibbles, q4_0, q8_0, ulps


def codes(largest, steps=127, finish=lambda s: np.trunc(s + np.copysign(0.5, s))):
    def wrong(x):
        d = largest(x) / steps
        return finish(x.astype(float) / d if d else np.zeros(len(x))).astype(int)

    return wrong


def magnitude(x):
    return float(np.abs(x).max())


def bits(x):
    return x.view(np.int32).astype(np.int64)


WRONG = {
    "ex08.q8_0": [
        codes(magnitude, finish=np.rint),
        codes(magnitude, finish=np.floor),
        codes(magnitude, finish=np.trunc),
        codes(magnitude, finish=np.ceil),
        codes(magnitude, finish=lambda s: np.floor(s + 0.5)),
        codes(magnitude, 128),
        codes(magnitude, 255),
        codes(magnitude, 63.5),
        codes(lambda x: float(x.max())),
        codes(lambda x: float(x.max() - x.min()), 255),
        codes(lambda x: float(np.sqrt(np.mean(x**2)))),
        lambda x: np.abs(q8_0(x)),
        lambda x: q8_0(x) + 128,
        lambda x: q8_0(x) * magnitude(x) / 127,
        lambda x: q8_0(x)[:16],
    ],
    "ex08.q4_0": [
        lambda b: nibbles(b, low, high).reshape(2, 16).T.ravel(),
        lambda b: nibbles(b, high, low),
        lambda b: nibbles(b, low, high, 0),
        lambda b: nibbles(b, low, high, 7),
        lambda b: nibbles(b, low, high, 7.5),
        lambda b: nibbles(b, low, low),
        lambda b: nibbles(b, low, high, scale=lambda r: r[:2][::-1].copy().view(np.float16)[0]),
        lambda b: nibbles(b, low, high, scale=lambda r: r[:2].view(np.int16)[0]),
        lambda b: nibbles(b, low, high, scale=lambda r: 1.0),
        lambda b: nibbles(b, low, high, scale=lambda r: abs(r[:2].view(np.float16)[0])),
        lambda b: nibbles(b, low, high) / 8,
        lambda b: nibbles(b, lambda q: (q ^ 8) & 15, lambda q: (q >> 4) ^ 8),
        lambda b: q4_0(b)[:16],
        lambda b: q4_0(b)[::-1],
    ],
    "ex08.dot": [
        lambda a, da, b, db: float(int((a * b).astype(np.int64).sum()) * da * db),
        lambda a, da, b, db: dot(a, da, b, 1.0),
        lambda a, da, b, db: dot(a, 1.0, b, db),
        lambda a, da, b, db: dot(a, 1.0, b, 1.0),
        lambda a, da, b, db: dot(a, da, b, db) / 32,
        lambda a, da, b, db: dot(a, da + db, b, 1.0),
        lambda a, da, b, db: float((a.astype(np.int16) * b).sum(dtype=np.int16)) * da * db,
        lambda a, da, b, db: float((a * b).sum(dtype=np.int8)) * da * db,
        lambda a, da, b, db: abs(dot(a, da, b, db)),
        lambda a, da, b, db: float(np.dot(a, b)) * da * db,
        lambda a, da, b, db: dot(a.view(np.uint8), da, b.view(np.uint8), db),
        lambda a, da, b, db: dot(a, da, a, db),
        lambda a, da, b, db: a * da * b * db,
        lambda a, da, b, db: dot(a, da, b, db) / (127 * 127),
    ],
    "ex08.ulps": [
        lambda a, b: np.abs(bits(a) - bits(b)),
        lambda a, b: bits(a) - bits(b),
        lambda a, b: ulps(a, b) - 1,
        lambda a, b: np.abs(a - b) / np.spacing(np.abs(a)),
        lambda a, b: np.abs(a - b) / np.finfo(np.float32).eps,
        lambda a, b: np.abs(a - b),
        lambda a, b: np.abs(a.view(np.int32) - b.view(np.int32)),
        lambda a, b: ulps(a, b).max(),
        lambda a, b: (a != b).astype(int),
        lambda a, b: np.abs(a.view(np.uint32).astype(np.int64) - b.view(np.uint32)),
        lambda a, b: np.abs((bits(a) & 0x7FFFFFFF) - (bits(b) & 0x7FFFFFFF)),
        lambda a, b: ulps(a.astype(np.float16), b.astype(np.float16)),
        lambda a, b: np.minimum(ulps(a, b), 5),
    ],
    "ex08.bytes": [
        2048 * 8192 // 2,
        2048 * 8192,
        2048 * 8192 * 144,
        int(2048 * 8192 * 4.5),
        8192 // 256 * 144,
        2048 * 8192 // 256 * 128,
        2048 * 8192 // 32 * 18 + 1,
        2048 * 8192 // 256 * 148,
        2048 * 8192 // 256,
        2048 * 8192 * 4,
        2048 * 8192 // 256 * 146,
        9.0,
    ],
    "ex08.divergence": [
        "q",
        "q_rope",
        "attn_norm",
        "probabilities",
        "attention",
        "attn_output",
        "ffn_down",
        "embedding",
        "logits",
        "cache",
        "Scores",
        0,
    ],
}
