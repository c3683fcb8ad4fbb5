"""The roofline: its arithmetic on a known machine, and that measuring measures."""

import pytest

from synapse_edu.config import Config
from synapse_edu.errors import BadArgument
from synapse_edu.study.cost import Cost
from synapse_edu.study.roofline import (
    PRESETS,
    Machine,
    float32_macs,
    int8_macs,
    measure,
    read_bandwidth,
)
from synapse_edu.views import roofline as view

MACHINE = Machine("test", 10e9, 100e9, "made up")


def test_two_limits():
    assert MACHINE.ridge == 10
    assert MACHINE.attainable([1, 10, 100]).tolist() == [10e9, 100e9, 100e9]


def test_decode_is_bound_by_memory_and_prefill_by_arithmetic():
    cost = Cost.of(Config.named("llama-3.2-1b"), "Q4_K_M")
    decode, prefill = cost.decode(0), cost.prefill(512)
    assert MACHINE.bound(decode) == "memory" and MACHINE.bound(prefill) == "arithmetic"
    bytes_read = decode.weight_bytes + decode.cache_bytes
    assert MACHINE.tokens_per_second(decode) == pytest.approx(10e9 / bytes_read)
    assert MACHINE.tokens_per_second(prefill) == pytest.approx(512 * 100e9 / prefill.macs)
    for machine in PRESETS.values():
        assert machine.bound(decode) == "memory" and machine.source


def test_measuring():
    assert 1e8 < read_bandwidth(1, 2**24, 2) < 1e13
    assert 1e7 < float32_macs(64, 0.01) < 1e13
    assert 1e5 < int8_macs("Q8_0", 32, 64, 4, 0.01) < 1e13
    with pytest.raises(BadArgument):
        read_bandwidth(-1)


def test_this_machine():
    found = measure(1)
    assert found.name == "this machine, 1 thread" and 1e6 < found.macs < 1e13
    assert measure(2, macs=5e9).macs == 5e9 and found.bandwidth > 1e8


def test_the_picture_in_words():
    cost = Cost.of(Config.named("smollm2-135m"))
    phases = {"decode": cost.decode(0), "prefill": cost.prefill(64)}
    found = view.render(MACHINE, phases, {"decode": 12.0})
    assert "decode" in found.alt and "memory-bound" in found.alt and "measured 12" in found.alt
    assert len(found.axes[0].lines) >= 5
    with pytest.raises(BadArgument):
        view.render(MACHINE, {})
