"""The key/value cache while one token passes: what was there, what it adds, and the bytes."""

from .text import safe, short

ROWS = 16  # positions shown, the newest last


def written(names, index, layer):
    """Whether the token has put its K and V into `layer`'s cache once step `index` is computed.

    Both rows are stored together, as soon as the key is turned.

    Parameters
    ----------
    names : list of (str, layer)
        The steps of one pass in order.
    index : int
    layer : int

    Returns
    -------
    bool
    """
    return ("k_rope", layer) in names[: index + 1]


def cache_html(tokens, position, layer, done, config, itemsize):
    """The cache of one layer as rows of positions, and the size of the whole cache in words.

    Parameters
    ----------
    tokens : sequence of bytes
    position : int
        The token that passes.
    layer : int
    done : bool
        As `written` returns it.
    config : Config
    itemsize : int
        Bytes of one stored number.
    """
    first = max(0, position + 1 - ROWS)
    body = [f'<text x="{100 + 54 * i}" y="-6">{w}</text>' for i, w in enumerate("KV")]
    for row, at in enumerate(range(first, position + 1)):
        y = row * 18
        strong = ' class="se-strong"' if at == position else ""
        name = safe(short(tokens[at], 10))
        body.append(f'<text{strong} x="78" y="{y + 12}" text-anchor="end">{at} {name}</text>')
        for i in range(2):
            body.append(_cell(84 + 54 * i, y, at < position, done))
    height = (position + 1 - first) * 18 + 22
    label = f"Cache of layer {layer}: {position} positions stored before this token"
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{safe(label)}" '
        f'width="232" height="{height}" viewBox="0 -18 232 {height}">{"".join(body)}</svg>'
    )
    earlier = f"<p class='se-soft'>{first} earlier positions not drawn.</p>" if first else ""
    return f"<h4>Cache, layer {layer}</h4>{earlier}{svg}{_words(position, config, itemsize)}"


def _cell(x, y, before, done):
    if before:
        return f'<rect class="se-fill" fill-opacity="0.6" x="{x}" y="{y}" width="48" height="15"/>'
    box = f'<rect class="se-stroke" x="{x}" y="{y}" width="48" height="15"'
    if done:
        return f'{box}/><text x="{x + 24}" y="{y + 12}" text-anchor="middle">new</text>'
    return f'{box} stroke-dasharray="3 3"/>'


def _words(position, config, itemsize):
    each = 2 * config.n_layer * config.n_head_kv * config.head_dim * itemsize
    shared = f", shared by {config.n_group} query heads each" if config.n_group > 1 else ""
    return (
        f"<p>Each token adds K and V in {config.n_layer} layers: 2 · {config.n_layer} · "
        f"{config.n_head_kv} heads · {config.head_dim} · {itemsize} bytes = <b>{each:,} bytes</b>. "
        f"After this token: <b>{each * (position + 1):,} bytes</b> for {position + 1}.</p>"
        f'<p class="se-soft">{config.n_head_kv} key/value heads{shared}. Solid: stored before. '
        f"“new”: written by this token. Dashed: not yet.</p>"
    )
