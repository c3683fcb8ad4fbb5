"""What grading leaves behind: a table for the teacher, a page for each learner."""

import csv
import html
from pathlib import Path

STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color-scheme: light dark }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem;
  border-bottom: 1px solid #8888 }
td.points { white-space: nowrap }
pre { white-space: pre-wrap; border-left: 3px solid #8888; padding-left: .8rem }
"""


def page(grade):
    """One learner's feedback on one exercise, as HTML without scripts.

    It names what an answer did wrong, never an input or an expected value: everything in it is a
    sentence of ours, a name of a cell, or the learner's own written answer, escaped.
    """
    rows = "\n".join(
        f"<tr><td>{'✓' if m.status == 'right' else '…' if m.to_read else '✗'} "
        f"{html.escape(m.grade_id.removesuffix('-test'))}</td>"
        f"<td class=points>{'–' if m.to_read else f'{m.points:g}'} of {m.most:g}</td>"
        f"<td>{html.escape(m.words)}</td></tr>"
        for m in grade.marks
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in grade.notes)
    written = "".join(
        f"<h3>{html.escape(m.grade_id)}</h3><pre>{html.escape(m.written)}</pre>"
        for m in grade.marks
        if m.written is not None
    )
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
        '<meta name=viewport content="width=device-width">\n'
        f"<title>{html.escape(grade.exercise)}: feedback</title><style>{STYLE}</style></head>\n"
        f"<body><h1>{html.escape(grade.exercise)}</h1>\n"
        f"<p>{html.escape(grade.student)}: {grade.points:g} of {grade.most:g} points"
        f"{', without the answers that a person reads' if written else ''}.</p>\n"
        "<table><tr><th>task</th><th>points</th><th>what was found</th></tr>\n"
        f"{rows}\n</table>\n"
        + (f"<h2>About the notebook</h2><ul>{notes}</ul>\n" if notes else "")
        + (f"<h2>Your written answers</h2>{written}\n" if written else "")
        + "<p>To see more than this, run <code>check(...)</code> in the exercise: it tells the "
        "first wrong place on the inputs that you may see.</p></body></html>\n"
    )


def write_pages(grades, out):
    """``feedback/STUDENT/EXERCISE.html`` for every grade."""
    for grade in grades:
        path = Path(out) / "feedback" / grade.student / f"{grade.exercise}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(grade), encoding="utf-8", newline="\n")


def write_table(grades, out):
    """``grades.csv``, a line for each task; and ``totals.csv``, a line for each notebook."""
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "grades.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student", "exercise", "task", "points", "of", "status"])
        for g in grades:
            for m in g.marks:
                points = "" if m.to_read else f"{m.points:g}"
                task = m.grade_id.removesuffix("-test")
                row = [_cell(g.student), g.exercise, task, points, f"{m.most:g}", m.status]
                table.writerow(row)
    with open(out / "totals.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student", "exercise", "points", "of", "to be read", "notes"])
        for g in grades:
            waiting = sum(m.most for m in g.marks if m.to_read)
            notes = _cell(" ".join(g.notes))
            row = [_cell(g.student), g.exercise, f"{g.points:g}", f"{g.most:g}", f"{waiting:g}"]
            table.writerow([*row, notes])


def write_written(grades, out, models):
    """``written.html``: every written answer beside the model answer, for the teacher to read.

    `models` maps (exercise, grade id) to the model answer.
    """
    parts = []
    for g in grades:
        for m in g.marks:
            if m.written is not None:
                model = models.get((g.exercise, m.grade_id), "")
                parts.append(
                    f"<h2>{html.escape(g.student)}, {html.escape(g.exercise)}, "
                    f"{html.escape(m.grade_id)} ({m.most:g} points)</h2>"
                    f"<pre>{html.escape(m.written)}</pre>"
                    f"<details><summary>model answer</summary><pre>{html.escape(model)}</pre>"
                    "</details>"
                )
    if parts:
        text = (
            f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><style>{STYLE}</style>"
            f"<title>Written answers</title></head><body>{''.join(parts)}</body></html>\n"
        )
        (Path(out) / "written.html").write_text(text, encoding="utf-8", newline="\n")


def _cell(text):
    """Text that a spreadsheet will not take for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
