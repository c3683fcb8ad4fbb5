"""The book: what is made of chapters, exercises and docstrings, and the site as it is written."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

import synapse_edu as se
from synapse_edu.book import (
    api,
    build,
    chapters,
    docstrings,
    glossary,
    polish,
    recording,
    settings,
    sources,
    symbols,
)
from synapse_edu.classroom import editions
from synapse_edu.errors import BadArgument
from synapse_edu.views.heatmap import AttentionHeatmap
from synapse_edu.views.stepper import TokenStepper

GLOSSARY = (sources.PAGES / "glossary.md").read_text(encoding="utf-8")


class Page(HTMLParser):
    """Links, ids and what a page loads by itself."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.loads, self.images = [], set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        self.ids.update(a[name] for name in ("id", "name") if a.get(name))
        if tag == "a" and a.get("href"):
            self.links.append(a["href"])
        if tag in ("script", "img", "iframe", "source") and a.get("src"):
            self.loads.append(a["src"])
        if tag == "link" and a.get("href") and "canonical" not in a.get("rel", ""):
            self.loads.append(a["href"])
        if tag == "img":
            self.images.append(a)


@pytest.fixture(scope="module")
def pages(book_site):
    return {path: Page(path) for path in sorted(book_site.rglob("*.html"))
            if "_static" not in path.parts}  # fmt: skip


def test_the_site_has_every_chapter_exercise_and_page(book_site):
    home = settings.home()
    for path in [*home.glob("notebooks/*.ipynb"), *home.glob("exercises/*/*_exercises.ipynb")]:
        assert (book_site / path.relative_to(home).with_suffix(".html")).is_file(), path
    for name in ("glossary", "symbols", "references", "views", "teaching", "classroom", "api"):
        assert (book_site / "pages" / f"{name}.html").is_file()
    assert (book_site / "index.html").is_file() and (book_site / "searchindex.js").is_file()


def test_no_page_loads_anything_from_elsewhere(pages):
    for path, page in pages.items():
        outside = [url for url in page.loads if urlsplit(url).scheme in ("http", "https")]
        assert not outside, (path.name, outside)
        assert not [url for url in page.loads if url.startswith("//")]


def test_every_link_inside_the_book_leads_somewhere(pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                broken.append((path.name, link))
            elif parts.fragment and target in pages:
                if unquote(parts.fragment) not in pages[target].ids:
                    broken.append((path.name, link))
    assert not broken


def test_every_picture_is_described(pages):
    found = [image for page in pages.values() for image in page.images]
    assert len(found) > 10
    assert all(len(image.get("alt", "")) > 10 for image in found)


def test_formulas_are_mathml_and_no_script_sets_them(book_site):
    text = (book_site / "notebooks/02_one_token_step_by_step.html").read_text(encoding="utf-8")
    assert text.count("<math ") > 10
    assert not re.search(r"<script[^>]*(mathjax|katex)", text, re.I)


def test_chapters_link_their_terms_to_the_glossary(book_site):
    text = (book_site / "notebooks/01_the_shape_of_the_model.html").read_text(encoding="utf-8")
    for term in ("residual-stream", "logit", "KV-cache"):
        assert f"glossary.html#term-{term}" in text


def test_solutions_are_folded_and_hidden_tests_are_not_there(book_site):
    exercises = sorted((book_site / "exercises").rglob("*.html"))
    assert exercises
    for path in exercises:
        text = path.read_text(encoding="utf-8")
        assert f"<summary>{chapters.FOLD}</summary>" in text and "NotImplementedError" in text
        assert "<details open" not in text and text.count("<details") == text.count("</details>")
        assert "HIDDEN TESTS" not in text and "BEGIN SOLUTION" not in text


def test_the_api_pages_show_signatures_and_shapes(book_site):
    text = (book_site / "api/model.html").read_text(encoding="utf-8")
    assert "synapse_edu.model.llama.Llama" in text and "n_vocab" in text
    named = [name for room in api.ROOMS if room != "top" for name in api.modules(room)]
    assert "synapse_edu.model.walk" in named
    assert not [n for n in named if ".fast." in n]


def test_terms_are_found_in_every_form():
    terms = glossary.terms(GLOSSARY)
    assert terms["logits"] == terms["logit"] == "logit"
    assert terms["gqa"] == terms["grouped-query attention"] == "grouped-query attention (GQA)"
    assert terms["queries"] == "query"
    assert len(set(terms.values())) > 40


def test_a_term_is_linked_once_and_never_inside_code_or_formulas():
    known = glossary.terms(GLOSSARY)
    text = "`**token**` $$**token**$$ A **token** and **tokens**, then **no term**."
    linked = chapters.link_terms(text, known)
    assert linked == (
        "`**token**` $$**token**$$ A {term}`token <token>` and **tokens**, then **no term**."
    )
    assert chapters.link_terms("a **token**", known) == "a **token**"


def test_a_term_that_is_nowhere_in_bold_is_linked_where_it_is_mentioned_first():
    known = glossary.terms(GLOSSARY)
    text = "# Prefill\n\n$prefill$ `prefill` [prefill](x.md) Arrow keys. *Prefill* and prefill."
    assert chapters.link_mentions(text, known) == text.replace(
        "*Prefill*", "*{term}`Prefill <prefill>`*"
    )
    assert "prefill" not in known and "key" in known
    assert chapters.link_mentions("prefill, key", known) == "prefill, key"
    html = "<details><summary>token</summary>\ntoken\n\n tokens"
    assert chapters.link_mentions(html, known).endswith("\ntoken\n\n {term}`tokens <token>`")


def test_bold_comes_before_a_mention():
    cells = [{"cell_type": "markdown", "metadata": {}, "source": text}
             for text in ("The mask.", "A **mask** hides.")]  # fmt: skip
    chapters.prepare({"cells": cells}, glossary.terms(GLOSSARY), {}, ())
    assert [cell["source"] for cell in cells] == ["The mask.", "A {term}`mask <mask>` hides."]


def test_a_link_to_exercises_leads_to_their_page_or_is_plain_text():
    pages = {"exercises/02_x": "exercises/02_x/02_exercises.ipynb"}
    text = "[here](../exercises/02_x/) and [there](../exercises/03_y)"
    assert chapters.link_exercises(text, pages) == (
        "[here](../exercises/02_x/02_exercises.ipynb) and there"
    )


def test_a_solution_follows_its_stub():
    source = "def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION"
    mark = {"nbgrader": {"solution": True, "grade_id": "f"}}
    cells = [{"cell_type": "code", "metadata": mark, "source": source, "outputs": ["old"]}]
    stub, solution = chapters.fold_solutions(cells)
    assert editions.STUB.splitlines()[0] in stub["source"] and "return 1" not in stub["source"]
    assert "return 1" in solution["source"] and "<details" in solution["source"]
    assert stub["outputs"] == []


@pytest.mark.parametrize(
    "line, read",
    [
        ("(*inputs) -> |x|", r"(\*inputs) -> \|x\|"),
        ("ids fim_*, and ``a*b|c``", r"ids fim\_\*, and ``a*b|c``"),
        ("* a bullet", "* a bullet"),
        ("n_embd of `x_`", "n_embd of `x_`"),
    ],
)
def test_a_docstring_means_what_it_says(line, read):
    assert docstrings.escape(line) == read


def test_the_theme_is_mended():
    text = '<summary><span class="toctree-toggle"></span></summary>'
    assert 'aria-label="' in polish.polish(text)
    assert 'tabindex="0"' in polish.polish('<div class="pst-scrollable-table-container">')


@pytest.fixture(scope="module")
def trace():
    model = se.load("built-in")
    return se.Trace.record(model, model.tokenizer.encode("Mia has"))


@pytest.mark.parametrize("kind", ["heatmap", "stepper"])
def test_a_recording_answers_as_the_kernel_does(trace, kind):
    def make():
        if kind == "heatmap":
            return AttentionHeatmap(trace)
        return TokenStepper(se.load("built-in"), trace)

    made, view, at, seen = recording.record(make()), make(), 0, set()
    view.later()
    keys = ["PageDown", "ArrowRight", "Shift+ArrowRight", "End", "ArrowDown", "PageUp", "Home"]
    for key in keys * 2:
        view.press(key)
        view.later()
        at = made.moves[at].get(f"press {key}", at)
        seen.add(at)
        assert made.html[at] == view.html and made.values[at] == view.values()
    assert len(seen) > 3 and len(made.html) > 20


def test_a_recording_has_an_end(trace):
    made = recording.record(AttentionHeatmap(trace), limit=5)
    assert len(made.html) == 5
    assert all(to < 5 for moves in made.moves for to in moves.values())


def test_the_players_script_is_no_module():
    script = recording.script()
    assert "function render(" in script and "recordedModel" in script
    assert not re.search(r"^\s*(export|import)\b", script, re.M)


def test_the_symbols_come_from_the_package():
    text = symbols.page()
    assert all(f"`{step.name}`" in text for step in se.STEPS)
    assert "128,256" in text


def test_contents_keep_what_is_there(tmp_path):
    for name in ("a.md", "x/2.md", "x/1.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# T", encoding="utf-8")
    contents = {"root": "a", "parts": [{"chapters": [{"file": "gone"}]},
                                       {"chapters": [{"file": "a"}, {"glob": "x/*"}]}]}  # fmt: skip
    sources.prune(contents, tmp_path)
    assert contents["parts"] == [{"chapters": [{"file": "a"}, {"file": "x/1"}, {"file": "x/2"}]}]


@pytest.mark.parametrize("text", ["[]", "a: [", "parts: []"])
def test_a_wrong_table_of_contents_is_refused(tmp_path, text):
    (tmp_path / "book.yml").write_text(text, encoding="utf-8")
    with pytest.raises(BadArgument):
        settings.read(tmp_path / "book.yml")


def test_a_folder_with_other_files_is_not_written_to(tmp_path):
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(BadArgument, match="other files"):
        build.build(tmp_path)


def test_missing_packages_are_named_with_the_command(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "NEEDED", ("sphinx", "no_such_package"))
    with pytest.raises(BadArgument, match=r'no_such_package.*pip install "synapse_edu\[book\]"'):
        build.build(tmp_path)


def test_a_pdf_without_chromium_is_refused_before_any_work(monkeypatch, tmp_path):
    monkeypatch.setattr(build.chromium, "find", lambda: None)
    with pytest.raises(BadArgument, match="Chromium"):
        build.build(tmp_path / "site", pdf=tmp_path / "book.pdf")
    assert not (tmp_path / "site").exists()
