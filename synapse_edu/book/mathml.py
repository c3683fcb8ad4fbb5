"""A Sphinx extension: formulas as MathML, which a browser shows without any script."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

log = logging.getLogger(__name__)


def mathml(latex, display, where=None):
    """A formula as MathML, with its LaTeX as the text that a reader can copy.

    A formula that cannot be converted is a warning, and so fails a build that allows none.
    """
    try:
        html = convert(latex.strip(), display=display)
    except Exception as problem:
        log.warning("no MathML for %r: %s", latex, problem, location=where)
        return f"<code>{nodes.unescape(latex)}</code>"
    return html.replace("<math ", f'<math aria-label="{_attribute(latex)}" ', 1)


def _attribute(text):
    text = " ".join(text.split()).replace("&", "&amp;").replace('"', "&quot;")
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _inline(writer, node):
    writer.body.append(mathml(node.astext(), "inline", node))
    raise nodes.SkipNode


def _block(writer, node):
    writer.body.append(
        f'<div class="formula" tabindex="0">{mathml(node.astext(), "block", node)}</div>'
    )
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
