"""What a Hugging Face folder promises and a GGUF file of it does not keep."""

from ..errors import FileProblem

# What a setting of config.json promises; Llama's code reads them, the other families' does not.
PROMISED = {
    "attention_bias": ("attn_q", "attn_k", "attn_v", "attn_output"),
    "mlp_bias": ("ffn_gate", "ffn_up", "ffn_down"),
}


def check(values, config, saved):
    """Refuse a folder that lacks biases which its ``config.json`` promises.

    Parameters
    ----------
    values : dict
        The language model's part of ``config.json``.
    config : Config
    saved : collection of str
        GGUF names of the tensors in the folder.

    Raises
    ------
    FileProblem
    """
    for setting, roles in PROMISED.items():
        if values["model_type"] == "llama" and values.get(setting) is True:
            names = [f"blk.{i}.{role}.bias" for i in range(config.n_layer) for role in roles]
            missing = [name for name in names if name not in saved]
            if missing:
                raise FileProblem(
                    f"config.json sets {setting}, and the tensor {missing[0]} (its GGUF name) is "
                    "missing."
                )


def remarks(values, config, metadata):
    """What the new file does not do that its reader may expect, a sentence each.

    Parameters
    ----------
    values, config
        As for `check`.
    metadata : dict
        Of the new file.

    Yields
    ------
    str
    """
    tokens = metadata.get("tokenizer.ggml.tokens")
    if tokens is None:
        yield (
            "The folder holds no tokenizer (tokenizer.model or tokenizer.json), so the new file "
            "has no vocabulary: it takes ids, and no text."
        )
    else:
        free = sum(text == b"[PAD%d]" % i for i, text in enumerate(tokens))
        if free:
            yield (
                f"{free} of {len(tokens):,} ids have no token in the tokenizer's files. They are "
                "called [PAD…], and no text gives them."
            )
    window = values.get("sliding_window")
    sliding = values.get("use_sliding_window", values["model_type"] != "qwen2")
    if sliding and type(window) is int and window < config.n_ctx_train:
        yield (
            f"config.json sets a sliding window of {window:,} tokens. It is not part of the new "
            f"file, as in llama.cpp: beyond {window:,} tokens the results differ from the original."
        )
