"""The hand-made model: its numbers, its answers for every history, and the int8 version."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.errors import BadArgument
from synapse_edu.model import handmade

ANSWER = [0, 3, 2, 13, 4, 7, 6, 1, 8, 11, 10]


def test_it_has_2560_numbers():
    sizes = {name: x.size for name, x in handmade.weights().items()}
    assert sum(sizes.values()) == 2560 and sum(sizes.values()) - sizes["E"] == 2304
    assert sizes["W1"] == sizes["W2"] == 512
    assert all(x.dtype == np.int8 for x in handmade.int8_weights().values())


def test_the_recorded_continuation():
    assert handmade.generate(0, 10) == ANSWER
    assert handmade.int8_generate(0, 10) == ANSWER


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 15), min_size=1, max_size=40))
def test_any_history_leads_to_the_rule(history):
    w, keys, values = handmade.weights(), [], []
    w8, keys8, values8 = handmade.int8_weights(), [], []
    for token in history:
        found = handmade.step(w, token, keys, values)
        assert (found["hidden"] > 0).sum() == 2
        logits = np.sort(found["logits"])
        assert logits[-1] >= 2 and logits[-2] <= 0.5 + 1e-12
        assert int(np.argmax(found["logits"])) == handmade.next_token(token)
        whole = handmade.int8_step(w8, token, keys8, values8)
        assert whole.dtype.kind == "i" and int(np.argmax(whole)) == handmade.next_token(token)


@pytest.mark.parametrize("token", [16, -1, 1.5, "0"])
def test_refuses_other_tokens(token):
    with pytest.raises(BadArgument, match="0 to 15"):
        handmade.generate(token, 1)
