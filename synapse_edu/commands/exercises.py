"""``synapse-edu exercises``: hand out the exercises, and grade what comes back."""

import argparse
from pathlib import Path

from .command import add_command


def add(commands):
    command = add_command(
        commands,
        "exercises",
        None,
        "hand out exercises and grade them",
        "Hand out the exercises of the chapters without their solutions, and grade what comes "
        "back. The solutions are public, because this repository is: --class-seed gives a class "
        "numbers of its own.",
    )
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    add_command(actions, "list", _list, "list the tasks", "List every task with its minutes.")
    _add_release(actions)
    _add_grade(actions)


def _add_release(actions):
    command = add_command(
        actions,
        "release",
        _release,
        "write the student edition",
        "Write the exercises without solutions and hidden tests.",
    )
    command.add_argument("out", type=Path, metavar="OUT", help="folder to write to")
    _add_class_seed(command)
    command.add_argument(
        "--teacher",
        action="store_true",
        help="keep solutions and hidden tests: nbgrader's source folder for this class",
    )
    command.add_argument(
        "--force", action="store_true", help="replace notebooks that are there and differ"
    )


def _add_grade(actions):
    command = add_command(
        actions,
        "grade",
        _grade,
        "grade submissions",
        "Grade a folder that holds one folder a student. Each notebook runs in a process of its "
        "own, with limits on time and memory and without network.",
    )
    command.add_argument("submissions", type=Path, metavar="SUBMISSIONS")
    command.add_argument(
        "--out", type=Path, default=Path("graded"), metavar="FOLDER",
        help="where grades.csv, totals.csv and feedback/ are written (default: graded)",
    )  # fmt: skip
    _add_class_seed(command)
    command.add_argument(
        "--hidden-seed", type=_seed, metavar="N",
        help="seed of the inputs that nobody has seen (default: a fresh one for each notebook)",
    )  # fmt: skip
    command.add_argument("--seconds", type=_positive, default=120, help="a notebook (default: 120)")
    command.add_argument(
        "--memory", type=_positive, default=3072, metavar="MIB", help="MiB (default: 3072)"
    )


def _add_class_seed(command):
    command.add_argument(
        "--class-seed", type=_seed, default=0, metavar="N",
        help="draw this class's numbers from N (default: 0, the numbers of the book)",
    )  # fmt: skip


def _seed(text):
    return _whole(text, 0, 2**62)


def _positive(text):
    return _whole(text, 1, 10**6)


def _whole(text, low, high):
    try:
        value = int(text)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {low} to {high}")
    return value


def _list(options):
    """``synapse-edu exercises list``"""
    from ..classroom import editions

    for name, path in editions.notebooks().items():
        print(name)
        for cell in editions.read(path)["cells"]:
            about = cell["metadata"].get("synapse_edu", {})
            if "minutes" in about:
                title = cell["source"].split("\n")[0].lstrip("# ")
                print(f"  {about['minutes']:>3} min  {about['difficulty']:7} {title}")


def _release(options):
    """``synapse-edu exercises release OUT``"""
    from ..classroom import editions

    made = editions.release(options.out, options.class_seed, options.teacher, options.force)
    edition = "teacher's" if options.teacher else "student"
    numbers = f"class seed {options.class_seed}" if options.class_seed else "the book's numbers"
    print(f"Wrote the {edition} edition of {len(made)} notebooks to {options.out}, with {numbers}.")


def _grade(options):
    """``synapse-edu exercises grade SUBMISSIONS``"""
    from ..classroom import editions, feedback, isolate
    from ..classroom.grade import grade, submissions

    limits = isolate.Limits(options.seconds, max(1, options.seconds // 6), options.memory)
    grades = []
    for student, exercise, path in submissions(options.submissions):
        found = grade(student, exercise, path, options.class_seed, options.hidden_seed, limits)
        print(f"{student:20} {exercise:34} {found.points:g} of {found.most:g}", flush=True)
        grades.append(found)
    feedback.write_table(grades, options.out)
    feedback.write_pages(grades, options.out)
    feedback.write_written(grades, options.out, editions.model_answers())
    waiting = sum(mark.to_read for one in grades for mark in one.marks)
    print(f"grades.csv, totals.csv and feedback/ are in {options.out}.")
    if waiting:
        print(f"{waiting} written answers wait for you in {options.out / 'written.html'}.")
