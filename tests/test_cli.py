"""The command line: what it prints, what it returns, and that no traceback reaches a user."""

import re
import subprocess
import sys

import numpy as np
import pytest

from synapse_edu import __version__, cli, describe, lab
from synapse_edu.errors import BadArgument

COMMANDS = ["lab", "models", "inspect", "convert", "generate", "bench", "exercises"]
COMMANDS += ["book", "offline-kit", "doctor"]


def run(*arguments):
    """The command in a process of its own, as a user starts it."""
    return subprocess.run(
        [sys.executable, "-m", "synapse_edu", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


@pytest.fixture
def jupyter(monkeypatch):
    """Stands in for JupyterLab: collects the arguments that it would have been given."""
    calls = []
    monkeypatch.setattr(lab, "run_jupyter", calls.append)
    return calls


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert end.value.code == 0
    for command in COMMANDS:
        assert re.search(rf"^\s+{command}\s", text, re.M)


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"synapse-edu {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([command, "--help"])
    assert end.value.code == 0
    assert len(capsys.readouterr().out) > 200


@pytest.mark.parametrize("wrong", [[], ["labb"], ["lab", "--port", "0"], ["lab", "--port", "x"]])
def test_a_wrong_command_line_exits_with_2(wrong, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(wrong)
    assert end.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_lab_opens_copies_and_says_where(jupyter, tmp_path, capsys, monkeypatch):
    chapters = tmp_path / "chapters"
    chapters.mkdir()
    (chapters / "00_start_here.ipynb").write_bytes(b'{"cells": []}')
    monkeypatch.setattr(lab, "originals", lambda: (chapters, tmp_path))
    work = tmp_path / "my work"
    assert cli.main(["lab", "--work", str(work), "--no-browser", "--port", "9123"]) == 0
    assert str(work) in capsys.readouterr().out
    assert (work / "00_start_here.ipynb").is_file()
    (arguments,) = jupyter
    assert f"--ServerApp.root_dir={work}" in arguments
    assert "--no-browser" in arguments and "--ServerApp.port=9123" in arguments


def test_in_place_opens_the_originals_of_a_clone(jupyter, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lab, "originals", lambda: (tmp_path / "notebooks", tmp_path))
    assert cli.main(["lab", "--in-place"]) == 0
    assert f"--ServerApp.root_dir={tmp_path / 'notebooks'}" in jupyter[0]
    monkeypatch.setattr(lab, "originals", lambda: (tmp_path / "notebooks", None))
    assert cli.main(["lab", "--in-place"]) == 1
    assert "installed package" in capsys.readouterr().err


@pytest.mark.parametrize(
    "problem, code, words",
    [
        (BadArgument("The file is cut short; fetch it again."), 1, "cut short"),
        (KeyboardInterrupt(), 130, "Stopped"),
    ],
)
def test_a_refusal_is_one_sentence_and_an_exit_code(monkeypatch, capsys, problem, code, words):
    def refuse(*_):
        raise problem

    monkeypatch.setattr(lab, "refresh", refuse)
    assert cli.main(["lab"]) == code
    message = capsys.readouterr().err
    assert words in message and "Traceback" not in message


def test_as_a_process_a_refusal_shows_no_traceback(tmp_path):
    done = run("inspect", tmp_path / "no such file.gguf")
    assert done.returncode == 1
    assert "no such file.gguf" in done.stderr and "Traceback" not in done.stderr


MODEL = "built-in"


def test_inspect_describes_a_file(capsys):
    assert cli.main(["inspect", MODEL, "--tensors", "--metadata"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"GGUF version 3, little-endian, \d+ metadata keys, \d+ tensors", text)
    assert re.search(r"n_layer +\d", text)
    assert "blk.0.attn_q.weight" in text and "general.architecture = llama" in text
    assert "tokenizer.ggml.tokens = " in text


def test_inspect_lets_no_text_steer_the_terminal():
    assert describe.plain("a\x1b[31m b\n") == "a␛[31m b␊"
    assert len(describe.plain("x" * 10_000)) == describe.WIDTH + 1
    assert describe.value(np.float32(1.5)) == "1.5 (float32)"
    assert describe.value(np.arange(9)) == "9 elements: 0, 1, 2, 3, …"


def test_models_lists_every_name(capsys):
    assert cli.main(["models"]) == 0
    text = capsys.readouterr().out
    for name in ("built-in", "smollm2"):
        assert name in text


def test_models_get_gives_the_path(capsys):
    assert cli.main(["models", "get", "built-in"]) == 0
    assert capsys.readouterr().out.strip().endswith(".gguf")


@pytest.mark.parametrize("arguments, words", [(["get"], "which"), (["get", "smolm2"], "smollm2")])
def test_models_get_needs_a_known_name(arguments, words, capsys):
    assert cli.main(["models", *arguments]) == 1
    assert words in capsys.readouterr().err


def test_generate_is_the_same_for_the_same_seed(capsys):
    arguments = ["generate", "Once upon", "--model", MODEL, "--max-tokens", "5"]
    arguments += ["--temperature", "0.9", "--top-k", "20"]
    texts = []
    for seed in ("1", "1", "2"):
        assert cli.main([*arguments, "--seed", seed]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0].startswith("Once upon") and len(texts[0]) > len("Once upon\n")
    assert texts[0] == texts[1]


def test_generate_refuses_a_wrong_setting(capsys):
    assert cli.main(["generate", "Once", "--model", MODEL, "--top-p", "2"]) == 1
    assert "top_p" in capsys.readouterr().err
