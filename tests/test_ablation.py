"""Ablations: one change at a time, the same budget, runs that are kept, and their report."""

import json
from dataclasses import replace

import numpy as np
import pytest
from story_parts import tokenizer

from synapse_edu.errors import BadArgument, FileProblem
from synapse_edu.study import ablation, ablation_grid, ablation_report, storyworld, stretching
from synapse_edu.study.ablation import ablate
from synapse_edu.study.ablation_grid import BUDGET, experiments
from synapse_edu.study.ablation_run import LONG, Text, run, text_rows
from synapse_edu.study.backward import rope_tables
from synapse_edu.study.curriculum import batch, encode_story
from synapse_edu.study.variants import Design

BASE = Design(595, n_embd=24, n_head=4, n_head_kv=4, n_ff=64)
TINY = replace(BUDGET, n_steps=3, n_batch=2, n_pos=32, n_warmup=1)


@pytest.fixture(scope="module")
def text():
    return Text.of(tokenizer(), 32, n_rows=2)


@pytest.fixture(scope="module")
def two_layers(tmp_path_factory):
    """All experiments in seconds: no design is deeper than two layers."""
    kept = ablation_grid.norm_place
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ablation_grid, "norm_place", lambda base, n: kept(base, min(n, 2)))
        yield


@pytest.fixture(scope="module")
def results(two_layers, text, tmp_path_factory):
    out = tmp_path_factory.mktemp("ablations")
    return out, ablate(out, BASE, tokenizer(), TINY, (1, 2), text, say=lambda line: None)


def test_each_experiment_changes_one_thing():
    """One field, or the width that keeps the parameters equal; never the budget of one arm."""
    for experiment in experiments(Design(595)):
        reference = experiment.arms[experiment.reference]
        for arm, design in experiment.arms.items():
            changed = set(design.changed_from(reference))
            assert len(changed - {"n_ff"}) <= 1 and len(changed) <= 2, (experiment.name, arm)
            assert changed or arm == experiment.reference
    by_name = {e.name: e for e in experiments(Design(595))}
    sizes = {arm: design.n_params for arm, design in by_name["ffn"].arms.items()}
    assert sizes["swiglu"] == sizes["relu"] == sizes["gelu"] < sizes["swiglu_4d"]
    assert {d.n_head_kv for d in by_name["kv_heads"].arms.values()} == {4, 2, 1}
    depths = [by_name[f"norm_place_{n}"].arms["pre"].n_layer for n in (2, 8, 16)]
    assert depths == [2, 8, 16]


def test_the_base_must_have_a_width_that_three_divides():
    with pytest.raises(BadArgument, match="8/3"):
        list(experiments(replace(BASE, n_ff=48)))


def test_what_judges_is_never_trained_on(text):
    """No row of the judging text is one of training's; its other pairs are in no training story."""
    recipe = replace(TINY, n_batch=64)
    rows = {tuple(row) for step in range(20) for row in batch(tokenizer(), BASE, recipe, step)[0]}
    assert len(rows) > 1000
    new = text_rows(tokenizer(), 200, 32, "judge/new")[0]
    assert not {tuple(row) for row in new} & rows
    told = [s.text for s in storyworld.stories(300)]
    pairs = [s.text for s in storyworld.stories(300, held_out=True)]
    assert not set(told) & set(pairs)
    for tokens, targets in (text.new, text.new_pairs, text.long):
        assert np.array_equal(tokens[:, 1:], targets[:, :-1]) and not tokens[:, 0].any()
    assert text.long[0].shape[1] == LONG


def test_rows_are_stories_one_after_another():
    tokens, targets = text_rows(tokenizer(), 2, 200, 5)
    for row in np.hstack([tokens, targets[:, -1:]]):
        first = int(np.flatnonzero(row[1:] == 0)[0]) + 1
        told = tokenizer().decode(row[1:first])
        assert encode_story(tokenizer(), storyworld.story(3))[0][0] == 0
        assert told.endswith(".") and " has " in told


def test_the_whole_and_its_parts(results):
    out, found = results
    assert found["seeds"] == [1, 2] and set(found["experiments"]) == {
        e.name for e in experiments(BASE)
    }
    for name, one in found["runs"].items():
        assert 0 < one["loss"] < 10 and one["broke_at"] is None, name
        assert len(one["loss_by_position"]) == 16 and one["machine"]["cores"] > 0
        layers = one["design"]["n_layer"] + 1
        for what in ("activations", "gradients"):
            assert all(len(one[what][when]) == layers for when in ("before", "after"))
    assert json.loads(ablation.as_text(found)) == json.loads(json.dumps(found))
    shared = found["experiments"]
    assert shared["norm"]["arms"]["rms"] == shared["ffn"]["arms"]["swiglu"]  # trained once


def test_resuming_gives_the_same_numbers(results, text):
    """A run that is missing is made again: the others are kept, and its numbers are the same."""
    out, found = results
    lost, kept = "norm-layer_seed-2", "seed-1"
    whole = json.loads((out / f"{lost}.json").read_text(encoding="utf-8"))
    (out / f"{lost}.json").unlink()
    (out / f"{lost}.json.123.part").write_text("broken off", encoding="utf-8")
    stamp = (out / f"{kept}.json").stat().st_mtime_ns
    again = ablate(out, BASE, tokenizer(), TINY, (1, 2), text, say=lambda line: None)
    assert (out / f"{kept}.json").stat().st_mtime_ns == stamp
    whole.pop("seconds"), again["runs"][lost].pop("seconds")
    assert again["runs"][lost] == whole


def test_another_budget_is_refused(results, text):
    out, _ = results
    other = replace(TINY, learning_rate=1e-2)
    with pytest.raises(BadArgument, match="another budget"):
        ablate(out, BASE, tokenizer(), other, (1, 2), text, say=lambda line: None)


@pytest.mark.parametrize("damaged", ["", "[]", "{", '{"design": 1}'])
def test_a_damaged_run_is_named(tmp_path, damaged):
    path = tmp_path / "seed-1.json"
    path.write_text(damaged, encoding="utf-8")
    with pytest.raises(FileProblem, match="not a finished run"):
        ablation.stored(path, BASE, TINY)


def test_training_lowers_the_loss_of_new_text(text):
    short, longer = (run(BASE, replace(TINY, n_steps=n), tokenizer(), text) for n in (1, 60))
    assert longer["loss"] < short["loss"] - 1
    assert run(BASE, replace(TINY, n_steps=1), tokenizer(), text)["loss"] == short["loss"]
    other = run(BASE, replace(TINY, n_steps=1, seed=2), tokenizer(), text)
    assert other["loss"] != short["loss"]


def test_a_run_that_breaks_down_says_so(text):
    """Without norms sixteen layers overflow: no exception, no warning, and valid JSON."""
    design = replace(BASE, n_layer=16, norm_place="none")
    broken = run(design, replace(TINY, n_steps=50, learning_rate=10.0), tokenizer(), text)
    assert broken["broke_at"] == 25 and broken["loss"] is None
    assert "NaN" not in json.dumps(broken)


def test_the_command(two_layers, text, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(ablation, "Design", lambda n_vocab: BASE)
    monkeypatch.setattr(ablation, "BUDGET", TINY)
    monkeypatch.setattr(Text, "of", lambda tokenizer, n_pos: text)
    ablation.main(["--out", str(tmp_path), "--seed", "5", "--seeds", "2", "--steps", "1"])
    said = capsys.readouterr().out
    assert "rotations, a learned table, nothing" in said and "±" in said
    found = json.loads((tmp_path / "ablations.json").read_text(encoding="utf-8"))
    assert found["seeds"] == [5, 6] and found["recipe"]["n_steps"] == 1
    assert {run["recipe"]["seed"] for run in found["runs"].values()} == {5, 6}


# --- the report --------------------------------------------------------------------------------
def test_interval_is_students():
    """Three numbers worked by hand: mean 2, deviation 1, half 4.303 / √3."""
    assert ablation_report.interval([1, 2, 3]) == pytest.approx((2, 4.303 / np.sqrt(3)))
    assert ablation_report.interval([4.0]) == (4.0, float("inf"))
    rng = np.random.default_rng(0)
    inside = [abs(m) <= h for m, h in map(ablation_report.interval, rng.standard_normal((4000, 3)))]
    assert 0.94 < np.mean(inside) < 0.96


def made(losses):
    """Results of one experiment, from the losses of each arm."""
    runs = {
        f"{arm}{i}": {"loss": x, "broke_at": None if x else 25, "n_params": 10}
        for arm, values in losses.items()
        for i, x in enumerate(values)
    }
    arms = {arm: [f"{arm}{i}" for i in range(len(values))] for arm, values in losses.items()}
    return {"experiments": {"e": {"question": "?", "reference": "a", "arms": arms}}, "runs": runs}


def test_verdicts_compare_seed_by_seed():
    found = made(
        {
            "b": (1.11, 1.52, 0.91),  # always 0.1 more, though the seeds differ by far more
            "a": (1.0, 1.4, 0.8),
            "c": (0.9, 1.6, 0.9),
            "d": (0.7, 1.1, 0.52),
            "e": (1.0, None, 0.9),
        }
    )
    table = ablation_report.rows(found, "e")
    assert [row.arm for row in table] == ["a", "b", "c", "d", "e"]
    assert [row.verdict for row in table[1:]] == ["worse", "undecided", "better", "broke down"]
    assert table[1].difference == pytest.approx(0.1133, abs=1e-3)
    assert table[1].half > 0.5 > table[1].difference_half
    text = ablation_report.table(found, "e")
    assert "broke down in 1 of 3 runs" in text and "+0.113" in text
    with pytest.raises(BadArgument, match="Did you mean 'e'"):
        ablation_report.rows(found, "ee")


# --- longer rows -------------------------------------------------------------------------------
def test_schedules_of_angles():
    n_pos, half = 40, BASE.head_dim // 2

    def angles(**options):
        cos, sin = stretching.tables(BASE, n_pos, **options)  # (T, hd/2) each
        return np.unwrap(np.arctan2(sin.astype(float), cos), axis=0)  # (T, hd/2)

    plain, divided, slower = angles(), angles(divide=4), angles(stretch=4)
    for pair in zip(stretching.tables(BASE, n_pos), rope_tables(BASE, n_pos), strict=True):
        assert np.array_equal(*pair)
    assert np.allclose(divided[::4], plain[:10], atol=1e-5)  # no angle is new
    assert np.allclose(slower[:, 0], plain[:, 0], atol=1e-5)
    assert np.allclose(4 * slower[:, half - 1], plain[:, half - 1], atol=1e-4)


def test_stretching_judges_one_model_by_each_schedule(results, text):
    _, found = results
    assert set(found["stretched"]) == {"as trained", "positions divided", "larger base"}
    as_trained = found["stretched"]["as trained"]
    runs = [found["runs"][key] for key in found["experiments"]["positions"]["arms"]["rope"]]
    assert as_trained == [run["loss_by_position"] for run in runs]
    assert found["stretched"]["positions divided"] != as_trained
