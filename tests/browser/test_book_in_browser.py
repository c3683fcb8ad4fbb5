"""The book in a browser: from a server and from the disk, on a phone, in the dark, by keyboard."""

import functools
import http.server
import threading

import pytest
from accessible import problems, wider_than_the_window

PHONE, DESK = {"width": 360, "height": 740}, {"width": 1300, "height": 1000}
PAGES = [
    "notebooks/00_start_here.html",
    "notebooks/02_one_token_step_by_step.html",
    "notebooks/07_text_in_tokens_out.html",
    "exercises/02_one_token_step_by_step/02_exercises.html",
    "pages/views.html",
    "pages/symbols.html",
    "pages/glossary.html",
    "api/model.html",
    "search.html",
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def served(book_site):
    """The site's address on a server of its own."""
    handler = functools.partial(Quiet, directory=str(book_site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(params=["http", "file"])
def base(request, book_site):
    if request.param == "http":
        return request.getfixturevalue("served")
    return book_site.as_uri()


@pytest.fixture
def page(browser):
    """A page that notes what it asks for and what goes wrong."""
    page = browser.new_page()
    page.asked, page.wrong = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    yield page
    page.close()


def test_nothing_outside_the_book_is_asked_for(page, base):
    for name in PAGES:
        page.goto(f"{base}/{name}")
        page.wait_for_load_state("load")
    page.wait_for_timeout(500)
    outside = [url for url in page.asked if not url.startswith((base, "data:", "blob:"))]
    assert len(page.asked) > 20
    assert outside == [] and page.wrong == []


@pytest.mark.parametrize("scheme, size", [("light", DESK), ("dark", PHONE)])
def test_axe_finds_nothing_serious_and_no_page_scrolls_sideways(page, served, scheme, size):
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size(size)
    found = {}
    for name in PAGES:
        page.goto(f"{served}/{name}")
        page.wait_for_load_state("load")
        page.wait_for_timeout(300)
        found[name] = problems(page)
        assert wider_than_the_window(page) <= 0, name
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_light_and_dark_differ(page, served):
    colours = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(f"{served}/{PAGES[1]}")
        background = "(e) => getComputedStyle(document.querySelector(e)).backgroundColor"
        colours.append([page.evaluate(background, name) for name in ("body", ".se-view")])
    assert all(a != b for a, b in zip(*colours, strict=True))


def test_recorded_views_answer_the_keyboard_from_the_disk(page, book_site):
    page.goto(f"{book_site.as_uri()}/pages/views.html")
    stage = page.locator(".se-stepper .se-stage[role=application]")
    stage.wait_for(timeout=20_000)
    stage.focus()
    said = page.locator(".se-stepper .se-status")
    assert "Step 1 of" in said.inner_text()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "document.querySelector('.se-stepper .se-status').innerText.includes('Step 2')"
    )
    page.keyboard.press("End")
    page.wait_for_function(
        "document.querySelector('.se-stepper .se-status').innerText.includes('logits')"
    )
    assert page.evaluate("document.activeElement.classList.contains('se-stage')")
    assert page.wrong == []


def test_a_live_view_keeps_its_style(page, book_site):
    page.goto(f"{book_site.as_uri()}/pages/views.html")
    page.locator(".se-stepper .se-stage[role=application]").wait_for(timeout=20_000)
    looks = "(e) => getComputedStyle(document.querySelector(e)).display"
    assert page.evaluate(looks, ".se-stepper .se-controls") == "flex"


def test_a_solution_is_folded_until_it_is_asked_for(page, book_site):
    page.goto(f"{book_site.as_uri()}/{PAGES[3]}")
    solution = page.locator("details.solution").first
    assert not solution.locator("pre").is_visible()
    solution.locator("summary").focus()
    page.keyboard.press("Enter")
    assert solution.locator("pre").is_visible()


def test_the_search_finds_a_word(page, base):
    page.goto(f"{base}/search.html?q=residual")
    page.wait_for_selector("#search-results li a", timeout=20_000)
    assert page.locator("#search-results li a").count() > 1


def test_the_first_tab_skips_to_the_text(page, served):
    page.goto(f"{served}/{PAGES[0]}")
    page.keyboard.press("Tab")
    focused = page.evaluate("document.activeElement.textContent.trim()")
    assert "skip" in focused.lower()
