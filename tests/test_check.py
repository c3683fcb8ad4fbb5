"""check(): a right answer passes, and every kind of wrong one is told apart."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_edu.classroom import check, hint, progress, tasks
from synapse_edu.classroom import progress as progress_function
from synapse_edu.classroom.compare import compare
from synapse_edu.classroom.tasks import Task
from synapse_edu.errors import BadArgument


@pytest.fixture(autouse=True)
def private_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNAPSE_PROGRESS", str(tmp_path / "progress"))


def scale(x):
    """The reference of a task: divide by the root of the last axis' length."""
    return x / np.sqrt(np.float32(x.shape[-1]))


TASK = Task(
    "99.scale",
    scale,
    hints=("Which length?", "The root of it."),
    mistakes=lambda: [(lambda x: x, "missing 1/√d"), (lambda x: x / x.shape[-1], "1/d")],
    inputs=lambda rng: [
        (rng.normal(size=(3, 4)).astype(np.float32),),
        (np.zeros((1, 1), np.float32),),
        (rng.normal(size=(2, 16)).astype(np.float32),),
    ],
    dtype=np.float32,
)


def in_place(x):
    x /= np.sqrt(np.float32(x.shape[-1]))
    return x


@pytest.mark.parametrize(
    "answer, status, words",
    [
        (scale, "right", "Right"),
        (lambda x: scale(np.array(x)), "right", "Right"),
        (None, "not attempted", "Not attempted"),
        (..., "not attempted", "Not attempted"),
        (lambda x: None, "not attempted", "returns nothing"),
        (3, "wrong type", "is a function"),
        (lambda x: 1 / 0, "raised", "ZeroDivisionError"),
        (lambda: 1, "raised", "TypeError"),
        (lambda x: "text", "wrong type", "array"),
        (lambda x: scale(x).ravel(), "wrong shape", "(3, 4)"),
        (lambda x: scale(x).astype(np.float64), "wrong dtype", "float32"),
        (lambda x: x, "wrong numbers", "missing 1/√d"),
        (lambda x: x / x.shape[-1], "wrong numbers", "1/d"),
        (lambda x: scale(x) + np.float32(0.1), "wrong numbers", "first at index"),
        (in_place, "mutated input", "changed its argument"),
        (lambda x: np.full_like(x, np.nan), "wrong numbers", "yours is nan"),
    ],
)
def test_answers_that_are_functions(answer, status, words):
    verdict = TASK.verdict(answer)
    assert verdict.status == status and words in verdict.message


def test_a_function_that_raises_not_implemented_is_not_attempted():
    def untouched(x):
        raise NotImplementedError

    assert TASK.verdict(untouched).status == "not attempted"


def test_an_answer_that_answers_every_comparison_is_not_believed():
    class Yes(np.ndarray):
        def __eq__(self, other):
            return True

        __hash__ = None

    class Anything:
        def __eq__(self, other):
            return True

        __hash__ = None

        def __float__(self):
            raise ValueError

    fake = np.zeros((3, 4), np.float32).view(Yes)
    assert not TASK.verdict(lambda x: fake)
    for right in (3, 2.5, "text", True, np.ones(3)):
        assert not compare(Anything(), right)


@pytest.mark.parametrize(
    "answer, right, status",
    [
        (4, 4, "right"),
        (np.int64(4), 4, "right"),
        (4.0, 4, "right"),
        (np.array([4]), 4, "right"),
        (5, 4, "wrong numbers"),
        (True, 1, "wrong type"),
        ("4", 4, "wrong type"),
        ([4], 4, "wrong type"),
        (float("nan"), 4, "wrong numbers"),
        (float("inf"), 4.5, "wrong numbers"),
        (4.5 * (1 + 1e-9), 4.5, "right"),
        (4.5 * 1.001, 4.5, "wrong numbers"),
        ("yes", "yes", "right"),
        ("no", "yes", "wrong numbers"),
        (True, True, "right"),
        (1, True, "wrong type"),
        ([1, 2], np.array([1, 2]), "right"),
        ([1, 2, 3], np.array([1, 2]), "wrong shape"),
        ([[1], [2, 3]], np.array([1, 2]), "wrong type"),
        (np.array([1, 2], object), np.array([1, 2]), "wrong type"),
        (np.array([], np.float32), np.array([], np.float32), "right"),
        (2**60 + 1, 2**60, "wrong numbers"),
        ([0.0, 1.0], np.array([-np.inf, 1.0]), "wrong numbers"),
        ([-np.inf, 1.0], np.array([-np.inf, 1.0]), "right"),
        (0.0, -np.inf, "wrong numbers"),
    ],
)
def test_values(answer, right, status):
    assert compare(answer, right).status == status


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 10**9), st.integers(-(10**9), 10**9))
def test_no_other_whole_number_passes(right, off):
    assert bool(compare(right + off, right)) == (off == 0)


def test_the_first_wrong_index_and_the_number_of_wrong_ones():
    right = np.arange(6.0).reshape(2, 3)
    mine = right.copy()
    mine[1, 0], mine[1, 2] = 9, 8
    assert compare(mine, right).message.startswith(
        "2 of 6 numbers are wrong, first at index (1, 0)"
    )


def test_a_mistake_that_is_known_is_named():
    task = Task("99.n", lambda: 3, mistakes=lambda: [(9, "heads counted as key/value heads")])
    assert "key/value heads" in task.verdict(9).message
    assert "Probable cause" not in task.verdict(8).message


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(tasks, "TASKS", dict(tasks.TASKS))
    return tasks.register(TASK)


def test_check_says_one_line_and_is_true_only_if_right(registered):
    assert check(TASK.name, scale) and repr(check(TASK.name, scale)).startswith("✓ 99.scale")
    assert not check(TASK.name, ...) and repr(check(TASK.name)).startswith("· 99.scale")
    assert repr(check(TASK.name, lambda x: x)).startswith("✗ 99.scale")


def test_hints_come_one_by_one(registered, capsys):
    hint(TASK.name)
    hint(TASK.name, 2)
    assert capsys.readouterr().out == "Which length?\nThe root of it.\n"
    for n in (0, 3, "1"):
        with pytest.raises(BadArgument, match="1 to 2"):
            hint(TASK.name, n)


def test_an_unknown_check_names_those_of_its_chapter(registered):
    with pytest.raises(BadArgument, match="99.scale"):
        check("99.nothing", 1)
    with pytest.raises(BadArgument) as told:
        check("nope", 1)
    assert len(str(told.value)) < 200 and "02.scale" in str(told.value)
    with pytest.raises(BadArgument, match="two tasks"):
        tasks.register(TASK)


def test_progress_is_kept_and_a_right_answer_stays_right(registered):
    assert repr(progress()) == "Nothing has been answered yet."
    check(TASK.name, ...)
    assert progress() == {}
    check(TASK.name, scale)
    check(TASK.name, lambda x: x)
    assert progress() == {TASK.name: {"status": "right", "tries": 2}}
    assert "1 of 1 right." in repr(progress_function())


@pytest.mark.parametrize("content", ["", "[]", '{"99.scale": 3}', '{"99.scale": {}}'])
def test_damaged_progress_is_no_obstacle(registered, tmp_path, content):
    folder = tmp_path / "progress"
    folder.mkdir()
    (folder / "progress.json").write_text(content, encoding="utf-8")
    repr(progress())
    assert check(TASK.name, scale)
    kept = json.loads((folder / "progress.json").read_text(encoding="utf-8"))
    assert kept[TASK.name]["status"] == "right"


def test_an_unwritable_place_is_no_obstacle(registered, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("SYNAPSE_PROGRESS", str(tmp_path / "file" / "below"))
    assert check(TASK.name, scale)
    said = capsys.readouterr().out
    assert said.count("cannot be kept in") == 1 and str(tmp_path / "file" / "below") in said
    assert check(TASK.name, scale) and capsys.readouterr().out == ""  # once is enough
    assert progress() == {TASK.name: {"status": "right", "tries": 2}}


@pytest.mark.parametrize(
    "answer, right, factor",
    [(4, 37, False), (1, 2, False), (4.0, 37, False), (500, 2000, True), (0.5, 0.125, True)],
)
def test_how_far_does_not_give_a_small_whole_number_away(answer, right, factor):
    message = compare(answer, right).message
    assert ("times" in message) is factor
    assert ("too small" in message) is (answer < right)


def shipped():
    try:
        tasks.find("no such check")
    except BadArgument:
        pass
    return sorted(name for name in tasks.TASKS if not name.startswith("99."))


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_check_passes_its_own_answer_and_fails_the_rest(name):
    task = tasks.find(name)
    numbers = task.numbers()
    own = task.right if task.is_function else task.right(**numbers)
    assert task.verdict(own).status == "right"
    assert task.verdict(...).status == task.verdict(None).status == "not attempted"
    assert task.hints
    for wrong, cause in task.mistakes(**numbers) if task.mistakes else ():
        verdict = task.verdict(wrong)
        assert verdict.status == "wrong numbers" and cause in verdict.message
    for junk in (0, -1, "", [], object(), lambda *_: 0, float("nan")):
        assert not task.verdict(junk)
