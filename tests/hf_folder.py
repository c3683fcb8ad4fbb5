"""A recorded GGUF model turned back into a Hugging Face folder, so that converting it is a loop.

The way back is written apart from the converter: safetensors are written by the format's own
package where it knows the number type, and rows of q and k are moved one at a time.
"""

import json
import struct

import numpy as np

from synapse_edu.checkpoint.container import open_container
from synapse_edu.checkpoint.hparams import config_from_metadata

PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def apart(rows, n_head):
    """The inverse of `pair_rows`, a row at a time: row 2i of a head goes back to i."""
    out = np.empty_like(rows)  # the same shape
    head_dim = len(rows) // n_head
    for row in range(len(rows)):
        head, j = divmod(row, head_dim)
        out[head * head_dim + j // 2 + (j % 2) * head_dim // 2] = rows[row]
    return out


def config_json(config, vocab=None, **changes):
    """What ``config.json`` says of a Config, in the words of transformers 4."""
    found = {
        "model_type": {"mistral3": "ministral3"}.get(config.architecture, config.architecture),
        "num_hidden_layers": config.n_layer,
        "hidden_size": config.n_embd,
        "num_attention_heads": config.n_head,
        "num_key_value_heads": config.n_head_kv,
        "head_dim": config.head_dim,
        "intermediate_size": config.n_ff,
        "vocab_size": config.n_vocab,
        "max_position_embeddings": config.n_ctx_train,
        "rms_norm_eps": config.rms_eps,
        "rope_theta": config.rope.freq_base,
        "tie_word_embeddings": config.tied,
        "hidden_act": "silu",
    } | changes
    return {name: value for name, value in found.items() if value is not None}


def tensors_of(container, config):
    """(name, dtype, shape, bytes) of each tensor under its Hugging Face name."""
    for name, info in container.tensors.items():
        if name == "rope_freqs.weight":
            continue
        raw = container.raw(name).reshape(info.shape[0], -1)  # (rows, bytes)
        stem, kind = name.rsplit(".", 1)
        if stem.startswith("blk."):
            _, layer, role = stem.split(".")
            stem = f"model.layers.{layer}.{PARTS[role]}"
            n_head = {"attn_q": config.n_head, "attn_k": config.n_head_kv}.get(role)
            if n_head and config.rope.layout == "normal":
                raw = apart(raw, n_head)  # (rows, bytes)
        else:
            stem = WHOLE[stem]
        yield f"{stem}.{kind}", info.format.name, info.shape, raw.tobytes()


def write_safetensors(path, tensors):
    """The format by hand, for number types that NumPy lacks, and for damage."""
    header, data = {}, b""
    for name, dtype, shape, raw in tensors:
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode("utf-8")
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_folder(folder, gguf, extra=(), **changes):
    """A Hugging Face folder with the weights of a GGUF file; `changes` go to config.json."""
    container = open_container(gguf)
    config = config_from_metadata(container.metadata, container.tensors)
    folder.mkdir(exist_ok=True)
    text = json.dumps(config_json(config, **changes))
    (folder / "config.json").write_text(text, encoding="utf-8")
    write_safetensors(folder / "model.safetensors", [*tensors_of(container, config), *extra])
    return container, config
