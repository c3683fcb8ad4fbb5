"""Sphinx's configuration of the book; `build` runs Sphinx with it."""

import json
import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
meta = json.loads(os.environ["SYNAPSE_BOOK_META"])

project = html_title = meta["title"]
author = meta["author"]
language = "en"
extensions = [
    "myst_nb",
    "sphinx_external_toc",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "synapse_edu.book.docstrings",
    "synapse_edu.book.mathml",
]
external_toc_path = "_toc.yml"
external_toc_exclude_missing = True

# The chapters hold the outputs that the tests have compared; nothing is run again here.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
suppress_warnings = ["ref.python"]  # a parameter's type, such as `text`, is no reference
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "sphinx_book_theme"
html_static_path = [str(HERE / "static"), meta["static"]]
html_css_files = ["book.css"]
html_js_files = [("views.js", {"defer": "defer"})]
html_show_sourcelink = False
html_copy_source = False
html_domain_indices = False
html_last_updated_fmt = None
html_context = {"default_mode": "auto"}
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "navbar_persistent": [],
    "navigation_with_keys": False,
    "search_bar_text": "Search the book …",
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
