"""The page of symbols, shapes and steps, made of what the engine itself goes by."""

from ..config import Config
from ..model import spec, steps

EXAMPLES = ("smollm2-135m", "llama-3.2-1b", "llama-3.1-405b")
MEANING = {
    "n_layer": "layers",
    "n_embd": "width of the residual stream; $d$ in formulas, `dim` in the official code",
    "n_head": "query heads",
    "n_head_kv": "key/value heads; `n_kv_heads` in the official code",
    "head_dim": "width of a head, $d_\\text{head}$",
    "n_group": "query heads that share a key/value head",
    "n_ff": "width of the feed-forward network; `hidden_dim` in the official code",
    "n_vocab": "tokens of the vocabulary",
    "n_ctx_train": "longest sequence of training, in tokens",
}
LETTERS = """\
| Letter | What it stands for | Shape |
| --- | --- | --- |
| $p$, $t$ | position of the token that is computed; of an earlier one | |
| $x$ | the residual stream of one token | `(n_embd,)` |
| $h$ | a normalised copy of the stream; as an index, a query head | `(n_embd,)` |
| $g$ | learned scale of a norm; as an index, a key/value head | `(n_embd,)` |
| $q$, $k$, $v$ | query, key and value | `(n_head, head_dim)`, `(n_head_kv, head_dim)` |
| $K$, $V$ | the cache of one layer, up to position $p$ | `(n_head_kv, p+1, head_dim)` |
| $s$, $a$ | scores and their soft-max | `(n_head, p+1)` |
| $\\theta_i$ | angle of pair $i$ | `(head_dim / 2,)` |
| $E$, $W$ | the embedding table; any other matrix | `(n_vocab, n_embd)`; `(n_out, n_in)` |
| $\\ell$ | logits | `(n_vocab,)` |
| $\\varepsilon$ | the small number under the root of a norm | |
| $n$; $B$, $S$ | tokens of a prompt; rows of a batch and tokens of a row | |
"""


def page():
    """The whole page, as MyST Markdown."""
    return "\n".join(["# Symbols, shapes and steps", "", _sizes(), LETTERS, *_steps()])


def _sizes():
    configs = [Config.named(name) for name in EXAMPLES]
    lines = [
        "Every shape follows from a handful of numbers. Their names are those of GGUF files and "
        "of `model.config`.",
        "",
        "| Name | What it is | " + " | ".join(EXAMPLES) + " |",
        "| --- | --- |" + " ---: |" * len(configs),
    ]
    for name, meaning in MEANING.items():
        values = " | ".join(f"{getattr(config, name):,}" for config in configs)
        lines.append(f"| `{name}` | {meaning} | {values} |")
    return "\n".join([*lines, ""])


def _steps():
    yield "## The steps of a token\n"
    yield (
        "In the order of computation. A shape is that of one token at position $p$. The last "
        "column is the name that llama.cpp gives the value, `{L}` standing for the layer."
    )
    group = None
    for step in steps.STEPS:
        if step.group != group:
            group = step.group
            yield f"\n### {group[0].upper() + group[1:]}\n"
            yield "| Step | Formula | Shape | llama.cpp |\n| --- | --- | --- | --- |"
        tensor = f"`{step.tensor}`" if step.tensor else "–"
        formula = step.formula.replace("|", r"\vert ")
        yield f"| `{step.name}` | ${formula}$ | `{spec.symbols(step.output)}` | {tensor} |"
    yield ""
