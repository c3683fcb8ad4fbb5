"""What goes wrong in a class: a kernel that dies under a view, an answer that is not right yet."""

import nbformat

from synapse_edu.classroom import editions

VIEW = [
    "import synapse_edu as se\nfrom synapse_edu.views.stepper import TokenStepper\n"
    "model = se.load('built-in')\n"
    "trace = se.Trace.record(model, model.tokenizer.encode('Mia has a'))",
    "TokenStepper(model, trace)",
]
STAGE = ".lm-Widget .se-stepper .se-stage[tabindex='0']"
ERROR = ", ".join(
    f".jp-OutputArea-output[data-mime-type*='{kind}']" for kind in ("error", "stderr")
)
STATUS = ".lm-Widget .se-stepper .se-status"


def write(path, sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


def kernels(page):
    """The kernels that the page's server runs, through its own interface."""
    return page.evaluate("fetch('/api/kernels', {credentials: 'include'}).then((r) => r.json())")


def restart(page, kernel):
    """Restart a kernel as the server does when it finds one dead."""
    page.evaluate(
        """async (id) => {
          const cookie = document.cookie.match(/_xsrf=([^;]+)/);
          await fetch(`/api/kernels/${id}/restart`, {
            method: 'POST', credentials: 'include',
            headers: { 'X-XSRFToken': cookie ? cookie[1] : '' } });
        }""",
        kernel,
    )


def test_a_view_whose_kernel_was_killed_stays_and_comes_back(lab, open_notebook):
    _, work = lab
    write(work / "killed.ipynb", VIEW)
    page = open_notebook("killed.ipynb")
    page.wait_for_selector(STAGE, timeout=60_000)
    page.locator(STAGE).first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "(s) => document.querySelector(s).textContent.includes('Step 2 of')", arg=STATUS
    )
    shown = page.locator(".se-stepper").first.inner_text()

    mine = [k for k in kernels(page) if k["execution_state"] in ("idle", "busy", "starting")]
    for kernel in mine:
        restart(page, kernel["id"])  # whatever the view talked to is gone
    page.wait_for_timeout(1500)
    page.locator(STAGE).first.focus()
    for key in ("ArrowRight", "PageDown", "End"):
        page.keyboard.press(key)
    page.wait_for_timeout(1500)
    assert page.locator(".se-stepper").first.inner_text() == shown  # no blank, no error box
    assert page.problems == []

    page.click(".lm-MenuBar-itemLabel:text-is('Run')")
    page.click(".lm-Menu-itemLabel:text-is('Run All Cells')")
    page.wait_for_function(
        "(s) => document.querySelector(s)?.textContent.includes('Step 1 of')",
        arg=STATUS,
        timeout=90_000,
    )
    page.locator(STAGE).first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "(s) => document.querySelector(s).textContent.includes('Step 2 of')",
        arg=STATUS,
        timeout=20_000,
    )
    assert page.problems == []


def test_an_exercise_tells_what_is_wrong_in_one_line(lab, open_notebook):
    _, work = lab
    notebook = editions.strip(editions.read(editions.notebooks()["02_one_token_step_by_step"]))
    keep = [
        cell
        for cell in notebook["cells"]
        if editions.marks(cell)["grade_id"] in ("setup", "top_k", "top_k-test", "cache-given")
    ]
    for cell in keep:
        if editions.marks(cell)["grade_id"] == "top_k":
            cell["source"] = "def top_k(logits, k):\n    return np.argsort(logits)[:k]"
    # the question before the test, since a wrong answer stops "run all"
    keep.sort(key=lambda cell: editions.marks(cell)["grade_id"] == "top_k-test")
    editions.write({**notebook, "cells": keep}, work / "exercise.ipynb")
    page = open_notebook("exercise.ipynb")
    page.wait_for_selector(".jp-OutputArea-output >> text=ex02.top_k", timeout=60_000)
    error = page.locator(ERROR).last.inner_text()
    assert error.startswith("✗ ex02.top_k: On input 0")
    assert "Traceback" not in error and "site-packages" not in error
    text = page.locator(".jp-Notebook").first.inner_text()
    assert "How many bytes do 1000 tokens take?" in " ".join(text.split())
    assert page.problems == []
