"""The package's front door: quick to import, and the names that notebooks use."""

import subprocess
import sys

import pytest

import synapse_edu as se


def test_import_loads_nothing_heavy():
    code = (
        "import sys, synapse_edu; "
        "print([m for m in ('numpy', 'numba', 'matplotlib', 'IPython') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", se.__all__)
def test_every_name_is_there_and_explained(name):
    assert name in dir(se)
    value = getattr(se, name)
    if callable(value):
        assert value.__doc__


def test_unknown_names_say_so():
    with pytest.raises(AttributeError, match="nothing"):
        se.nothing  # noqa: B018


def test_walk_of_a_file_by_path(tmp_path):
    from golden_data import FORWARD

    path = tmp_path / "modèle 1.gguf"
    path.write_bytes((FORWARD / "llama_q4_0.gguf").read_bytes())
    model = se.load(str(path))
    assert se.load_tokenizer(path).encode("hello") == model.tokenizer.encode("hello")
    assert len(list(model.walk(1, model.new_cache()))) == len(model.plan())
