"""The shape of a model as a drawing: the stream, one layer opened up, and the sizes."""

from .frame import stylesheet
from .text import safe

WIDTH, STREAM, BOX = 760, 90, 200  # the drawing; x of the stream; x of the first box


def render(config):
    """The block of a config as SVG inside HTML, with the numbers of this model.

    Parameters
    ----------
    config : Config

    Returns
    -------
    str
    """
    c = config
    q, kv = f"{c.n_head} × {c.head_dim}", f"{c.n_head_kv} × {c.head_dim}"
    out = "tied" if c.tied else "its own matrix"
    lines = [
        *_box(BOX, 58, 130, "RMSNorm"),
        *_box(BOX + 150, 58, 120, f"Q {q}", f"K, V {kv}"),
        *_box(BOX + 290, 58, 90, "RoPE(Q, K)"),
        *_box(BOX + 400, 58, 130, "attention over", "the KV cache"),
        *_arrows(BOX, 80, (0, 130, 150, 270, 290, 380, 400)),
        *_back(BOX + 530, 80, 136, f"W_o · {c.n_embd_head:,} → {c.n_embd:,}"),
        *_box(BOX, 178, 130, "RMSNorm"),
        *_box(BOX + 150, 178, 230, f"gate, up: {c.n_embd:,} → {c.n_ff:,}", "SiLU(gate) ⊙ up"),
        *_arrows(BOX, 200, (0, 130, 150)),
        *_back(BOX + 380, 200, 256, f"W_down · {c.n_ff:,} → {c.n_embd:,}"),
    ]
    frame = f'<rect class="se-stroke" x="40" y="40" width="{WIDTH - 50}" height="232" rx="8"/>'
    label = (
        f"A token's id becomes a row of {c.n_embd:,} numbers, the residual stream. Each of the "
        f"{c.n_layer} layers adds the result of attention, then that of the feed-forward network. "
        f"A last RMSNorm and the output matrix ({out}) give {c.n_vocab:,} logits."
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{safe(label)}" '
        f'width="{WIDTH}" height="340" viewBox="0 0 {WIDTH} 340">'
        f"{_text(10, 18, f'token id → row of {c.n_vocab:,} × {c.n_embd:,}', 'start')}"
        f"{_line(STREAM, 26, STREAM, 318)}{frame}"
        f"{_text(WIDTH - 20, 262, f'× {c.n_layer} layers', 'end')}"
        f"{_text(STREAM - 6, 120, 'x', 'end')}{''.join(lines)}"
        f"{_text(10, 334, f'RMSNorm → output ({out}) → {c.n_vocab:,} logits', 'start')}</svg>"
    )
    return (
        f"<style>{stylesheet()}</style>"
        '<div class="se-view se-block" role="group" aria-label="The shape of the model">'
        f"{svg}</div>"
    )


def _text(x, y, text, anchor="middle"):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{safe(text)}</text>'


def _line(x1, y1, x2, y2):
    return f'<path class="se-stroke" stroke-width="2" d="M{x1} {y1}L{x2} {y2}"/>'


def _box(x, y, width, *texts):
    yield f'<rect class="se-stroke" x="{x}" y="{y}" width="{width}" height="44" rx="4"/>'
    for i, text in enumerate(texts):
        yield _text(x + width / 2, y + 26 + (i - (len(texts) - 1) / 2) * 15, text)


def _arrows(x, y, ends):
    """From the stream to the first box, then from box to box: pairs of offsets."""
    yield _line(STREAM, y, x, y)
    for start, end in zip(ends[1::2], ends[2::2], strict=False):
        yield _line(x + start, y, x + end, y)


def _back(x, y, low, text):
    """From the last box down and back to the stream, where the result is added."""
    yield f'<path class="se-stroke" stroke-width="2" d="M{x} {y}h12V{low}H{STREAM + 9}"/>'
    yield f'<circle class="se-stroke" cx="{STREAM}" cy="{low}" r="9"/>'
    yield _text(STREAM, low + 4, "+")
    yield _text((STREAM + x) / 2, low - 5, text)


class BlockDrawing:
    """The drawing of a config; a notebook shows it."""

    def __init__(self, config):
        self.config = config

    def _repr_html_(self):
        return render(self.config)

    def __repr__(self):
        return f"BlockDrawing({self.config.name or self.config.architecture})"
