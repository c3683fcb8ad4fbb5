"""What kind of token each one is: the file's types, then what llama.cpp changes by the text.

Files are often wrong about their own special tokens, so llama.cpp looks at the texts: `</s>` in
Qwen2's vocabulary is an ordinary token, and becomes a control token that ends generation.  The
rules below follow `llama_vocab::impl::load`, in its order, and so give its ids.
"""

from dataclasses import dataclass, field

import numpy as np

UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE, LSTRIP, RSTRIP = (
    1, 2, 4, 8, 16, 32, 128, 256,
)  # fmt: skip
NAMES = {
    UNKNOWN: "unknown",
    UNUSED: "unused",
    NORMAL: "normal",
    CONTROL: "control",
    USER_DEFINED: "user-defined",
    BYTE: "byte",
    LSTRIP: "lstrip",
    RSTRIP: "rstrip",
}

# GGUF's token_type: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
_BY_TYPE = np.array([0, NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE], np.uint16)  # (7,)

_END_OF_TURN = (
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
    "<EOT>", "_<EOT>", "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>",
)  # fmt: skip
_END_OF_GENERATION = _END_OF_TURN + (
    "</s>", "<|eom_id|>", "<|return|>", "<|call|>", "<|calls|>", "<|flush|>", "[EOS]", "<eos>",
    "<turn|>", "<|tool_response>", "[e~[",
)  # fmt: skip
# Roles that a file may leave out, and the texts that then take them.
_BY_TEXT = {
    "eot": _END_OF_TURN,
    "eom": ("<|eom_id|>",),
    "fim_pre": (
        "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>",
        "<|code_prefix|>", "<|prefix|>",
    ),
    "fim_suf": (
        "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>",
        "<|code_suffix|>", "<|suffix|>",
    ),
    "fim_mid": (
        "<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>",
        "<|code_middle|>", "<|middle|>",
    ),
    "fim_pad": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    "fim_rep": ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    "fim_sep": ("<|file_sep|>",),
}  # fmt: skip
_ALWAYS_SHOWN = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")


def attribute_names(bits):
    """Names of the bits that are set: ``attribute_names(12)`` → ``["normal", "control"]``."""
    return [name for bit, name in NAMES.items() if bits & bit]


def from_types(types):
    """Attribute bits of GGUF token types: int32 (n,) → uint16 (n,); unknown types have none."""
    known = np.where((types >= 0) & (types < len(_BY_TYPE)), types, 0)  # (n,)
    return _BY_TYPE[known]  # (n,)


@dataclass
class Retyped:
    """The vocabulary's special side after the rules: see `retype`."""

    bits: np.ndarray
    roles: dict[str, int | None]
    eog: set[int] = field(default_factory=set)


def retype(ids, bits, roles):
    """Apply llama.cpp's rules by token text.

    Parameters
    ----------
    ids : dict of bytes to int
        Token text → id.
    bits : uint16 (n,)
        Attributes from the file's types; not changed.
    roles : dict of str to int or None
        "bos", "eos", "eot", … as the file gives them.

    Returns
    -------
    Retyped
        New bits, the roles completed, and `eog`, the ids that end generation.

    Notes
    -----
    Where several texts could take a role, llama.cpp's choice hangs on the order of a hash table;
    here the lowest id wins.  All of them end generation either way when the role is `eot`.
    """
    out = Retyped(bits.copy(), dict(roles))
    _complete_roles(ids, out)
    control_unused = [i for text, i in ids.items() if b"unused" in text and out.bits[i] & CONTROL]
    out.bits[control_unused] |= UNUSED
    _collect_ends(ids, out)
    _settle_harmony(ids, out)
    return out


def _present(ids, texts):
    """Ids of those texts that the vocabulary holds, lowest first."""
    keys = (text.encode("utf-8") for text in texts)
    return sorted(ids[key] for key in keys if key in ids)


def _complete_roles(ids, out):
    for role, texts in _BY_TEXT.items():
        found = _present(ids, texts)
        if out.roles.get(role) is None and found:
            out.roles[role] = found[0]
            out.bits[found[0]] |= CONTROL


def _collect_ends(ids, out):
    by_text = _present(ids, _END_OF_GENERATION)
    out.bits[by_text] |= CONTROL
    out.bits[_present(ids, _ALWAYS_SHOWN)] = USER_DEFINED
    by_role = (out.roles.get(r) for r in ("fim_pad", "fim_rep", "fim_sep", "eos", "eot", "eom"))
    out.eog = {*by_text, *(i for i in by_role if i is not None)}


def _settle_harmony(ids, out):
    """Two texts that end generation in most files, but not beside certain others."""

    def ends(*texts):
        return bool(out.eog.intersection(_present(ids, texts)))

    calls = ends("<|call|>", "<|calls|>")
    if ends("<|end|>") and calls and ends("<|return|>", "<|flush|>"):
        (end,) = _present(ids, ["<|end|>"])
        out.eog.discard(end)
        out.bits[end] = USER_DEFINED
    if ends("</s>") and ends("<|tool_response>", "<|plamo:eos|>"):
        (end,) = _present(ids, ["</s>"])
        out.eog.discard(end)
        out.bits[end] = NORMAL
