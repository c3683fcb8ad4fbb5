"""A Hugging Face folder (safetensors, ``config.json``, tokenizer) → a GGUF file.

The numbers stay what they are; names, the order of the rows of q and k, and the way in which
the rotary schedule is written down change.

Examples
--------
>>> convert("SmolLM2-135M-Instruct", "smollm2.gguf", format="Q8_0")              # doctest: +SKIP

Source: llama.cpp's converter (conversion/llama.py).
"""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ..errors import BadArgument, FileProblem, UnsupportedModel
from ..formats.layout import format_of
from ..formats.matrix import Matrix
from . import hf_config, hf_promises, safetensors
from .hf_vocabulary import vocabulary_from
from .hparams import config_from_metadata
from .weights import BIASES
from .writer import write_gguf

OUTSIDE = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
INSIDE = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
# Not part of the language model, or computed from the config.
IGNORED = re.compile(
    r"(.*\.)?rotary_emb\.inv_freq|(model\.)?(vision_tower|multi_modal_projector)\..*"
)
LAYER = re.compile(r"model\.layers\.(\d{1,4})\.(.+)\.(weight|bias)")


def pair_rows(x, n_head):
    """Reorder the rows of a q or k projection from half-split pairs to neighbouring pairs.

    RoPE rotates the elements of a head two at a time.  Hugging Face's code takes elements i and
    i + head_dim/2 as a pair, GGUF's architectures ``llama`` and ``mistral3`` take 2i and 2i + 1.
    Element j of a head is made by row j of the projection, so moving the rows moves the elements:
    of each head, row i goes to 2i and row i + head_dim/2 to 2i + 1.  Queries and keys move alike,
    and a dot product does not mind the order of its terms, so every score stays what it was.

    Parameters
    ----------
    x : ndarray, shape (n_head · head_dim, ...)
        Rows of the weight, or elements of the bias; of any type.
    n_head : int
        Heads of this projection: n_head for q, n_head_kv for k.

    Returns
    -------
    ndarray of the same shape, a copy

    Raises
    ------
    BadArgument
        If the rows do not make `n_head` heads of an even width.

    Examples
    --------
    >>> pair_rows(np.arange(6), n_head=1).tolist()
    [0, 3, 1, 4, 2, 5]

    Notes
    -----
    llama.cpp's ``LlamaModel.permute``.
    """
    x = np.asarray(x)
    if not n_head > 0 or x.ndim == 0 or x.shape[0] % (2 * n_head):
        raise BadArgument(f"{x.shape} cannot be cut into {n_head} heads of an even width.")
    halves = x.reshape(n_head, 2, -1, *x.shape[1:])  # (n_head, half, pair, ...)
    return halves.swapaxes(1, 2).reshape(x.shape)  # (n_head · head_dim, ...)


def gguf_name(name):
    """The GGUF name of a Hugging Face tensor; None for one that is left out.

    >>> gguf_name("model.layers.3.self_attn.q_proj.weight")
    'blk.3.attn_q.weight'

    Raises
    ------
    UnsupportedModel
        For a tensor that has no place in these architectures.
    """
    plain = name.replace("model.language_model.", "model.").removeprefix("language_model.")
    if IGNORED.fullmatch(plain):
        return None
    match = LAYER.fullmatch(plain)
    if match and match[2] in INSIDE:
        return f"blk.{int(match[1])}.{INSIDE[match[2]]}.{match[3]}"
    stem, _, kind = plain.rpartition(".")
    if stem in OUTSIDE and kind in ("weight", "bias"):
        return f"{OUTSIDE[stem]}.{kind}"
    raise UnsupportedModel(
        f"The tensor {name!r:.120} has no place in the architectures that are converted, so the "
        "result would be wrong. Is this another kind of model, or an adapter?"
    )


def convert(folder, path, format=None, say=print):
    """Convert a folder to one GGUF file.

    Parameters
    ----------
    folder : str or Path
        Holds ``config.json``, ``*.safetensors`` and, for a vocabulary, ``tokenizer.model`` or
        ``tokenizer.json``.
    path : str or Path
        The file to write; it is replaced only when the new one is complete.
    format : str, optional
        Of the matrices, such as ``"F16"`` or ``"Q8_0"``.  None keeps the bits as they are.
        Norms and biases are F32.
    say : function
        Is given a sentence about each thing that the new file lacks, and the folder does not.

    Returns
    -------
    Config

    Raises
    ------
    FileProblem
        Something is missing or damaged; the message names it.
    UnsupportedModel
        Another kind of model, or a vocabulary that is not known.
    """
    folder, path = Path(folder), Path(path)
    if format is not None:
        format_of(format)
    if path.suffix != ".gguf":  # so that no file of the folder is ever written over
        raise BadArgument(f"{path}: the new file's name must end in .gguf.")
    if not (folder / "config.json").is_file():
        raise FileProblem(f"{folder}: there is no config.json in this folder. Check the path.")
    settings = safetensors.read_json(folder / "config.json")
    metadata, rope_freqs = hf_config.metadata_from(settings, folder.resolve().name)
    values = hf_config.settings_of(settings)[0].values
    tied = values.get("tie_word_embeddings") is True
    saved = _by_gguf_name(safetensors.read_folder(folder), tied)
    config = _checked(metadata, saved, rope_freqs)
    hf_promises.check(values, config, saved)
    metadata |= vocabulary_from(folder, config.n_vocab)
    tensors = {name: _tensor(config, name, tensor, format) for name, tensor in saved.items()}
    if rope_freqs is not None:
        tensors["rope_freqs.weight"] = rope_freqs
    write_gguf(path, metadata, tensors)
    for sentence in hf_promises.remarks(values, config, metadata):
        say(sentence)
    return config


def _by_gguf_name(saved, tied):
    found = {}
    for tensor in saved.values():
        name = gguf_name(tensor.name)
        if name in found:
            raise FileProblem(f"{tensor.name} and {found[name].name} are the same tensor twice.")
        if name is not None and not (tied and name.startswith("output.")):
            found[name] = tensor
    if not tied and "output.weight" not in found:
        raise FileProblem(
            "lm_head.weight is missing, and config.json does not say tie_word_embeddings."
        )
    return found


def _checked(metadata, saved, rope_freqs):
    """The Config, once every tensor that it asks for is there in its shape, and no other."""
    infos = dict(saved)
    if rope_freqs is not None:
        infos["rope_freqs.weight"] = SimpleNamespace(shape=rope_freqs.shape)
    config = config_from_metadata(metadata, infos)
    biases = {f"blk.{i}.{role}.bias" for i in range(config.n_layer)
              for role in BIASES[config.architecture]}  # fmt: skip
    if config.architecture == "qwen2":
        biases.add("output.bias")
    wanted = {k: v for k, v in config.tensors().items() if not k.endswith(".bias")}
    for name in infos:
        if name in biases:
            weight = wanted.get(name.replace(".bias", ".weight"), (config.n_vocab,))
            wanted[name] = weight[:1]
        elif name not in wanted:
            raise UnsupportedModel(f"The tensor {saved[name].name} has no place in this model.")
    for name, shape in wanted.items():
        if name not in infos:
            raise FileProblem(f"The tensor {name} {shape} (its GGUF name) is missing.")
        if infos[name].shape != shape:
            raise FileProblem(
                f"The tensor {saved[name].name} has shape {infos[name].shape}; "
                f"config.json asks for {shape}."
            )
    return config


def _tensor(config, name, tensor, format):
    """What `write_gguf` takes: float32 for a vector, a Matrix otherwise."""
    raw = tensor.raw  # (rows, bytes per row)
    if len(tensor.shape) == 1:
        raw = raw.reshape(tensor.shape[0], -1)  # (n, bytes of an element)
    heads = {"attn_q": config.n_head, "attn_k": config.n_head_kv}
    role = name.split(".")[-2]
    if role in heads and config.rope.layout == "normal":
        raw = pair_rows(raw, heads[role])  # the same shape
    if len(tensor.shape) == 1:
        return Matrix(raw.reshape(1, -1), tensor.format, len(raw), name).rows()[0]  # (n,)
    matrix = Matrix(raw, tensor.format, tensor.shape[1], name)
    if format in (None, tensor.format):
        return matrix
    try:
        return Matrix.from_float32(matrix.rows(), format, name)
    except BadArgument as error:
        raise BadArgument(f"{tensor.name}: {error}") from None
