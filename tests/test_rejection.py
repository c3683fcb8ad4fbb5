"""Rejection sampling: drawing, scoring, selecting, and training on what was selected."""

from dataclasses import replace

import numpy as np
import pytest
from story_parts import small

import synapse_edu as se
from synapse_edu.errors import BadArgument
from synapse_edu.study import answers, judge, notes, rejection, story_model
from synapse_edu.study.export import export, parameters

NOTES = [notes.notes(i).text for i in range(3)]


@pytest.fixture(scope="module")
def built_in():
    model = se.load()
    return parameters(model), model.config, model.tokenizer


def test_parameters_are_those_of_the_file(built_in):
    p, config, _ = built_in
    model = se.load()
    assert {f"{name}.weight": x.shape for name, x in p.items()} == config.tensors()
    assert np.array_equal(p["token_embd"], model.weights.token_embd.rows())
    assert np.array_equal(p["blk.3.ffn_down"], model.weights.layers[3].ffn_down.rows())
    assert p["output_norm"].flags.writeable


def test_parameters_survive_a_file(tmp_path):
    from story_parts import learned

    p = story_model.initial(small(), 3)
    export(tmp_path / "m.gguf", small(), p, learned(), "F32")
    back = parameters(se.load(tmp_path / "m.gguf"))
    assert p.keys() == back.keys() and all(np.array_equal(p[n], back[n]) for n in p)


def test_parameters_refuses_an_output_of_its_own():
    from synapse_edu.study.tiny import random_model, tiny_config

    with pytest.raises(BadArgument, match="output"):
        parameters(random_model(tiny_config(tied=False)))


def test_drawn_answers(built_in):
    rows = answers.draw(*built_in, NOTES, n=2, seed=1)
    assert [len(row) for row in rows] == [2, 2, 2]
    tok = built_in[2]
    for told, row in zip(NOTES, rows, strict=True):
        for a in row:
            assert a.notes == told and list(a.prompt) == tok.encode(told)
            assert a.text == tok.decode([i for i in a.ids if i]) and len(a.ids) <= answers.LONGEST
            assert a.ids[-1] == 0 or len(a.ids) == answers.LONGEST
            assert a.judged == judge.judge(told, a.text)
    again = answers.draw(*built_in, NOTES, n=2, seed=1)
    assert [[a.ids for a in row] for row in again] == [[a.ids for a in row] for row in rows]


def test_log_probabilities_are_those_of_the_walk(built_in):
    """Against the engine: the sum over the answer's tokens, one pass a token."""
    p, config, tok = built_in
    from synapse_edu.model.sampling import log_probabilities

    rows = answers.draw(p, config, tok, NOTES[:2], n=1, seed=3)
    model = se.load(numerics="textbook")
    found = answers.log_probabilities(p, config, [row[0] for row in rows])
    for value, (a,) in zip(found, rows, strict=True):
        ids = [*a.prompt, *a.ids]
        logits = model.prefill(ids[:-1], model.new_cache(), logits="all")
        each = [log_probabilities(logits[t - 1])[ids[t]] for t in range(len(a.prompt), len(ids))]
        assert value == pytest.approx(sum(each), abs=2e-3)


def test_selection_and_pairs(built_in):
    p, config, _ = built_in
    rows = answers.draw(*built_in, NOTES, n=4, seed=2)
    for judged in (judge.faithful, judge.fluent):
        sums = answers.log_probabilities(p, config, [a for row in rows for a in row])
        ranks = iter(
            judged(a.judged, s / len(a.ids))
            for a, s in zip((a for row in rows for a in row), sums, strict=True)
        )
        ranked = [[next(ranks) for _ in row] for row in rows]
        best = rejection.select(p, config, rows, judged)
        for row, rank, chosen in zip(rows, ranked, best, strict=True):
            assert chosen is row[rank.index(max(rank))]
        found = rejection.pairs(p, config, rows, judged)
        assert len(found) == sum(len(set(rank)) > 1 for rank in ranked)
    same = [[rows[0][0], rows[0][0]]]
    assert rejection.pairs(p, config, same, judge.faithful) == []


def test_training_on_answers_makes_them_likelier(built_in):
    p, config, _ = built_in
    rows = answers.draw(*built_in, NOTES, n=2, seed=4)
    kept = [row[0] for row in rows]
    q, losses = rejection.fine_tune(p, config, kept, replace(rejection.GENTLE, n_steps=6))
    before, after = (answers.log_probabilities(x, config, kept) for x in (p, q))
    assert (after > before).all() and len(losses) == 6
    assert losses[0] == pytest.approx(-before.sum() / sum(len(a.ids) for a in kept), rel=1e-3)


def test_a_report_counts():
    told = "Mia has a red ball."

    def said(text):
        return answers.Answer(told, text, (0,), (0,), judge.judge(told, text))

    found = rejection.report(
        [said("The ball is red. The ball is red."), said("The ball is blue. The"), said("")]
    )
    assert found["sentences"] == pytest.approx(4 / 3)
    assert (found["supported"], found["false"], found["broken"]) == (0.5, 0.25, 0.25)
    assert found["flawless"] == found["silent"] == pytest.approx(1 / 3)
    assert found["repeated"] == 0.25 and found["untold"] == 0


def test_an_empty_batch_is_refused():
    with pytest.raises(BadArgument, match="at least one"):
        answers.Batch.of([])
