"""Grading: right work gets its points, and whatever else a folder holds gets none and no crash."""

import copy
import csv
import json
import os
import socket
import sys
import threading

import pytest

from synapse_edu import cli
from synapse_edu.classroom import editions, grade, isolate, tasks
from synapse_edu.classroom.editions import marks
from synapse_edu.classroom.plain import unpack
from synapse_edu.errors import BadArgument

NAME = "02_one_token_step_by_step"
TEACHER = editions.read(editions.notebooks()[NAME])
STUDENT = editions.strip(copy.deepcopy(TEACHER))
SOLUTIONS = {
    marks(cell)["grade_id"]: cell["source"] for cell in TEACHER["cells"] if marks(cell)["solution"]
}
QUICK = isolate.Limits(seconds=25, cell_seconds=2, memory=3072)


def by_id(notebook, grade_id):
    return next(cell for cell in notebook["cells"] if marks(cell).get("grade_id") == grade_id)


def solved(**answers):
    """The student edition with the shipped solutions, but for the answers that are given."""
    notebook = copy.deepcopy(STUDENT)
    for grade_id, source in (SOLUTIONS | answers).items():
        by_id(notebook, grade_id)["source"] = source
    return notebook


def hand_in(folder, notebook, student="ada"):
    path = folder / student / "02_exercises.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = notebook if isinstance(notebook, str | bytes) else json.dumps(notebook)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def graded(folder, notebook, **settings):
    path = hand_in(folder, notebook)
    settings = {"limits": QUICK} | settings
    return grade.grade("ada", NAME, path, **settings)


def statuses(result):
    return {mark.grade_id.removesuffix("-test"): mark.status for mark in result.marks}


ALL_RIGHT = dict.fromkeys(SOLUTIONS, "right")


@pytest.mark.parametrize("name", sorted(editions.notebooks()))
def test_the_teachers_own_solutions_get_every_point_with_any_numbers(name, tmp_path):
    editions.release(tmp_path / "class", class_seed=5, teacher=True)
    path = next((tmp_path / "class" / name).glob("*.ipynb"))
    result = grade.grade("ada", name, path, class_seed=5)
    assert result.notes == []
    assert {mark.status for mark in result.marks} <= {"right", "to be read"}
    assert all(mark.points == mark.most for mark in result.marks if not mark.to_read)


def test_an_untouched_edition_gets_nothing(tmp_path):
    result = graded(tmp_path, STUDENT)
    assert result.points == 0 and set(statuses(result).values()) == {"not attempted"}


def test_an_answer_for_other_numbers_is_wrong(tmp_path):
    result = graded(tmp_path, solved(cache="cache = 23040000"))
    assert statuses(result) == ALL_RIGHT
    other = graded(tmp_path, solved(cache="cache = 23040000"), class_seed=9)
    assert statuses(other) == ALL_RIGHT | {"cache": "wrong numbers"}


# --- damaged and rearranged notebooks ------------------------------------------------------------


def test_reordered_copied_missing_and_edited_cells(tmp_path):
    notebook = solved()
    # blocks of a task in reverse order; the tests before the answers
    notebook["cells"] = notebook["cells"][:2] + notebook["cells"][2:][::-1]
    assert statuses(graded(tmp_path, notebook)) == ALL_RIGHT

    notebook = solved(top_k="def top_k(logits, k):\n    return []")
    cells = notebook["cells"]
    again = copy.deepcopy(by_id(notebook, "top_k"))
    again["source"] = SOLUTIONS["top_k"]
    cells.append(again)  # a copy with the same id, below the wrong one
    cells.append(copy.deepcopy(by_id(notebook, "rope-test")))
    cells.remove(by_id(notebook, "attention-test"))
    cells.remove(by_id(notebook, "kv_heads"))
    result = graded(tmp_path, notebook)
    assert statuses(result) == ALL_RIGHT | {"kv_heads": "missing"}
    notes = " ".join(result.notes)
    assert "'top_k' is there 2 times" in notes and "'kv_heads' is missing" in notes
    assert "'attention-test' was missing and was put back" in notes


def test_tests_and_locked_cells_of_a_submission_do_not_count(tmp_path):
    notebook = solved(rope="def rope(x, p, base):\n    return x")
    by_id(notebook, "rope-test")["source"] = "print('right')"
    by_id(notebook, "setup")["source"] += "\nuse_class_seed(5)\ninsist = print"
    by_id(notebook, "cache-given")["source"] = "given = dict.fromkeys(('layers',), 1)"
    assert statuses(graded(tmp_path, notebook)) == ALL_RIGHT | {"rope": "wrong numbers"}


def test_cells_without_metadata_and_of_unknown_kinds(tmp_path):
    notebook = solved()
    notebook["cells"] += [{"cell_type": "code", "source": ["x = 1\n", "y = 2"]}]
    notebook["cells"] += [{"cell_type": "odd", "source": "", "metadata": []}, {}]
    notebook["cells"] += [{"cell_type": "code", "source": "1 +", "metadata": {"nbgrader": 3}}]
    notebook["cells"] += [{"cell_type": "code", "metadata": {"nbgrader": {"grade_id": ["rope"]}}}]
    result = graded(tmp_path, notebook)
    assert statuses(result) == ALL_RIGHT
    assert any("SyntaxError" in note for note in result.notes)


@pytest.mark.parametrize(
    "content, words",
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[]", "no list of cells"),
        ('{"cells": null}', "no list of cells"),
        ('{"cells": ["text"]}', "no list of cells"),
        ('{"cells": [{"cell_type": "code", "source": 3}]}', "no list of cells"),
        ('{"worksheets": []}', "no list of cells"),
        (b"\xff\xfe\x00", "not text"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_notebook_gets_a_sentence(content, words, tmp_path):
    result = graded(tmp_path, content)
    assert result.points == 0 and result.most == 14
    assert words in result.notes[0]


# --- answers that misbehave ----------------------------------------------------------------------

PATCHES = """
import synapse_edu.classroom as c
from synapse_edu.classroom import check as check_module
import builtins, numpy
c.insist = c.check = lambda *a, **k: True
import synapse_edu.classroom.tasks as t, synapse_edu.classroom.compare as cmp
t.compare = cmp.compare = lambda *a, **k: cmp.Verdict("right", "Right.")
t.Task.verdict = t.Task.judge = lambda *a, **k: cmp.Verdict("right", "Right.")
numpy.array_equal = numpy.allclose = lambda *a, **k: True
numpy.abs = lambda x: 0 * x
builtins.abs = lambda x: 0
insist = print
class Anything(numpy.ndarray):
    __eq__ = __le__ = __lt__ = lambda self, other: True
    __hash__ = None
    def __array_ufunc__(self, *a, **k): return True
def kv_heads(n_head, n_head_kv):
    return numpy.zeros(n_head).view(Anything)
"""


def test_patched_functions_and_false_equality_pass_nothing(tmp_path):
    result = graded(
        tmp_path,
        solved(
            kv_heads=PATCHES,
            rope="def rope(x, p, base):\n    return x",
            first_row="class Yes(int):\n    __eq__ = lambda s, o: True\nfirst_row = Yes(0)",
        ),
    )
    assert statuses(result) == ALL_RIGHT | {
        "kv_heads": "wrong numbers",
        "rope": "wrong numbers",
        "first_row": "wrong type",
    }


def test_loops_exits_and_crashes_cost_only_their_own_task(tmp_path):
    result = graded(
        tmp_path,
        solved(
            rms_norm="def rms_norm(x, g, eps):\n    while True: pass",
            rope="import sys\ndef rope(x, p, base):\n    sys.exit(0)",
            attention="import os\ndef attention(q, K, V):\n    os._exit(0)",
            kv_heads="import ctypes\ndef kv_heads(n, m):\n    ctypes.string_at(0)",
            top_k="while True: pass",
        ),
    )
    assert statuses(result) == ALL_RIGHT | {
        "rms_norm": "too long",
        "rope": "raised",
        "attention": "ended",
        "kv_heads": "ended",
        "top_k": "missing",
    }
    assert sum("ended before its time" in note for note in result.notes) == 2


def test_a_loop_that_cannot_be_interrupted_is_ended(tmp_path):
    stubborn = "while True:\n    try:\n        while len('x'): pass\n    except BaseException: pass"
    limits = isolate.Limits(seconds=4, cell_seconds=1, memory=3072)
    result = graded(tmp_path, solved(top_k=stubborn), limits=limits)
    assert statuses(result) == ALL_RIGHT | {"top_k": "missing"}
    assert "It was stopped: it ran longer than 4 seconds." in result.notes


def test_memory_is_limited(tmp_path):
    greedy = "def top_k(logits, k):\n    return bytearray(2**36)"
    result = graded(tmp_path, solved(top_k=greedy))
    assert statuses(result)["top_k"] in ("raised", "ended")
    assert statuses(result) | {"top_k": "right"} == ALL_RIGHT


def test_nothing_is_reached_over_the_network(tmp_path):
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.2)
    reached = []

    def listen():
        for _ in range(200):
            try:
                reached.append(server.accept())
            except OSError:
                if done.is_set():
                    return

    done = threading.Event()
    thread = threading.Thread(target=listen)
    thread.start()
    port = server.getsockname()[1]
    call = (
        f"import socket\ndef call():\n    socket.create_connection(('127.0.0.1', {port}), 2)\n"
        f"def top_k(logits, k):\n    call()\n    return []\n"
    )
    result = graded(tmp_path, solved(top_k=call, rope=f"{call}\ncall()"))
    done.set()
    thread.join()
    server.close()
    assert reached == []
    assert statuses(result)["top_k"] == "raised"


CHEATS = {
    # the right answer out of the package, out of memory, out of the teacher's notebook
    "rms_norm": "from synapse_edu.classroom.tasks import find\n"
    "rms_norm = lambda *a: find('ex02.rms_norm').right(*a)",
    "rope": "import gc\n"
    "found = [f for f in gc.get_objects() if 'ex02' in str(getattr(f, '__module__', ''))]\n"
    "rope = lambda *a: [f for f in found if getattr(f, '__name__', '') == 'rope'][0](*a)",
    "attention": "def attention(*a):\n"
    "    from synapse_edu.classroom.exercises.ex02 import attention as right\n"
    "    return right(*a)",
    "kv_heads": "def kv_heads(*a):\n    from synapse_edu.classroom import editions\n"
    "    names = {}\n    exec(editions.solution_of('ex02.kv_heads'), names)\n"
    "    return names['kv_heads'](*a)",
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hides files from a process")
def test_the_right_answers_are_not_within_reach(tmp_path):
    result = graded(tmp_path, solved(**CHEATS))
    assert statuses(result) == ALL_RIGHT | dict.fromkeys(CHEATS, "raised")


def test_a_check_in_a_cell_of_the_learners_own_stops_nothing(tmp_path):
    notebook = solved()
    source = "insist('ex02.top_k', top_k); hint('ex02.top_k'); x = check('ex02.rope', 3)"
    notebook["cells"].append({"cell_type": "code", "metadata": {}, "source": source})
    result = graded(tmp_path, notebook)
    assert statuses(result) == ALL_RIGHT and result.notes == []


SPIES = """
import os, pathlib, subprocess
tries = [
    lambda: pathlib.Path({secret!r}).read_text(),
    lambda: open({secret!r}, "w"),
    lambda: os.open({secret!r}, os.O_RDWR),
    lambda: os.remove({secret!r}),
    lambda: os.mkdir({secret!r} + "-folder"),
    lambda: subprocess.run(["python", "--version"]),
    lambda: os.kill({pid}, 0),
]
refused = 0
for each in tries:
    try:
        each()
    except PermissionError:
        refused += 1
pathlib.Path("mine.txt").write_text("fine")
def top_k(logits, k):
    return [refused] if pathlib.Path("mine.txt").read_text() == "fine" else None
"""


def test_files_and_processes_of_others_are_out_of_reach(tmp_path, monkeypatch):
    secret = tmp_path / "ben.ipynb"
    secret.write_text("answers", encoding="utf-8")
    seen = []
    monkeypatch.setattr(
        grade, "_judge", lambda name, line, cases, seed: seen.append(line) or grade.Verdict("x", "")
    )
    graded(tmp_path / "in", solved(top_k=SPIES.format(secret=str(secret), pid=os.getpid())))
    line = next(line for line in seen if line["task"] == "ex02.top_k")
    values = {unpack(outcome["value"])[0] for outcome in line["outcomes"]}
    assert values == {7 if sys.platform == "linux" else 6}  # elsewhere it can be read
    assert secret.read_text(encoding="utf-8") == "answers"
    assert not (tmp_path / "ben.ipynb-folder").exists()


# --- feedback ------------------------------------------------------------------------------------

LEAKS = {
    "rms_norm": "raise ValueError(repr(args))",
    "rope": "raise type(f'X{args}', (Exception,), {})",
    "attention": "return repr(args)",
    "kv_heads": "return type(f'X{args}', (), {})()",
    "top_k": "seen.append(args); print(args); return args[0]",
}


def test_feedback_never_shows_a_hidden_input_or_an_expected_value(tmp_path):
    hidden, numbers = 424242, set()
    for name in LEAKS:
        for k in range(3):
            for arguments in tasks.find(f"ex02.{name}").cases(hidden + k):
                floats = [x for a in arguments if hasattr(a, "ravel") for x in a.ravel()]
                numbers |= {f"{float(x):.4f}" for x in floats if x % 1}
    assert len(numbers) > 200
    head = "seen = []\ndef {}(*args):\n    {}"
    notebook = solved(**{name: head.format(name, body) for name, body in LEAKS.items()})
    tail = {"cell_type": "code", "metadata": {}, "source": "raise ValueError(repr(seen))"}
    notebook["cells"].append(tail)
    hand_in(tmp_path / "in", notebook)
    out = tmp_path / "out"
    words = ["exercises", "grade", str(tmp_path / "in"), "--out", str(out)]
    assert cli.main([*words, "--hidden-seed", str(hidden), "--seconds", "25"]) == 0
    page = out / "feedback" / "ada" / f"{NAME}.html"
    for path in (page, out / "grades.csv", out / "totals.csv"):
        text = path.read_text(encoding="utf-8")
        assert [x for x in numbers if x[:-1] in text] == []
        assert "HIDDEN" not in text and "insist" not in text and str(hidden) not in text
    assert "It gave another shape." in page.read_text(encoding="utf-8")


def test_feedback_names_the_probable_cause_and_escapes_everything(tmp_path):
    student = "<b>Zoë & co"
    notebook = solved(rope="def rope(x, p, base):\n    return x")
    hand_in(tmp_path / "in", notebook, student)
    out = tmp_path / "out"
    assert cli.main(["exercises", "grade", str(tmp_path / "in"), "--out", str(out)]) == 0
    page = (out / "feedback" / student / f"{NAME}.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;Zoë &amp; co: 11 of 14 points" in page and "<script" not in page
    assert "Probable cause: nothing is turned." in page
    rows = list(csv.DictReader((out / "grades.csv").open(encoding="utf-8")))
    assert [row["points"] for row in rows if row["task"] == "rope"] == ["0"]
    (total,) = csv.DictReader((out / "totals.csv").open(encoding="utf-8"))
    assert (total["student"], total["points"], total["of"]) == (student, "11", "14")


def test_written_answers_are_laid_beside_the_model_answer(tmp_path):
    name = "10_the_hand_made_model"
    notebook = editions.strip(editions.read(editions.notebooks()[name]))
    by_id(notebook, "causal")["source"] = "The cache <i>ends</i> there."
    by_id(notebook, "greedy")["source"] = "  \n"
    path = tmp_path / "in" / "=cmd" / "deep" / "10_exercises.ipynb"
    editions.write(notebook, path)
    out = tmp_path / "out"
    assert cli.main(["exercises", "grade", str(tmp_path / "in"), "--out", str(out)]) == 0
    text = (out / "written.html").read_text(encoding="utf-8")
    assert "The cache &lt;i&gt;ends&lt;/i&gt; there." in text and "mask sets the scores" in text
    rows = list(csv.DictReader((out / "grades.csv").open(encoding="utf-8")))
    found = {row["task"]: (row["status"], row["points"]) for row in rows}
    assert found["causal"] == ("to be read", "") and found["greedy"] == ("not attempted", "0")
    assert rows[0]["student"] == "'=cmd"  # no formula in a spreadsheet


def test_a_folder_without_submissions_is_refused(tmp_path):
    with pytest.raises(BadArgument, match="no folder"):
        grade.submissions(tmp_path / "nothing")
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "notes.ipynb").write_text("{}", encoding="utf-8")
    with pytest.raises(BadArgument, match="no submission"):
        grade.submissions(tmp_path)
