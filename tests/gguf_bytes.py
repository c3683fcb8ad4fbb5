"""Small GGUF files written byte by byte, so that each field can be made wrong."""

import struct

import numpy as np


def string(text, order="<"):
    raw = text if isinstance(text, bytes) else text.encode("utf-8")
    return struct.pack(order + "Q", len(raw)) + raw


def key(name, kind, payload, order="<"):
    return string(name, order) + struct.pack(order + "I", kind) + payload


def entry(name, sizes, kind, offset, order="<"):
    head = string(name, order) + struct.pack(order + "I", len(sizes))
    return head + struct.pack(f"{order}{len(sizes)}QIQ", *sizes, kind, offset)


def gguf(keys=(), entries=(), data=b"", version=3, order="<", n_keys=None, n_tensors=None):
    """Header, keys, tensor table, padding to 32, data."""
    n_keys = len(keys) if n_keys is None else n_keys
    n_tensors = len(entries) if n_tensors is None else n_tensors
    head = b"GGUF" + struct.pack(order + "IQQ", version, n_tensors, n_keys)
    body = head + b"".join(keys) + b"".join(entries)
    return body + b"\0" * (-len(body) % 32) + data


def good(order="<"):
    """A file with one of everything: numbers, strings, arrays, two tensors."""
    keys = [
        key("general.architecture", 8, string("llama", order), order),
        key("a.u32", 4, struct.pack(order + "I", 7), order),
        key("a.f32", 6, struct.pack(order + "f", 1.5), order),
        key("a.bool", 7, b"\1", order),
        key("a.i16s", 9, struct.pack(order + "IQ3h", 3, 3, 1, -2, 3), order),
        key(
            "a.words",
            9,
            struct.pack(order + "IQ", 8, 2) + string("x", order) + string(b"\xff", order),
            order,
        ),
    ]
    x = np.arange(8, dtype=order + "f4")
    entries = [entry("m", [4, 2], 0, 0, order), entry("v", [3], 0, 32, order)]
    return gguf(keys, entries, x.tobytes() + x[:3].tobytes(), order=order)
