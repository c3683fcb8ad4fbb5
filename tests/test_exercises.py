"""The exercises: every shipped solution passes, and what learners get wrong does not."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from synapse_edu.classroom import tasks

EXERCISES = sorted(name for name in tasks.TASKS if name.startswith("ex"))
MODULES = sorted(p.stem for p in (Path(__file__).parent / "wrong_answers").glob("ch*.py"))
WRONG = {
    name: answers
    for module in MODULES
    for name, answers in importlib.import_module(f"wrong_answers.{module}").WRONG.items()
}


@pytest.mark.parametrize("name", EXERCISES)
def test_ten_plausible_wrong_answers_fail(name):
    task, seen = tasks.find(name), []
    assert len(WRONG[name]) >= 10
    for number, answer in enumerate(WRONG[name]):
        with np.errstate(all="ignore"):
            verdict = task.verdict(answer)
        assert not verdict, f"wrong answer {number} passes"
        assert verdict.status not in ("not attempted", "patched"), f"{number}: {verdict}"
        seen.append(verdict.status)
    # Raising is a fault too, but a list of crashes would test nothing.
    assert sum(status == "raised" for status in seen) <= 2, seen


def test_no_wrong_answer_is_listed_for_a_task_that_is_not_there():
    assert sorted(WRONG) == EXERCISES


@pytest.mark.parametrize("name", EXERCISES)
def test_a_task_has_three_hints_and_the_right_answer_passes(name):
    task = tasks.find(name)
    assert len(task.hints) == 3 and len(set(task.hints)) == 3
    for seed in range(4):
        numbers = task.numbers(seed)
        right = task.right if task.is_function else task.right(**numbers)
        assert task.verdict(right, seed, seed).status == "right"
        for hint in task.hints:
            assert hint.format(**numbers)


@pytest.mark.parametrize("name", [n for n in EXERCISES if tasks.TASKS[n].draw])
def test_numbers_drawn_for_a_class_make_another_question_with_the_same_traps(name):
    task = tasks.find(name)
    questions = {task.question.format(**task.numbers(seed)) for seed in range(25)}
    assert len(questions) >= 3
    assert set(task.numbers(0)) == set(task.numbers(1))
    for seed in range(25):
        numbers = task.numbers(seed)
        right = task.right(**numbers)
        for wrong, cause in task.mistakes(**numbers):
            verdict = task.verdict(wrong, class_seed=seed)
            assert verdict.status == "wrong numbers", f"{numbers}: {wrong} is {right}, not {cause}"


@pytest.mark.parametrize("name", [n for n in EXERCISES if tasks.TASKS[n].is_function])
def test_inputs_follow_from_the_seed(name):
    from synapse_edu.classroom.plain import same

    task = tasks.find(name)
    assert all(same(a, b) for a, b in zip(task.cases(5), task.cases(5), strict=True))
    assert not all(same(a, b) for a, b in zip(task.cases(5), task.cases(6), strict=True))


@pytest.mark.parametrize("name", EXERCISES)
def test_every_mistake_that_is_named_is_recognised(name):
    task = tasks.find(name)
    assert task.mistakes is not None
    for wrong, cause in task.mistakes(**task.numbers()):
        with np.errstate(all="ignore"):
            verdict = task.verdict(wrong)
        assert verdict.status == "wrong numbers", (cause, verdict)
        assert cause in verdict.message, verdict
