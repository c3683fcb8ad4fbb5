"""The container: what it reads, and everything that it must not believe."""

import struct
import time
import tracemalloc

import numpy as np
import pytest
from gguf_bytes import entry, gguf, good, key, string
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import synapse_edu as se
from synapse_edu.checkpoint.container import open_container
from synapse_edu.errors import FileProblem, SynapseError, UnsupportedModel

QUIET = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def opened(folder, raw, name="x.gguf"):
    path = folder / name
    path.write_bytes(raw)
    return open_container(path)


@pytest.mark.parametrize("order", ["<", ">"])
def test_reads_every_kind(tmp_path, order):
    c = opened(tmp_path, good(order))
    m = c.metadata
    assert c.byte_order == {"<": "little", ">": "big"}[order]
    assert m["a.u32"] == 7 and type(m["a.u32"]) is np.uint32
    assert m["a.f32"] == 1.5 and type(m["a.f32"]) is np.float32
    assert m["a.bool"] == np.True_ and m["a.i16s"].tolist() == [1, -2, 3]
    assert m["a.i16s"].dtype == np.int16 and m["a.words"].tolist() == [b"x", b"\xff"]
    assert m["a.words"][1] == b"\xff" and m["a.words"][0:2] == [b"x", b"\xff"]
    assert c.tensors["m"].shape == (2, 4) and c.tensors["v"].shape == (3,)
    assert c.raw("m").view("<f4").tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert not c.raw("m").flags.writeable


def test_the_data_is_not_copied(golden):
    c = open_container(golden / "llama_f16.gguf")
    a, b = c.raw("token_embd.weight"), c.raw("token_embd.weight")
    assert np.shares_memory(a, b)


def test_versions(tmp_path):
    assert opened(tmp_path, gguf(version=2)).version == 2
    with pytest.raises(UnsupportedModel, match="version 1"):
        opened(tmp_path, gguf(version=1))


KEY = key("k", 4, struct.pack("<I", 1))
ONE = [entry("t", [8], 0, 0)]
DATA = b"\0" * 64
BAD = {
    "empty": (b"", "too few"),
    "other": (b"PK\3\4" + b"\0" * 60, "not a GGUF"),
    "count of keys": (gguf([KEY], n_keys=2**60), "more than the file"),
    "count of tensors": (gguf(n_tensors=2**61), "more than the file"),
    "string length": (gguf([struct.pack("<Q", 2**63) + b"k"]), "truncated"),
    "array count": (gguf([key("k", 9, struct.pack("<IQ", 4, 2**62))]), "more than the file"),
    "string array": (gguf([key("k", 9, struct.pack("<IQQ", 8, 1, 2**50))]), "string 0"),
    "nested": (gguf([key("k", 9, struct.pack("<IQ", 9, 1))]), "array of arrays"),
    "value type": (gguf([key("k", 77, b"\0" * 8)]), "unknown value type 77"),
    "truth": (gguf([key("k", 7, b"\2")]), "neither 0 nor 1"),
    "twice": (gguf([KEY, KEY]), "'k' appears twice"),
    "key text": (gguf([key(b"\xff\xfe", 4, b"\0" * 4)]), "UTF-8"),
    "value text": (gguf([key("k", 8, string(b"\xc3\x28"))]), "UTF-8"),
    "tensor twice": (gguf([], ONE + ONE, DATA), "'t' appears twice"),
    "no dimensions": (gguf([], [entry("t", [], 0, 0)] * 1 + ONE, DATA), "0 dimensions"),
    "many dimensions": (gguf([], [entry("t", [1] * 5, 0, 0)], DATA), "5 dimensions"),
    "zero size": (gguf([], [entry("t", [0, 4], 0, 0)], DATA), "impossible shape"),
    "overflow": (gguf([], [entry("t", [2**40, 2**40], 0, 0)], DATA), "impossible shape"),
    "type": (gguf([], [entry("t", [256], 17, 0)], DATA), "IQ2_XS"),
    "odd type": (gguf([], [entry("t", [256], 999, 0)], DATA), "999"),
    "block": (gguf([], [entry("t", [33], 8, 0)], DATA), "not a multiple"),
    "misaligned": (gguf([], [entry("t", [8], 0, 4)], DATA), "misaligned"),
    "beyond": (gguf([], [entry("t", [8], 0, 64)], DATA), "truncated.*'t'"),
    "huge offset": (gguf([], [entry("t", [8], 0, 2**63)], DATA), "truncated"),
    "overlap": (gguf([], [*ONE, entry("u", [8], 0, 0)], DATA), "overlap"),
    "alignment": (gguf([key("general.alignment", 4, struct.pack("<I", 0))]), "power of two"),
    "alignment 3": (gguf([key("general.alignment", 4, struct.pack("<I", 24))]), "power of two"),
    "alignment kind": (gguf([key("general.alignment", 8, string("32"))]), "power of two"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_damage_is_named(tmp_path, name):
    raw, message = BAD[name]
    with pytest.raises((FileProblem, UnsupportedModel), match=message):
        opened(tmp_path, raw)


def test_alignment_of_64(tmp_path):
    keys = [key("general.alignment", 4, struct.pack("<I", 64))]
    raw = gguf(keys, [entry("t", [8], 0, 64)])
    raw += b"\0" * (-len(raw) % 64) + b"\0" * 64 + np.arange(8, dtype="<f4").tobytes()
    c = opened(tmp_path, raw)
    assert c.alignment == 64 and c.raw("t").view("<f4").tolist() == [[0, 1, 2, 3, 4, 5, 6, 7]]


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(FileProblem, match="no such file"):
        open_container(tmp_path / "nothing.gguf")
    with pytest.raises(FileProblem, match="folder"):
        open_container(tmp_path)


@pytest.mark.parametrize("order", ["<", ">"])
def test_cut_anywhere(tmp_path, order):
    """Every shorter file is refused with one of our errors, and nothing else happens."""
    whole = good(order)
    for n in range(len(whole)):
        with pytest.raises(SynapseError):
            opened(tmp_path, whole[:n])


@QUIET
@given(st.integers(0, 2**31), st.binary(min_size=1, max_size=12))
def test_bytes_changed_anywhere(tmp_path, where, new):
    raw = bytearray(good())
    where %= len(raw)
    raw[where : where + len(new)] = new
    try:
        c = opened(tmp_path, bytes(raw), "fuzz.gguf")
        for name in c.tensors:
            c.raw(name).sum()
    except SynapseError:
        pass


@QUIET
@given(st.data())
def test_a_model_file_with_changed_bytes(tmp_path, golden, data):
    """The whole way from the file to weights: only our errors come out."""
    raw = bytearray((golden / "llama_q4_0.gguf").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, 12_000))
        raw[where] = data.draw(st.integers(0, 255))
    path = tmp_path / "fuzz.gguf"
    path.write_bytes(raw)
    try:
        se.load(path, backend="reference")
    except SynapseError:
        pass


COUNTS = st.sampled_from([0, 1, 2, 255, 2**15, 2**31 - 1, 2**32, 2**53, 2**62, 2**63, 2**64 - 1])


@QUIET
@given(st.integers(8, 2**31), COUNTS)
def test_counts_spliced_in_anywhere(tmp_path, where, count):
    """Every eight bytes of the header may be a count or a length, and a lie."""
    raw = bytearray(good())
    where %= len(raw) - 8
    raw[where : where + 8] = struct.pack("<Q", count)
    tracemalloc.start()
    try:
        c = opened(tmp_path, bytes(raw), "fuzz.gguf")
        for name in c.tensors:
            c.raw(name).sum()
    except SynapseError as refused:
        assert len(str(refused)) < 400
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def test_a_lie_costs_neither_time_nor_memory(tmp_path):
    raw = gguf([key("k", 9, struct.pack("<IQ", 8, 2**40))] + [KEY])
    tracemalloc.start()
    start = time.perf_counter()
    with pytest.raises(FileProblem):
        opened(tmp_path, raw)
    took, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took < 1 and peak < 2**20


def test_a_message_stays_short(tmp_path):
    raw = gguf([key("k" * 100_000, 77, b"\0" * 8)])
    with pytest.raises(FileProblem) as refused:
        opened(tmp_path, raw)
    assert len(str(refused.value)) < 300


def test_strings_by_index(tmp_path):
    payload = struct.pack("<IQ", 8, 3) + string("a") + string("") + string("bc")
    words = opened(tmp_path, gguf([key("w", 9, payload)])).metadata["w"]
    assert list(words) == [b"a", b"", b"bc"] and words[-1] == b"bc" and words[::-1][0] == b"bc"
    with pytest.raises(IndexError):
        words[3]
    empty = opened(tmp_path, gguf([key("w", 9, struct.pack("<IQ", 8, 0))])).metadata["w"]
    assert len(empty) == 0 and empty.tolist() == []


@pytest.mark.parametrize("name", ["llama_q4_1", "llama_q6_k", "llama_iq4_xs", "llama_bf16"])
def test_big_endian_blocks_are_turned_round(tmp_path, golden, name):
    """Each field of each block reversed, as a big-endian machine writes it, and read back."""
    little = open_container(golden / f"{name}.gguf")
    entries, data = [], b""
    for info in list(little.tensors.values())[:4]:
        fields = info.format.fields
        big = np.dtype([(field, kind.replace("<", ">"), (n,)) for field, kind, n in fields])
        blocks = little.raw(info.name).reshape(-1).view(info.format.dtype)  # (n_block,)
        out = np.empty(blocks.shape, big)  # (n_block,)
        for field, _, _ in fields:
            out[field] = blocks[field]
        kind, sizes = info.format.ggml_type, list(reversed(info.shape))
        entries.append(entry(info.name, sizes, kind, len(data), ">"))
        data += out.tobytes() + b"\0" * (-out.nbytes % 32)
    c = opened(tmp_path, gguf([], entries, data, order=">"))
    for tensor in c.tensors:
        assert np.array_equal(c.raw(tensor), little.raw(tensor))
        assert not c.raw(tensor).flags.writeable


# --- shards ------------------------------------------------------------------------------------
def shard(i, count, entries, data, total=2):
    keys = [
        key("split.no", 2, struct.pack("<H", i)),
        key("split.count", 2, struct.pack("<H", count)),
        key("split.tensors.count", 5, struct.pack("<i", total)),
    ]
    return gguf(keys, entries, data)


def write_shards(folder, count=2):
    paths = []
    for i in range(count):
        data = np.full(8, i, "<f4").tobytes()
        path = folder / f"m-{i + 1:05}-of-{count:05}.gguf"
        path.write_bytes(shard(i, count, [entry(f"t{i}", [8], 0, 0)], data, count))
        paths.append(path)
    return paths


def test_shards(tmp_path):
    first, second = write_shards(tmp_path)
    c = open_container(first)
    assert c.raw("t1").view("<f4").tolist() == [[1.0] * 8] and c.tensors["t1"].file == 1
    with pytest.raises(FileProblem, match="m-00001-of-00002"):
        open_container(second)
    second.unlink()
    with pytest.raises(FileProblem, match="m-00002-of-00002.gguf is missing"):
        open_container(first)


def test_shards_of_two_byte_orders(tmp_path):
    first, _ = write_shards(tmp_path)
    keys = [
        key("split.no", 2, struct.pack("<H", 0)),
        key("split.count", 2, struct.pack("<H", 2)),
    ]
    first.write_bytes(gguf(keys, [entry("t0", [8], 0, 0)], np.ones(8, "<f4").tobytes()))
    second = [
        key("split.no", 2, struct.pack(">H", 1), ">"),
        key("split.count", 2, struct.pack(">H", 2), ">"),
    ]
    data = np.full(8, 2, ">f4").tobytes()
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(
        gguf(second, [entry("t1", [8], 0, 0, ">")], data, order=">")
    )
    c = open_container(first)
    assert c.raw("t0").view("<f4").tolist() == [[1.0] * 8]
    assert c.raw("t1").view("<f4").tolist() == [[2.0] * 8]


def test_shards_that_do_not_belong_together(tmp_path):
    first, second = write_shards(tmp_path)
    second.write_bytes(shard(5, 9, [], b""))
    with pytest.raises(FileProblem, match="not shard 2 of 2"):
        open_container(first)
    renamed = tmp_path / "other.gguf"
    first.rename(renamed)
    with pytest.raises(FileProblem, match="-00001-of-00002"):
        open_container(renamed)
