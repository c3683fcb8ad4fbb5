"""What happens to a token, as data: every step of the forward pass, in order.

This is the one list.  The walk yields these steps, the stepper and the tables draw them, and
the tests compare them with llama.cpp's tensors by name.  Shapes are those of one token at
position p; a batch of n tokens puts n in front.

Examples
--------
>>> [spec.name for spec in STEPS][:3]
['embedding', 'attn_norm_scaled', 'attn_norm']
"""

from ..errors import BadArgument
from .spec import ADD, EMBD, MATMUL, NORM, VOCAB, StepSpec
from .steps_attention import ATTENTION_STEPS
from .steps_feedforward import FEEDFORWARD_STEPS

EMBEDDING_STEP = StepSpec(
    name="embedding",
    group="embedding",
    formula=r"x = E_{t}",
    inputs=(("token_embd.weight", ("n_vocab", "n_embd")),),
    output=EMBD,
    what="Takes the row of the embedding table that belongs to the token's id.",
    why="An id is only a name. The row is what the model has learned about the token, and "
    "it is the first value of the residual stream.",
    package="embedding (ops/reference/embedding.py)",
    llama_cpp="ggml_compute_forward_get_rows (ggml-cpu/ops.cpp)",
    official="Transformer.forward: self.tok_embeddings(tokens)",
    synapse="graph_builder::embed, run by session::execute(op_embed)",
    tensor="embd.GET_ROWS",
    per_layer=False,
)

OUTPUT_STEPS = (
    StepSpec(
        name="output_norm_scaled",
        group="output",
        formula=r"\hat x = \frac{x}{\sqrt{\frac{1}{d}\sum_i x_i^2 + \varepsilon}}",
        inputs=(("layer_output", EMBD),),
        output=EMBD,
        what="Divides the finished stream by its root mean square.",
        why="No layer has normalised the stream itself. This is done once, before the scores.",
        official="RMSNorm._norm",
        tensor="norm.RMS_NORM",
        per_layer=False,
        **NORM,
    ),
    StepSpec(
        name="output_norm",
        group="output",
        formula=r"h = \hat x \odot g",
        inputs=(("output_norm_scaled", EMBD), ("output_norm.weight", EMBD)),
        output=EMBD,
        what="Multiplies every channel by the last learned scale.",
        why="It sets how much each channel counts when the tokens are scored.",
        official="Transformer.forward: self.norm(h)",
        tensor="result_norm.MUL",
        per_layer=False,
        **NORM,
    ),
    StepSpec(
        name="logits",
        group="output",
        formula=r"\ell = W_{\mathrm{out}}\,h",
        inputs=(("output_norm", EMBD), ("output.weight", ("n_vocab", "n_embd"))),
        output=VOCAB,
        what="Scores every token of the vocabulary as the next one.",
        why="Each row of W_out is a direction that stands for a token. A small model uses the "
        "embedding table for it a second time and so saves a large matrix.",
        official="Transformer.forward: self.output(h)",
        tensor="result_output.MUL_MAT",
        tensor_before_bias="",
        per_layer=False,
        **MATMUL,
    ),
    StepSpec(
        name="logits_bias",
        group="output",
        formula=r"\ell \leftarrow \ell + b",
        inputs=(("logits", VOCAB), ("output.bias", VOCAB)),
        output=VOCAB,
        what="Adds a learned offset to every score.",
        why="Qwen2 files may hold one. It raises or lowers a token whatever the text.",
        official="none: Llama has no biases",
        tensor="result_output.ADD",
        per_layer=False,
        needs="output_bias",
        **ADD,
    ),
)

STEPS = (EMBEDDING_STEP, *ATTENTION_STEPS, *FEEDFORWARD_STEPS, *OUTPUT_STEPS)
BY_NAME = {spec.name: spec for spec in STEPS}


def spec(name):
    """The StepSpec called `name`."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise BadArgument(f"No step is called {name!r}; there are {', '.join(BY_NAME)}.") from None


def usual_biases(architecture):
    """The biases that an architecture's files always hold."""
    return {"attn_q_bias", "attn_k_bias", "attn_v_bias"} if architecture == "qwen2" else set()


def plan(config, biases=None):
    """Every step that a token takes through a model, in order.

    Parameters
    ----------
    config : Config
    biases : container of str, optional
        Names of the biases that each layer has; by default those usual for the architecture.

    Returns
    -------
    list of (StepSpec, layer), layer None outside the layers
    """
    have = set(usual_biases(config.architecture) if biases is None else biases)
    if config.attn_temperature_scale:
        have.add("temperature")
    steps = [s for s in STEPS if not s.needs or s.needs in have]
    layered = [s for s in steps if s.per_layer]
    first = [(s, None) for s in steps if s.group == "embedding"]
    middle = [(s, layer) for layer in range(config.n_layer) for s in layered]
    return first + middle + [(s, None) for s in steps if s.group == "output"]
