"""Recorded speeds: read from the package's data, complete, and of a machine that is described."""

import pytest

from synapse_edu.errors import FileProblem
from synapse_edu.study import recorded
from synapse_edu.study.machine import describe, sentence


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(FileProblem, match="training"):
        recorded.recorded("nothing")


def test_this_machine_is_described():
    about = describe()
    assert about["cores"] >= 1 and about["cpu"] and about["system"]
    assert str(about["cores"]) in sentence(about)
    assert "core," in sentence(about | {"cores": 1})
    assert "GiB" not in sentence(about | {"memory": None})
