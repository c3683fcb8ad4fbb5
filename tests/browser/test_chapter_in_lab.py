"""A chapter in JupyterLab, as a reader meets it: run from top to bottom, then stepped by key."""

CHAPTER = "02_one_token_step_by_step.ipynb"


def show(page, kind):
    """Scroll until the view of `kind` is in the page; JupyterLab draws cells as they come."""
    found = page.locator(f".lm-Widget .se-{kind} .se-stage[tabindex='0']")
    for _ in range(60):
        if found.count():
            found.first.scroll_into_view_if_needed()
            return found.first
        page.evaluate(
            "document.querySelector('.jp-WindowedPanel-outer, .jp-Notebook').scrollBy(0, 700)"
        )
        page.wait_for_timeout(150)
    raise AssertionError(f"the chapter shows no {kind}")


def redrawn(page, stage, kind, key):
    """Press a key on a view; its HTML once that has changed."""
    stage.focus()
    view = f".lm-Widget .se-{kind}:has(.se-stage[tabindex='0'])"
    before = page.locator(view).first.inner_html()
    page.keyboard.press(key)
    page.wait_for_function(
        "([view, before]) => document.querySelector(view).innerHTML !== before",
        arg=[view, before],
        timeout=20_000,
    )
    return before, page.locator(view).first.inner_html()


def test_chapter_02_runs_and_its_views_answer_the_keyboard(open_notebook):
    page = open_notebook(CHAPTER, timeout=400_000)
    errors = page.locator('.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.stderr"]')
    assert errors.count() == 0, errors.first.inner_text()

    stepper = show(page, "stepper")
    before, after = redrawn(page, stepper, "stepper", "ArrowRight")
    assert "Step 1 of" in before and "Step 2 of" in after
    _, after = redrawn(page, stepper, "stepper", "PageDown")
    assert "layer 1" in after

    heatmap = show(page, "heatmap")
    before, after = redrawn(page, heatmap, "heatmap", "PageUp")
    assert before.split("data-grid")[1] != after.split("data-grid")[1]
    assert page.problems == []


def test_stored_pictures_are_shown_before_anything_runs(open_notebook):
    page = open_notebook(CHAPTER, run=False)
    picture = page.locator(".jp-RenderedHTML .se-heatmap svg[data-grid]")
    for _ in range(60):
        if picture.count():
            break
        page.evaluate(
            "document.querySelector('.jp-WindowedPanel-outer, .jp-Notebook').scrollBy(0, 700)"
        )
        page.wait_for_timeout(150)
    picture.first.scroll_into_view_if_needed()
    assert picture.first.is_visible()
    # The stylesheet came along: the chapter's copy is trusted.
    framed = "(e) => getComputedStyle(e.closest('.se-view')).borderTopStyle"
    assert picture.first.evaluate(framed) == "solid"
    assert page.locator("text=Error displaying widget").count() == 0
    assert page.problems == []
