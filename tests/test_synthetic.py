"""Synthetic models: the sizes of the real ones, weights of a sane spread, the same from a seed."""

import numpy as np
import pytest

from synapse_edu.config import Config
from synapse_edu.errors import BadArgument, FileProblem
from synapse_edu.formats.decode import decode
from synapse_edu.formats.layout import FORMATS
from synapse_edu.model.load import load
from synapse_edu.study import synthetic
from synapse_edu.study.cost import Cost

SCALED = [f for f in FORMATS if "d" in FORMATS[f].dtype.names]


@pytest.mark.parametrize("format", SCALED)
def test_blocks_have_the_spread_of_trained_weights(format):
    raw = synthetic.random_blocks(format, 64, 1024, np.random.default_rng(1))
    w = decode(raw, format)  # (64, 1024)
    assert w.shape == (64, 1024) and np.isfinite(w).all()
    assert abs(w.std() * 32 - 1) < 0.25  # 1/√1024 = 1/32
    assert abs(w.mean()) < 0.15 * w.std()
    again = synthetic.random_blocks(format, 64, 1024, np.random.default_rng(1))
    assert (raw == again).all()


def test_formats_without_a_scale_are_refused():
    with pytest.raises(BadArgument, match="MXFP4"):
        synthetic.random_blocks("MXFP4", 1, 32, np.random.default_rng(0))


@pytest.fixture
def tiny(monkeypatch):
    """A published name that stands for a model of a few hundred kilobytes."""
    config = Config.named("llama-3.2-1b").replace(
        n_layer=2, n_embd=256, n_head=4, n_head_kv=2, n_ff=512, n_vocab=300
    )
    monkeypatch.setattr(synthetic.Config, "named", lambda name: config)
    return config


@pytest.mark.parametrize("mix", ["Q4_K_M", "Q4_1", "F16"])
def test_a_made_model_runs_and_has_the_bytes_of_the_real_one(tiny, tmp_path, mix):
    path = synthetic.make("llama-3.2-1b", mix, folder=tmp_path)
    model = load(path, n_ctx=16)
    cost = Cost.of(tiny, mix)
    assert Cost.of_model(model).nbytes == cost.nbytes
    assert 0 < path.stat().st_size - cost.nbytes < 8192
    logits = model.prefill([1, 2, 3], model.new_cache(), logits="all")
    assert np.isfinite(logits).all() and 0.05 < logits.std() < 20
    assert len(np.unique(np.argmax(logits, axis=-1))) > 1  # the weights depend on the input


def test_made_once_and_the_same_from_the_same_seed(tiny, tmp_path):
    first = synthetic.make("llama-3.2-1b", folder=tmp_path / "a")
    stamp = first.stat().st_mtime_ns
    assert synthetic.make("llama-3.2-1b", folder=tmp_path / "a").stat().st_mtime_ns == stamp
    second = synthetic.make("llama-3.2-1b", folder=tmp_path / "b")
    other = synthetic.make("llama-3.2-1b", seed=1, folder=tmp_path / "b")
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()


def test_refusals(tmp_path, monkeypatch):
    with pytest.raises(BadArgument, match="llama-3.2-1b"):
        synthetic.make("llama-3.2-1c", folder=tmp_path)
    with pytest.raises(BadArgument, match="rotary"):
        synthetic.make("ministral-3-3b", folder=tmp_path)
    usage = synthetic.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(synthetic.shutil, "disk_usage", lambda _: usage._replace(free=10**6))
    with pytest.raises(FileProblem, match="no room"):
        synthetic.make("llama-3.2-1b", folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_real_size_of_llama_3_2_1b():
    assert round(Cost.of(Config.named("llama-3.2-1b"), "Q4_K_M").bytes_per_pass / 2**20, 1) == 762.8
