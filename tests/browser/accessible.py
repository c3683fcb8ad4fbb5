"""axe-core in a page: what keeps somebody from reading it.

The script comes with the package axe-playwright-python, so that nothing is fetched.
"""

import json
from importlib.resources import files

SERIOUS = ("serious", "critical")
RUN = "axe.run(document, {resultTypes: ['violations'], preload: false})"


def problems(page):
    """The serious findings on a page, a line each."""
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = []
    for rule in page.evaluate(RUN)["violations"]:
        if rule["impact"] in SERIOUS:
            for node in rule["nodes"]:
                found.append(f"{rule['id']}: {json.dumps(node['target'])} {node['html'][:150]}")
    return found


def wider_than_the_window(page):
    """By how many pixels the page can be scrolled sideways."""
    root = "document.documentElement"
    return page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
