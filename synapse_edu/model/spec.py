"""StepSpec: what one step of the forward pass is, apart from any model and any token."""

from dataclasses import dataclass

SYMBOLS = {
    "n_embd": lambda c, p: c.n_embd,
    "n_head": lambda c, p: c.n_head,
    "n_head_kv": lambda c, p: c.n_head_kv,
    "head_dim": lambda c, p: c.head_dim,
    "n_head·head_dim": lambda c, p: c.n_embd_head,
    "n_head_kv·head_dim": lambda c, p: c.n_embd_kv,
    "n_ff": lambda c, p: c.n_ff,
    "n_vocab": lambda c, p: c.n_vocab,
    "p+1": lambda c, p: p + 1,
}


def numbers(shape, config, position=0):
    """A shape of symbols as a tuple of int, for a model and a token at `position`."""
    return tuple(SYMBOLS[s](config, position) for s in shape)


def symbols(shape):
    """A shape of symbols as text: ``(n_head, p+1)``; ``()`` is a single number."""
    return f"({', '.join(shape)}{',' if len(shape) == 1 else ''})"


@dataclass(frozen=True)
class StepSpec:
    """One step: its name, formula, shapes, and what it is for.

    Attributes
    ----------
    name : str
        This package's name of the step and of the value that it yields.
    group : str
        The part of the block it belongs to, for headings: "attention", "feed-forward", …
    formula : str
        LaTeX, without dollar signs.
    inputs : tuple of (str, tuple of str)
        What goes in: a step's name, a weight tensor's GGUF name, or a cache; with its shape.
    output : tuple of str
        Shape of the value for one token, in the symbols of `SYMBOLS`; p is its position.
    what, why : str
    package, llama_cpp, official, synapse : str
        Where it is computed: this package; llama.cpp's function; Meta's ``llama/model.py``;
        the synapse source.
    tensor : str
        llama.cpp's name of the value, ``{L}`` standing for the layer; empty if it has none.
    tensor_before_bias : str or None
        Its name where a bias follows, if that differs.
    unnamed_in : tuple of str
        Architectures whose graph gives the value no name.
    per_layer : bool
    needs : str
        Bias tensor (``"attn_q_bias"``) or ``"temperature"`` without which there is no such step.
    """

    name: str
    group: str
    formula: str
    inputs: tuple
    output: tuple
    what: str
    why: str
    package: str
    llama_cpp: str
    official: str
    synapse: str
    tensor: str
    tensor_before_bias: str | None = None
    unnamed_in: tuple = ()
    per_layer: bool = True
    needs: str = ""

    def shape(self, config, position=0):
        """Shape of the value in numbers, for one token at `position`."""
        return numbers(self.output, config, position)

    def input_shapes(self, config, position=0):
        """Shapes of the inputs in numbers: {name: tuple of int}."""
        return {name: numbers(shape, config, position) for name, shape in self.inputs}

    def llama_cpp_name(self, layer, architecture, has_bias=False):
        """llama.cpp's name of the value, such as ``"Qcur-0.ROPE"``; empty if it gives none."""
        if architecture in self.unnamed_in:
            return ""
        template = self.tensor
        if has_bias and self.tensor_before_bias is not None:
            template = self.tensor_before_bias
        return template.replace("{L}", str(layer))


# Shapes and places that several steps share.
EMBD, ALL_Q, ALL_KV = ("n_embd",), ("n_head·head_dim",), ("n_head_kv·head_dim",)
Q, KV, SCORES = ("n_head", "head_dim"), ("n_head_kv", "head_dim"), ("n_head", "p+1")
CACHE, FF, VOCAB = ("n_head_kv", "p+1", "head_dim"), ("n_ff",), ("n_vocab",)

NORM = dict(
    package="rms_norm (ops/reference/norm.py)",
    llama_cpp="ggml_compute_forward_rms_norm_f32 (ggml-cpu/ops.cpp)",
    synapse="kernels::rms_norm (kernels/elementwise.hpp)",
)
MATMUL = dict(
    package="matmul (ops/reference/matmul.py)",
    llama_cpp="ggml_compute_forward_mul_mat (ggml-cpu/ggml-cpu.c)",
    synapse="graph_builder::matmul, executed by kernels::gemm_rows",
)
ADD = dict(
    package="forward (model/walk.py): an addition",
    llama_cpp="ggml_add, in build_arch_graph (src/models)",
    synapse="add",
)


def bias(of, tensor, shape, cpp_name, group="attention"):
    """The step that adds the bias of `tensor` to the product `of` before it."""
    symbol = rf"\mathrm{{{of.replace('_', chr(92) + '_')}}}"
    return StepSpec(
        name=f"{of}_bias",
        group=group,
        formula=rf"{symbol} \leftarrow {symbol} + b",
        inputs=((of, shape), (f"blk.{{L}}.{tensor}.bias", shape)),
        output=shape,
        what=f"Adds a learned offset to each element of {of}.",
        why="Some families train with offsets, Qwen2 on q, k and v. Llama leaves them out. "
        "The tensors in the file decide.",
        official="none: Llama has no biases",
        tensor=cpp_name,
        needs=f"{tensor}_bias",
        **ADD,
    )
