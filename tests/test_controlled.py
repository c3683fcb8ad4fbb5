"""The arms of the small experiments: one factor each, the same budget, the same start."""

from dataclasses import asdict, replace

import numpy as np

import synapse_edu as se
from synapse_edu.study import controlled, posttraining, preference
from synapse_edu.study.export import parameters
from synapse_edu.study.recorded import recorded


def changed(a, b):
    a, b = (asdict(controlled.ARMS[name]) for name in (a, b))
    return {name for name in a if a[name] != b[name]}


def test_arms_differ_in_what_their_names_say():
    assert changed("as it was", "no weather") == {"weather"}
    assert changed("as it was, rate × 3", "no weather, rate × 3") == {"weather"}
    assert changed("as it was, steps × 2.5", "no weather, steps × 2.5") == {"weather"}
    assert changed("as it was", "as it was, steps × 2.5") == {"n_steps"}
    assert changed("as it was", "as it was, rate × 3") == {"learning_rate", "final_rate"}
    assert changed("no weather", "no weather, tests in the data") == {"tests"}
    assert changed("as it was, rate × 3", "rate × 3, held") == {"final_rate"}
    assert changed("long documents", "short documents") == {"n_words", "n_pos"}


def test_every_arm_sees_as_many_tokens_a_step():
    sizes = {arm.recipe.n_batch * arm.recipe.n_pos for arm in controlled.ARMS.values()}
    assert sizes == {controlled.N_TOKENS}


def test_a_run_follows_from_its_seed():
    model = se.load()
    given = parameters(model), model.config, model.tokenizer
    arm = replace(controlled.ARMS["no weather, tests in the data"], n_steps=2)
    (p, losses), (q, again) = (controlled.run(*given, arm, seed=7) for _ in range(2))
    other, _ = controlled.run(*given, arm, seed=8)
    assert losses == again and all(np.array_equal(p[n], q[n]) for n in p)
    assert not np.array_equal(p["token_embd"], other["token_embd"])


def test_requests_of_the_test_are_none_of_the_training():
    size = posttraining.Size(n_notes=20, n_test=20)
    asked = set(posttraining.requests(size.n_test, "test", kept=True))
    assert len(asked) == 20 and not asked & set(posttraining.requests(size.n_notes, "1/0"))


def test_the_record_is_of_these_arms_and_of_this_model():
    record = recorded("controlled")
    assert {name: arm["arm"] for name, arm in record["arms"].items()} == {
        name: asdict(arm) for name, arm in controlled.ARMS.items()
    }
    assert record["lengths"] == list(controlled.LENGTHS)
    assert all(
        [run["seed"] for run in x["runs"]] == record["seeds"] for x in record["arms"].values()
    )
    model = se.load()
    given = parameters(model), model.config, model.tokenizer
    fresh = controlled.found(*given, n=20, seed="fresh")
    assert abs(fresh - record["before"]["fresh"]) < 0.05  # another machine may round once otherwise


def test_the_record_of_post_training_is_whole():
    record = recorded("posttraining")
    for name in posttraining.JUDGES:
        assert [len(rounds) for rounds in record[name]] == [2] * len(record["seeds"])
    for name in posttraining.RATES:
        for run in record[name]:
            assert len(run["losses"]) == preference.CAREFUL.n_steps
            assert abs(run["losses"][0] - np.log(2)) < 1e-5
