"""Recorded speeds: read from the package's data, complete, and of a machine that is described."""

import json
import re

import pytest

from synapse_edu.errors import FileProblem
from synapse_edu.study import bench_table, recorded
from synapse_edu.study.machine import describe, sentence


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(FileProblem, match="training"):
        recorded.recorded("nothing")


@pytest.mark.parametrize("name", ["bench-smollm2", "bench-llama-3.2-1b"])
def test_recorded_benches_are_complete_and_name_no_place(name):
    found = recorded.recorded(name)
    assert [run["n_threads"] for run in found["runs"]] == [1, 2]
    assert found["backend"] == "fast" and sentence(found["machine"])
    for run, row in zip(found["runs"], bench_table.summary(found), strict=True):
        kinds = [test["name"].split(" of ")[0] for test in run["tests"]]
        assert kinds == ["decode", "prefill", "prefill", "decode at a depth"]
        assert {side for test in run["tests"] for side in test["seconds"]} == {
            "ours", "off", "default",
        }  # fmt: skip
        assert row == found["summary"][row["n_threads"] - 1]  # the table is of these runs
    assert not re.search(r"[\\/](tmp|home|root|work|Users)[\\/]", json.dumps(found))


def test_recorded_speeds_are_of_the_same_machine_and_complete():
    found = recorded.recorded("speed")
    assert found["machine"] == recorded.recorded("bench-smollm2")["machine"]
    assert {"Q4_1", "Q4_K", "Q6_K"} <= set(found["products"])
    for model in found["models"].values():
        assert [b for b, _ in model["prefill"]] == [2**i for i in range(10)]
        assert [d for d, _ in model["decode"]] == [0, 1024, 4096]
        assert all(rate > 0 for _, rate in model["prefill"] + model["decode"])


def test_this_machine_is_described():
    about = describe()
    assert about["cores"] >= 1 and about["cpu"] and about["system"]
    assert str(about["cores"]) in sentence(about)
    assert "core," in sentence(about | {"cores": 1})
    assert "GiB" not in sentence(about | {"memory": None})
