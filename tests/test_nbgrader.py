"""nbgrader itself, unchanged, on the exercises: assignment, autograding, feedback.

It runs in an environment of its own (`.ci/run` makes it), because nbgrader is nothing that the
package needs:

    PYTHONPATH=. python -m pytest -q -o addopts= -m nbgrader tests/test_nbgrader.py
"""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from synapse_edu.classroom import editions

pytestmark = pytest.mark.nbgrader

ROOT = Path(__file__).resolve().parents[1]
NAMES = sorted(editions.notebooks())
GRADED = ("02_one_token_step_by_step", "10_the_hand_made_model")


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """nbgrader over a course folder whose `source` holds the exercises as they are."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    course = tmp_path_factory.mktemp("course")
    for name in NAMES:
        shutil.copytree(ROOT / "exercises" / name, course / "source" / name)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ["SYNAPSE_PROGRESS"] = str(course / "progress")
    config = Config()
    config.CourseDirectory.course_id = "synapse"
    config.CourseDirectory.root = str(course)
    config.Exchange.root = str(course / "exchange")
    made = NbGraderAPI(config=config)
    for name in NAMES:
        done = made.generate_assignment(name)
        assert done["success"], done["log"] + (done.get("error") or "")
    return course, made


def submitted(course, name, student):
    path = course / "submitted" / student / name / f"{name[:2]}_exercises.ipynb"
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_the_student_edition_has_nbgraders_own_cells(api, name, tmp_path):
    course, _ = api
    theirs = editions.read(course / "release" / name / f"{name[:2]}_exercises.ipynb")
    ours = editions.strip(editions.read(editions.notebooks()[name]))
    assert len(theirs["cells"]) == len(ours["cells"])
    for a, b in zip(theirs["cells"], ours["cells"], strict=True):
        assert (a["cell_type"], a["source"]) == (b["cell_type"], b["source"])
        kept = {
            k: v for k, v in a["metadata"]["nbgrader"].items() if k not in ("checksum", "cell_type")
        }
        assert kept == b["metadata"]["nbgrader"]
        for key in ("editable", "deletable"):
            assert a["metadata"].get(key, True) == b["metadata"].get(key, True)


@pytest.mark.parametrize("name", GRADED)
def test_autograde_and_feedback(api, name):
    course, made = api
    release = course / "release" / name / f"{name[:2]}_exercises.ipynb"
    teacher = editions.read(editions.notebooks()[name])
    solutions = {
        editions.marks(c)["grade_id"]: c["source"]
        for c in teacher["cells"]
        if editions.marks(c)["solution"]
    }
    right = json.loads(release.read_text(encoding="utf-8"))
    for cell in right["cells"]:
        grade_id = editions.marks(cell)["grade_id"]
        cell["source"] = solutions.get(grade_id, cell["source"])
    submitted(course, name, "ada").write_text(json.dumps(right), encoding="utf-8")
    shutil.copy(release, submitted(course, name, "ben"))
    for student in ("ada", "ben"):
        done = made.autograde(name, student)
        assert done["success"], done["log"]
        done = made.generate_feedback(name, student)
        assert done["success"], done["log"]
        page = course / "feedback" / student / name / f"{name[:2]}_exercises.html"
        assert "Score" in page.read_text(encoding="utf-8")
    computed = [
        editions.marks(c)["points"]
        for c in teacher["cells"]
        if editions.marks(c)["grade"] and not editions.marks(c)["solution"]
    ]
    with made.gradebook as book:
        ada, ben = (book.find_submission(name, student) for student in ("ada", "ben"))
        assert sum(g.auto_score or 0 for n in ada.notebooks for g in n.grades) == sum(computed)
        assert sum(g.auto_score or 0 for n in ben.notebooks for g in n.grades) == 0
        written = [g for n in ada.notebooks for g in n.grades if g.needs_manual_grade]
        assert len(written) == sum(
            bool(editions.marks(c)["grade"] and editions.marks(c)["solution"])
            for c in teacher["cells"]
        )
