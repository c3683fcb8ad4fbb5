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
    place,
    read_bandwidth,
    saturation,
    scaling,
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
    assert 1e5 < int8_macs("Q8_0", 32, 64, 4, 2) < 1e13
    with pytest.raises(BadArgument):
        read_bandwidth(-1)


def test_this_machine():
    found = measure(1)
    assert found.name == "this machine, 1 thread" and 1e6 < found.macs < 1e13
    assert measure(2, macs=5e9).macs == 5e9 and found.bandwidth > 1e8


def test_attention_stands_left_of_the_ridge_whatever_the_context():
    cost = Cost.of(Config.named("llama-3.2-1b"), "Q4_K_M")
    alone = [cost.attention(p) for p in (0, 93, 8191)]
    assert [a.macs / a.cache_bytes for a in alone] == [2, 2, 2]  # 65 536 over 32 KiB a position
    together = cost.attention(4096, n=64)
    assert together.macs / together.cache_bytes == pytest.approx(2 * 64, rel=0.01)
    assert MACHINE.bound(alone[0]) == "memory" and MACHINE.bound(together) == "arithmetic"


def test_predicted_beside_measured():
    cost = Cost.of(Config.named("llama-3.2-1b"), "Q4_K_M")
    phases = {"decode": cost.decode(0), "prefill": cost.prefill(64)}
    decode, prefill = place(MACHINE, phases, {"decode": 6.25})
    assert decode.predicted == MACHINE.tokens_per_second(phases["decode"])
    assert decode.share == 6.25 / decode.predicted and decode.bound == "memory"
    assert prefill.measured is None and prefill.share is None and prefill.bound == "arithmetic"


def test_scaling_and_where_it_saturates():
    seen = []
    rows = scaling(seen.append, [1, 2], repeats=2)
    assert seen == [1, 1, 1, 2, 2, 2]
    assert rows[0][2] == 1 and rows[1][2] == rows[0][1] / rows[1][1]
    assert saturation([(1, 8.0, 1), (2, 4.0, 2), (4, 2.0, 4)]) is None
    assert saturation([(1, 8.0, 1), (2, 7.9, 1.01), (4, 2.0, 4)]) == 1
    assert saturation([(1, 8.0, 1), (2, 4.0, 2), (4, 4.5, 1.8)]) == 2


def test_the_picture_in_words():
    cost = Cost.of(Config.named("smollm2-135m"))
    phases = {"decode": cost.decode(0), "prefill": cost.prefill(64)}
    found = view.render(MACHINE, phases, {"decode": 12.0})
    assert "decode" in found.alt and "memory-bound" in found.alt and "measured 12" in found.alt
    assert len(found.axes[0].lines) >= 5
    ceiling, hollow = found.axes[0].lines[2:4]  # after the roof and the ridge
    rate = MACHINE.attainable(place(MACHINE, phases)[0].intensity) / 1e9
    assert ceiling.get_ydata()[0] == pytest.approx(rate)
    share = 12.0 / MACHINE.tokens_per_second(phases["decode"])
    assert hollow.get_ydata()[0] == pytest.approx(rate * share)
    with pytest.raises(BadArgument):
        view.render(MACHINE, {})
