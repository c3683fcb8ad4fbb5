"""A class on one computer: with SYNAPSE_PACKED every process maps one packed copy."""

import numpy as np
import pytest

import synapse_edu as se

pytest.importorskip("numba")


def packed_files(folder):
    return sorted((path.name, path.stat().st_ino) for path in folder.rglob("*.packed"))


def logits():
    model = se.load("built-in", backend="fast", n_threads=1)
    return model.prefill(model.tokenizer.encode("Mia has a red ball."), model.new_cache())


def test_one_packed_copy_is_made_and_used_again(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("SYNAPSE_PACKED", raising=False)
    alone = logits()
    assert packed_files(tmp_path) == []
    monkeypatch.setenv("SYNAPSE_PACKED", str(tmp_path))
    first = logits()
    made = packed_files(tmp_path)
    assert len(made) == 1 and str(tmp_path) in capsys.readouterr().err
    second = logits()
    assert packed_files(tmp_path) == made and capsys.readouterr().err == ""
    for other in (first, second):
        assert np.array_equal(alone.view(np.uint32), other.view(np.uint32))


def test_a_folder_that_cannot_be_used_costs_nothing_but_memory(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("SYNAPSE_PACKED", str(tmp_path / "file"))
    assert np.isfinite(logits()).all()
