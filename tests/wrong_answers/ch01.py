"""Wrong answers to the exercises of chapter 01."""

import struct

from synapse_edu.classroom.exercises.ex01 import n_params, read_header, shapes


def changed_row(row, value):
    def wrong(*a):
        out = shapes(*a)
        out[row] = value(*a)
        return out

    return wrong


def unpacked(form, offset=4):
    def wrong(data):
        return [0, 0, 0] if data[:4] != b"GGUF" else list(struct.unpack_from(form, data, offset))

    return wrong


WRONG = {
    "ex01.shapes": [
        lambda *a: shapes(*a)[:, ::-1],
        lambda e, h, kv, hd, f: shapes(e, h, h, hd, f),
        lambda e, h, kv, hd, f: shapes(e, h, kv, e // h, f),
        lambda e, h, kv, hd, f: shapes(e, kv, kv, hd, f),
        changed_row(6, lambda e, h, kv, hd, f: (f, e)),
        changed_row(3, lambda e, h, kv, hd, f: (h * hd, e)),
        changed_row(3, lambda e, h, kv, hd, f: (e, e)),
        changed_row(0, lambda e, h, kv, hd, f: (e, e)),
        changed_row(1, lambda e, h, kv, hd, f: (kv, e)),
        changed_row(2, lambda e, h, kv, hd, f: (h * hd, e)),
        changed_row(4, lambda e, h, kv, hd, f: (2 * f, e)),
        lambda *a: shapes(*a)[:4],
        lambda *a: shapes(2048, 32, 8, 64, 8192),
        lambda *a: shapes(*a).prod(axis=1),
    ],
    "ex01.n_params": [
        lambda *a: n_params(*a) - a[2] - 2 * a[1] * a[2],
        lambda *a: n_params(*a) - a[2],
        lambda *a: n_params(*a) - a[1] * a[2],
        lambda *a: n_params(*a[:7], True),
        lambda *a: n_params(*a[:7], False),
        lambda *a: n_params(*a[:7], not a[7]),
        lambda v, n, e, h, kv, *rest: n_params(v, n, e, h, h, *rest),
        lambda v, n, e, h, kv, hd, f, t: n_params(v, n, e, h, kv, e // h, f, t),
        lambda *a: n_params(a[0], 1, *a[2:]),
        lambda *a: n_params(*a) - a[0] * a[2],
        lambda v, n, e, h, kv, hd, f, t: n_params(v, n, e, h, kv, hd, f, t) - n * e * f,
        lambda *a: 1_235_814_400,
        lambda *a: str(n_params(*a)),
    ],
    "ex01.header": [
        unpacked(">IQQ"),
        unpacked("<III"),
        unpacked("<QQQ"),
        unpacked("<IQQ", 0),
        unpacked("<IQQ", 8),
        lambda d: list(struct.unpack_from("<IQQ", d, 4)),
        lambda d: read_header(d)[::-1],
        lambda d: [read_header(d)[0], read_header(d)[2], read_header(d)[1]],
        lambda d: read_header(d)[1:],
        lambda d: [3, 38, 27],
        lambda d: [3, *read_header(d)[1:]],
        lambda d: [d[4], d[8], d[16]] if d[:4] == b"GGUF" else [0, 0, 0],
        lambda d: list(struct.unpack_from("<4sIQQ", d)),
    ],
    "ex01.growth": [2, 3, 24, 120, 8, 12, 5, 1, 30, 14, 6.5, "6"],
    "ex01.words": [0.2, 0.79, 21, 0.42, 0.347, 0.653, 0.5, 1.0, 0.0, 28, 49152 * 576, 0.105],
}
