"""Packed weights: a file that is written once, by one process, shared and checked."""

import dataclasses
import errno
import os
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from golden_data import FORWARD, arrays, differing

import synapse_edu as se
from synapse_edu.model import fast, fast_packed, fast_packed_file
from synapse_edu.model.fast_memory import matrices_of
from synapse_edu.model.llama import Llama
from synapse_edu.ops.fast.kernels import mode_of
from synapse_edu.study.export import export, parameters
from synapse_edu.study.tiny import random_model, tiny_config

NAME = "llama_mix_q4km"


def right(model):
    """Whether a model computes the recorded logits, by bits."""
    want = arrays(NAME)
    ids = want["tokens"].tolist()
    got = model.prefill(ids, model.new_cache(len(ids)), logits="all")  # (n, n_vocab)
    return differing(got[want["logit_pos"]], want["scalar.step"]) == 0


def packed_model(monkeypatch, folder):
    """A model whose packed copy goes to a file in `folder`."""
    monkeypatch.setattr(fast_packed, "IN_MEMORY", 0)
    monkeypatch.setattr(fast, "LET_GO", 1)  # the file's pages, after every pass
    monkeypatch.setattr(fast_packed, "_folder", lambda: folder)
    return se.load(FORWARD / f"{NAME}.gguf", backend="fast", n_threads=1)


def test_a_large_model_is_packed_into_a_file_once(monkeypatch, tmp_path, capsys):
    folder, made = tmp_path / "packed", []
    for said in ("Packing the weights", ""):
        model = packed_model(monkeypatch, folder)
        assert right(model)
        printed = capsys.readouterr().err
        assert said in printed if said else not printed
        (file,) = folder.iterdir()
        made.append(file.stat().st_ino)
    assert made[0] == made[1]
    if os.name == "posix":
        assert folder.stat().st_mode & 0o077 == 0


def test_one_changed_byte_anywhere_is_another_packed_copy(monkeypatch, tmp_path):
    model, rng = packed_model(monkeypatch, tmp_path), np.random.default_rng(0)
    matrices = [*matrices_of(model.weights), model.weights.output]
    to_pack = [(m, mode_of(m.format, model.numerics)) for m in matrices]
    names = {fast_packed._identity(to_pack)}
    for i in rng.choice(len(to_pack), 5, replace=False):
        matrix, mode = to_pack[i]
        raw = matrix.raw.copy()
        raw[rng.integers(raw.shape[0]), rng.integers(raw.shape[1])] ^= 1
        other = [*to_pack[:i], (dataclasses.replace(matrix, raw=raw), mode), *to_pack[i + 1 :]]
        names.add(fast_packed._identity(other))
    assert len(names) == 6


def test_packed_copies_of_other_versions_are_deleted_after_a_day(monkeypatch, tmp_path):
    ours = f"{fast_packed.source_key()[:16]}-0.packed"
    ages = {"old-1.packed": 2, "old-2.packed": 0.5, ours: 2, "note.txt": 200}
    for name, days in ages.items():
        (tmp_path / name).write_bytes(b"x")
        then = time.time() - days * 86_400
        os.utime(tmp_path / name, (then, then))
    model = packed_model(monkeypatch, tmp_path)
    model.decode(0, model.new_cache(4))
    left = {path.name for path in tmp_path.iterdir()}
    assert {"old-2.packed", ours, "note.txt"} < left and len(left) == 4


def test_where_no_file_can_be_written_it_stays_in_memory(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    model = packed_model(monkeypatch, tmp_path / "file")
    assert right(model)


def test_a_damaged_copy_is_noticed_and_packed_anew(monkeypatch, tmp_path):
    assert right(packed_model(monkeypatch, tmp_path))
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    rng = np.random.default_rng(1)
    places = [0, len(whole) - 1, *rng.integers(len(whole), size=3)]
    for damaged in [*(flipped(whole, place) for place in places), whole[:-1], b"", whole + b"x"]:
        file.write_bytes(damaged)
        assert right(packed_model(monkeypatch, tmp_path))
        assert file.read_bytes() == whole and [*tmp_path.iterdir()] == [file]


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_a_full_disk_costs_memory_and_leaves_nothing(monkeypatch, tmp_path):
    free = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
    assert right(packed_model(monkeypatch, tmp_path))
    assert [*tmp_path.iterdir()] == []


def test_a_disk_that_fills_up_midway_costs_memory_and_leaves_nothing(monkeypatch, tmp_path):
    written, pack = [], fast_packed_file.pack

    def pack_some(m, mode, room):
        written.append(m)
        if len(written) == 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        pack(m, mode, room)

    monkeypatch.setattr(fast_packed_file, "pack", pack_some)
    assert right(packed_model(monkeypatch, tmp_path))
    assert len(written) == 5 and [*tmp_path.iterdir()] == []


def test_an_interruption_while_packing_leaves_nothing(monkeypatch, tmp_path):
    def interrupt(m, mode, room):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(fast_packed_file, "pack", interrupt)
        with pytest.raises(KeyboardInterrupt):
            right(packed_model(monkeypatch, tmp_path))
    assert [*tmp_path.iterdir()] == []
    assert right(packed_model(monkeypatch, tmp_path))


def test_the_second_process_waits_for_the_first(monkeypatch, tmp_path, capsys):
    assert right(packed_model(monkeypatch, tmp_path))
    (file,) = tmp_path.iterdir()
    done, part = file.read_bytes(), file.with_suffix(".part")
    file.unlink()
    part.write_bytes(b"begun")
    capsys.readouterr()

    def finish():
        part.write_bytes(done)
        os.replace(part, file)

    threading.Timer(0.5, finish).start()
    assert right(packed_model(monkeypatch, tmp_path))
    assert "waiting" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [file] and file.read_bytes() == done


def test_the_second_process_takes_over_when_the_first_died_or_gave_up(monkeypatch, tmp_path):
    assert right(packed_model(monkeypatch, tmp_path))
    (file,) = tmp_path.iterdir()
    part = file.with_suffix(".part")
    file.unlink()
    monkeypatch.setattr(fast_packed_file, "STALLED", 0.3)
    part.write_bytes(b"left by a process that was killed")
    assert right(packed_model(monkeypatch, tmp_path))
    assert [path.suffix for path in tmp_path.iterdir()] == [".packed"]

    file.unlink()
    monkeypatch.setattr(fast_packed_file, "STALLED", 30)
    part.write_bytes(b"of a process that gives up")
    threading.Timer(0.5, part.unlink).start()
    assert right(packed_model(monkeypatch, tmp_path))  # in memory


def test_three_processes_at_once_make_one_copy(tmp_path):
    code = (
        "import sys, synapse_edu as se\n"
        "m = se.load(sys.argv[1], backend='fast', n_threads=1)\n"
        "print(m.prefill([1, 2, 3], m.new_cache(4)).tobytes().hex())"
    )
    command = [sys.executable, "-c", code, str(FORWARD / f"{NAME}.gguf")]
    environ = os.environ | {"SYNAPSE_PACKED": str(tmp_path)}
    runs = [
        subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    told = [run.communicate(timeout=300) for run in runs]
    assert len({out for out, _ in told}) == 1 and told[0][0]
    assert sum(b"Packing the weights" in err for _, err in told) == 1
    assert [path.suffix for path in tmp_path.iterdir()] == [".packed"]


def test_packed_weights_cannot_be_changed_in_place():
    tiny = random_model(tiny_config())
    model = Llama(tiny.config, tiny.weights, backend="fast", n_threads=1)
    model.decode(1, model.new_cache(4))
    for matrix in matrices_of(model.weights):
        with pytest.raises(ValueError, match="read-only"):
            matrix.raw[0, 0] ^= 1


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="only Linux tells")
def test_looked_up_rows_leave_no_second_copy_of_the_table_in_memory(tmp_path):
    config, rng = tiny_config(n_vocab=40_000, tied=True), np.random.default_rng(0)
    tiny = random_model(config)
    path, table = tmp_path / "table.gguf", (config.n_vocab, config.n_embd)
    weights = parameters(tiny) | {"token_embd": rng.normal(size=table).astype(np.float32)}
    export(path, tiny.config, weights, {}, "Q8_0")
    model = se.load(path, backend="fast", n_threads=1)
    cache = model.new_cache(208)
    model.prefill(rng.integers(config.n_vocab, size=200).tolist(), cache)
    for id in rng.integers(config.n_vocab, size=8).tolist():
        model.decode(id, cache)
    assert resident(path) < 0.1 * path.stat().st_size


def resident(path):
    """Bytes of a mapped file that count as memory of this process."""
    with open("/proc/self/smaps", encoding="utf-8") as lines:
        text = lines.read().split(str(path))[1:]
    return sum(1024 * int(part.split("Rss:")[1].split()[0]) for part in text)
