"""What chapter 03 says about the recorded runs, asserted from the file."""

import numpy as np
import pytest

from synapse_edu.study import ablation_grid, variants
from synapse_edu.study import ablation_report as report
from synapse_edu.study.recipe import Recipe
from synapse_edu.study.recorded import recorded


@pytest.fixture(scope="module")
def results():
    return recorded("ablations")


def verdicts(results, name):
    return {row.arm: row.verdict for row in report.rows(results, name)}


def test_the_record_is_of_this_grid(results):
    """Every run that the package would make today, with three seeds and its machine."""
    base = variants.Design(**results["base"])
    recipe = Recipe(**results["recipe"])
    assert recipe == ablation_grid.BUDGET and len(results["seeds"]) == 3
    wanted = ablation_grid.runs_of(base, recipe, results["seeds"])
    assert results["runs"].keys() == wanted.keys()
    for name, (design, mine) in wanted.items():
        run = results["runs"][name]
        assert variants.Design(**run["design"]) == design and Recipe(**run["recipe"]) == mine
        assert run["n_params"] == design.n_params and run["machine"]["cores"] >= 1
    assert 0 < results["minutes"] < 120


def test_the_norms_place_decides_only_in_the_deep_model(results):
    for n in (2, 8):
        assert set(verdicts(results, f"norm_place_{n}").values()) == {"undecided"}
    assert verdicts(results, "norm_place_16") == {
        "pre": "undecided",
        "post": "worse",
        "none": "broke down",
    }
    none = report.rows(results, "norm_place_16")[2]
    assert none.n_broke == 3 and {run["broke_at"] for run in none.runs} == {25}


def test_rmsnorm_is_as_good_as_layernorm(results):
    assert verdicts(results, "norm")["layer"] == "undecided"
    assert abs(report.rows(results, "norm")[1].difference) < 0.02


def test_rotations_win_inside_and_lose_outside(results):
    assert verdicts(results, "positions") == {
        "rope": "undecided",
        "learned": "worse",
        "none": "worse",
    }
    rope, learned, none = (
        report.by_position(results, "positions", arm)[0] for arm in ("rope", "learned", "none")
    )
    assert rope[15] > 2 * rope[3] and rope[15] > none[15]
    assert learned[4] > 1.8 * learned[3]  # at once, where the table ends
    assert none[4] - none[3] < rope[4] - rope[3] + 0.1 and np.all(np.diff(none[[3, 7, 11, 15]]) > 0)


def test_equal_parameters_where_the_chapter_says_so(results):
    sizes = {row.arm: row.n_params for row in report.rows(results, "ffn")}
    assert sizes["swiglu"] == sizes["relu"] == sizes["gelu"]
    base = variants.Design(**results["base"])
    assert sizes["swiglu_4d"] - sizes["swiglu"] == base.n_layer * 4 * base.n_embd**2


def test_a_smaller_rate_helps_post_norm_but_not_enough(results):
    slow = {row.arm: row for row in report.rows(results, "norm_place_16_slow")}
    fast = {row.arm: row for row in report.rows(results, "norm_place_16")}
    assert slow["post"].verdict == "worse" and slow["post"].mean < fast["post"].mean - 0.5
    assert fast["pre"].mean < slow["pre"].mean - 0.5


def test_what_three_runs_cannot_decide(results):
    for name in ("kv_heads", "ffn", "tied"):
        assert set(verdicts(results, name).values()) == {"undecided"}
    ffn = {row.arm: row.mean for row in report.rows(results, "ffn")}
    assert max(ffn["relu"], ffn["gelu"]) < ffn["swiglu"]


def test_stretching(results):
    by_name = {name: np.array(rows) for name, rows in results["stretched"].items()}
    assert by_name["positions divided"].mean(0).min() > 2
    gap = by_name["larger base"] - by_name["as trained"]  # (seeds, parts)
    inside, beyond = gap[:, :4].mean(1), gap[:, 4:].mean(1)  # (seeds,) each
    cost, half = report.interval(inside)
    assert cost > half and np.all(beyond < 0)
    assert abs(report.interval(beyond)[0]) < report.interval(beyond)[1]  # undecided
