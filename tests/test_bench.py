"""The bench: what it runs and in which order, that it measures, and the arithmetic of its table."""

import json
import re
import signal
from pathlib import Path

import pytest

from synapse_edu import cli
from synapse_edu.checkpoint import catalogue
from synapse_edu.errors import BadArgument, SynapseError, UnsupportedModel
from synapse_edu.study import bench, bench_side, bench_table
from synapse_edu.study.bench import Bench, Plan, Side

BUILT_IN = catalogue.built_in()


class Recorder:
    """In place of a side's process: keeps the order of the commands of all of them."""

    order = []
    seconds_a_token = 0.01

    def __init__(self, name, **options):
        self.name, self.options = name, options
        self.about = {"seconds": 1.0, "before": 5, "version": "9", "system": "CPU"}
        self.about["backend"] = "reference"

    def ask(self, command, n=0, **options):
        if command in ("decode", "prefill"):
            Recorder.order.append(self.name)
        return {"seconds": Recorder.seconds_a_token * max(1, n), "peak": 10}

    def close(self):
        pass


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setattr(bench, "Side", Recorder)
    monkeypatch.setattr(bench, "read_bandwidth", lambda n, repeats=5: 1e9 * repeats)
    monkeypatch.setattr(bench.time, "sleep", lambda s: None)
    monkeypatch.setattr(Recorder, "order", [])


def test_every_run_of_theirs_stands_between_two_of_ours(recorded):
    plan = Plan(BUILT_IN, against="lib", repeats=2, starts=1, prefills=(8,), depth=16)
    found = Bench(plan).run()
    (run,) = found["runs"]
    assert [t["name"] for t in run["tests"]] == [
        "decode",
        "prefill of 8",
        "decode at a depth of 16",
    ]
    assert run["bandwidth"] == 5e9  # the best of all that were measured
    order, warm = Recorder.order, ["ours", "off", "default"]
    measured = 2 * ["ours", "off", "ours", "default"]
    assert order == warm + 3 * (warm + measured)  # the first: how many tokens take a second
    for test in run["tests"]:
        assert {side: len(s) for side, s in test["seconds"].items()} == {
            "ours": 4, "off": 2, "default": 2,
        }  # fmt: skip


def test_what_does_not_fit_or_takes_too_long_is_left_out_with_a_reason(recorded, monkeypatch):
    (run,) = Bench(Plan(BUILT_IN, prefills=(8, 512), depth=4096)).run()["runs"]
    assert [t["name"] for t in run["tests"]] == ["decode", "prefill of 8"]
    assert all("context is 256" in reason for reason in run["left_out"])
    assert len(run["left_out"]) == 2
    monkeypatch.setattr(Recorder, "seconds_a_token", 10)
    (run,) = Bench(Plan(BUILT_IN, prefills=(8,), depth=60)).run()["runs"]
    assert "10 minutes" in run["left_out"][0]


def test_wrong_settings_are_refused():
    for wrong in (dict(repeats=0), dict(depth=0), dict(threads=(0,)), dict(starts=0)):
        with pytest.raises(BadArgument, match="at least 1"):
            Bench(Plan(BUILT_IN, **wrong))


def found(theirs=True):
    """A result with round numbers."""
    tests = [
        {"name": "decode", "tokens": 10, "seconds": {"ours": [1.0, 2.0, 1.0]}},
        {"name": "prefill of 64", "tokens": 64, "seconds": {"ours": [0.5]}},
        {
            "name": "decode at a depth of 100",
            "tokens": 10,
            "depth": 100,
            "seconds": {"ours": [2.0]},
        },
    ]
    run = {
        "n_threads": 2, "bandwidth": 2000.0, "start": {"ours": [0.5, 0.7, 0.6]},
        "first_start": {"ours": 3.0}, "tests": tests, "left_out": ["a test: because"],
        "peak_memory": {"ours": 440}, "before_loading": {"ours": 40}, "cache_bytes": 300,
        "theirs": {},
    }  # fmt: skip
    if theirs:
        tests[0]["seconds"] |= {"off": [4.0, 5.0, 6.0], "default": [2.5, 9.0, 2.5]}
        run["start"] |= {"off": [1.2], "default": [1.5]}
        run["peak_memory"] |= {"off": 600, "default": 500}
        run["theirs"] = {"version": "9.9", "system": "CPU"}
    machine = {"cpu": "a processor", "cores": 2, "memory": 2**33, "system": "Linux x86_64"}
    model = {"name": "m", "bytes": 100, "bytes_per_pass": 90, "cache_bytes_per_position": 2}
    return {"machine": machine, "load": 0.1, "model": model, "backend": "fast", "runs": [run]}


def test_medians_the_faster_setting_and_ratios():
    f = found()
    (run,) = f["runs"]
    decode, prefill, deep = run["tests"]
    assert bench_table.rate(decode, "ours") == 10 and bench_table.rate(prefill, "ours") == 128
    assert bench_table.theirs(decode) == (4, "default")
    assert bench_table.ratio(decode) == 2.5 and bench_table.ratio(prefill) is None
    assert bench_table.bytes_read(f, decode) == 90 + 5 * 2
    assert bench_table.share_of_bandwidth(f, run, decode) == 0.5
    assert bench_table.bytes_read(f, deep) == 90 + 105 * 2
    assert bench_table.share_of_memory(f, run) == 1.1
    (row,) = bench_table.summary(f)
    assert row["decode"]["ratio"] == 2.5 and row["decode"]["flash attention"] == "default"


def test_the_table():
    text = "\n".join(bench_table.lines(found()))
    assert re.search(r"decode +10\.0 t/s +4\.0 t/s +2\.50 × +flash attention default +50 %", text)
    assert re.search(r"first token after a start +0\.60 s +1\.20 s +2\.00 × +3\.00 s", text)
    assert "1.10 × tensors and cache" in text and "a test: because" in text
    assert "a processor, 2 cores, 8 GiB" in text and "llama.cpp 9.9" in text
    assert "Other work" not in text
    busy = found() | {"load": 3.0}
    assert any("load 3.0" in line for line in bench_table.lines(busy))
    alone = found(theirs=False) | {"load": None}
    alone["runs"][0]["peak_memory"]["ours"] = None
    text = "\n".join(bench_table.lines(alone))
    assert "50 % of the bandwidth" in text and "not told by this system" in text
    assert "×" not in text


def test_a_real_run_on_the_command_line(tmp_path, capsys):
    out = tmp_path / "bench.json"
    command = ["bench", "--quick", "--threads", "1", "--repeats", "1", "--json", str(out)]
    assert cli.main([*command, "--model", "built-in", "--backend", "reference"]) == 0
    text, progress = capsys.readouterr()
    assert "backend reference" in text and "no threads of its own" in text
    assert "before loading" in text and "× tensors" not in text  # Python is larger than the model
    assert "prefill of 64\n" in progress
    assert re.search(r"decode +\d+\.\d t/s", text) and "prefill of 64" in text
    record = json.loads(out.read_text(encoding="utf-8"))
    (run,) = record["runs"]
    assert run["bandwidth"] > 1e8 and 0 < run["start"]["ours"][0] < 100
    assert all(s > 0 for test in run["tests"] for s in test["seconds"]["ours"])
    assert record["summary"][0]["prefill of 64"]["ours"] > 1
    assert record["model"]["bytes"] < BUILT_IN.stat().st_size


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--threads", "two"], "such as 1,2"),
        (["--against", "nowhere/libllama.so", "--repeats", "1"], "no such library"),
        (["--make", "llama-9"], "llama-9"),
        (["--model", "smolm2"], "smollm2"),
        (["--make", "llama-3.2-1b", "--model", "smollm2"], "one of the two"),
        (["--json", "nowhere/found.json"], "folder does not exist"),
        (["--repeats", "-3"], "at least 1"),
        (["--depth", "-5"], "at least 1"),
        (["--threads", "999"], "from 1 to 256"),
    ],
)
def test_refusals_on_the_command_line(arguments, words, capsys):
    assert cli.main(["bench", "--quick", *arguments]) == 1
    assert words in capsys.readouterr().err


OPTIONS = dict(model=str(BUILT_IN), n_ctx=32, n_threads=1, n_vocab=595, backend="reference")


def test_a_side_rewinds_and_evaluates_what_it_is_told():
    side = Side("ours", **OPTIONS)
    try:
        side.ask("fill", depth=12)
        assert side.ask("decode", n=2, depth=12)["seconds"] > 0
        assert side.ask("prefill", n=8)["seconds"] > 0
        with pytest.raises(SynapseError, match="truncate"):
            side.ask("decode", n=1, depth=30)  # never filled
    finally:
        side.close()


def test_a_process_that_dies_is_a_sentence():
    side = Side("ours", **OPTIONS)
    try:
        side.process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        with pytest.raises(UnsupportedModel, match="ended by itself"):
            side.ask("memory")
    finally:
        side.close()


def test_a_side_does_not_inherit_the_peak_of_its_parent():
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux counts the memory of a process from its start")
    block = bytearray(400 * 2**20)
    block[::4096] = b"x" * len(block[::4096])
    assert bench_side.peak_memory() > 400 * 2**20
    side = Side("ours", **OPTIONS)
    try:
        peak = side.ask("memory")["peak"]
    finally:
        side.close()
    assert side.about["before"] < peak < 400 * 2**20
