"""Editions: what the student gets, what a class's numbers change, and that nothing else changes."""

import ast
import json
import re

import pytest

from synapse_edu import cli
from synapse_edu.classroom import editions, solution, tasks
from synapse_edu.classroom.editions import marks, task_of
from synapse_edu.errors import BadArgument

NAMES = sorted(editions.notebooks())
HIDDEN_SEED = r", seed=(\d\d+)\)"
READ = {name: editions.read(path) for name, path in editions.notebooks().items()}


@pytest.fixture
def released(tmp_path):
    editions.release(tmp_path / "out")
    return {path.parent.name: path for path in sorted((tmp_path / "out").glob("*/*.ipynb"))}


def cells(name, **wanted):
    return [
        cell
        for cell in READ[name]["cells"]
        if all(marks(cell).get(key) == value for key, value in wanted.items())
    ]


def test_there_is_a_notebook_for_each_chapter_from_01_to_11():
    assert [name[:2] for name in NAMES] == [f"{n:02}" for n in range(1, 12)]


@pytest.mark.parametrize("name", NAMES)
def test_a_teachers_notebook_is_complete(name):
    heads = [c["metadata"]["synapse_edu"] for c in READ[name]["cells"] if "minutes" in str(c)]
    heads = [h for h in heads if "minutes" in h]
    assert 3 <= len(cells(name, grade=True)) <= 8
    assert len(heads) == len(cells(name, grade=True))
    kinds = {head["kind"] for head in heads}
    assert {"debug", "predict"} <= kinds, kinds
    assert all(h["difficulty"] in ("easy", "medium", "hard") for h in heads)
    assert all(3 <= head["minutes"] <= 30 for head in heads)
    ids = [marks(cell)["grade_id"] for cell in READ[name]["cells"]]
    assert len(set(ids)) == len(ids)
    # every cell says what it is, so that nothing can be edited that should not be
    assert all(marks(cell).get("schema_version") == 3 for cell in READ[name]["cells"])


def test_every_task_is_asked_in_its_chapters_notebook_and_nowhere_else():
    asked = [
        (name[:2], found)
        for name in NAMES
        for cell in cells(name, grade=True, solution=False)
        for found in re.findall(r'insist\("([^"]+)", \w+\)', cell["source"])
    ]
    assert sorted(task for _, task in asked) == sorted(t for t in tasks.TASKS if t[:2] == "ex")
    assert all(task.startswith(f"ex{chapter}.") for chapter, task in asked)


@pytest.mark.parametrize("name", NAMES)
def test_the_student_edition_has_no_solution_and_no_hidden_test(name, released):
    text = released[name].read_text(encoding="utf-8")
    assert "SOLUTION" not in text and "HIDDEN" not in text
    student = editions.read(released[name])
    for teachers, cell in zip(READ[name]["cells"], student["cells"], strict=True):
        if not marks(teachers).get("solution"):
            continue
        solved = editions.SOLUTION.search(teachers["source"])
        lines = (solved[0] if solved else teachers["source"]).split("\n")
        for line in lines[1:-1] if solved else lines:
            assert len(line.strip()) < 12 or line not in cell["source"], line
    for cell in student["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None
        if cell["cell_type"] == "code":
            ast.parse(cell["source"])


@pytest.mark.parametrize("name", NAMES)
def test_everything_else_is_the_same_byte_for_byte(name, released):
    student = editions.read(released[name])
    assert student["metadata"] == READ[name]["metadata"]
    for teachers, cell in zip(READ[name]["cells"], student["cells"], strict=True):
        assert cell["id"] == teachers["id"]
        mark = marks(teachers)
        if not mark.get("solution") and not mark.get("grade"):
            assert cell["source"] == teachers["source"]
        changed = {k: v for k, v in cell["metadata"].items() if k not in ("editable", "deletable")}
        assert changed == teachers["metadata"]
        assert cell["metadata"].get("editable", True) != bool(mark.get("locked"))
    again = json.dumps(json.loads(released[name].read_text(encoding="utf-8")), indent=1,
                       sort_keys=True, ensure_ascii=False)  # fmt: skip
    assert released[name].read_text(encoding="utf-8") == again + "\n"


def test_a_release_is_the_same_twice_and_never_overwrites_work(tmp_path, capsys):
    out = str(tmp_path / "out")
    assert cli.main(["exercises", "release", out]) == 0
    path = next((tmp_path / "out").glob("02*/*.ipynb"))
    first = path.read_bytes()
    assert cli.main(["exercises", "release", out]) == 0
    assert path.read_bytes() == first
    path.write_bytes(first.replace(b"# YOUR CODE HERE", b"x = 1", 1))
    capsys.readouterr()
    assert cli.main(["exercises", "release", out]) == 1
    assert "somebody may have worked" in capsys.readouterr().err
    assert path.read_bytes() != first
    assert cli.main(["exercises", "release", out, "--force"]) == 0
    assert path.read_bytes() == first


def test_a_class_seed_changes_one_line_a_notebook(tmp_path):
    editions.release(tmp_path / "a")
    editions.release(tmp_path / "b", class_seed=77)
    for path in sorted((tmp_path / "a").glob("*/*.ipynb")):
        a = path.read_text(encoding="utf-8").split("\n")
        b = (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_text("utf-8").split("\n")
        different = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
        assert len(different) == 1
        assert "use_class_seed(0)" in different[0][0] and "use_class_seed(77)" in different[0][1]


def test_the_teachers_edition_of_a_class_has_hidden_seeds_of_its_own(tmp_path):
    seeds = []
    for edition in ("a", "b"):
        editions.release(tmp_path / edition, class_seed=77, teacher=True)
        path = next((tmp_path / edition).glob("02*/*.ipynb"))
        text = path.read_text(encoding="utf-8")
        assert "BEGIN SOLUTION" in text and "use_class_seed(77)" in text
        seeds.append(re.findall(HIDDEN_SEED, text))
    public = re.findall(HIDDEN_SEED, json.dumps(READ["02_one_token_step_by_step"]))
    assert len(seeds[0]) == len(public) > 3
    assert not set(seeds[0]) & set(seeds[1]) and not set(seeds[0]) & set(public)


def test_the_list_names_every_task(capsys):
    assert cli.main(["exercises", "list"]) == 0
    text = capsys.readouterr().out
    assert text.count(" min ") == sum(len(cells(name, grade=True)) for name in NAMES)


@pytest.mark.parametrize(
    "words",
    [
        ["release"],
        ["grade"],
        ["releas", "x"],
        ["release", "x", "--class-seed", "-1"],
        ["grade", "x", "--memory", "0"],
    ],
)
def test_a_wrong_command_line_is_refused(words):
    with pytest.raises(SystemExit) as end:
        cli.main(["exercises", *words])
    assert end.value.code == 2


def test_a_solution_is_shown_after_the_first_attempt(tmp_path, monkeypatch, capsys):
    from synapse_edu.classroom import check

    monkeypatch.setenv("SYNAPSE_PROGRESS", str(tmp_path))
    with pytest.raises(BadArgument, match="Try ex02.top_k first"):
        solution("ex02.top_k")
    check("ex02.top_k", ...)
    with pytest.raises(BadArgument, match="first attempt"):
        solution("ex02.top_k")
    check("ex02.top_k", lambda logits, k: logits)
    solution("ex02.top_k")
    text = capsys.readouterr().out
    assert "argsort(-logits" in text and "SOLUTION" not in text
    with pytest.raises(BadArgument, match="did you mean|Did you mean"):
        solution("ex02.topk")


def test_every_computed_task_has_a_solution_to_show():
    for name in sorted(t for t in tasks.TASKS if t[:2] == "ex"):
        assert "=" in editions.solution_of(name) or "return" in editions.solution_of(name)


def test_a_cell_without_markers_is_cut_whole():
    assert editions.without_solution("x = 1") == editions.STUB
    assert editions.without_solution("because", "markdown") == "YOUR ANSWER HERE"
    source = "def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\n\nf()"
    expected = "def f():\n    # YOUR CODE HERE\n    raise NotImplementedError()\n\nf()"
    assert editions.without_solution(source) == expected


def test_tasks_of_cells_are_known():
    for name in NAMES:
        found = {task_of(cell) for cell in READ[name]["cells"]} - {None}
        written = {f"ex{name[:2]}.{marks(c)['grade_id']}" for c in cells(name, grade=True,
                   solution=True)}  # fmt: skip
        assert found - written <= set(tasks.TASKS)
