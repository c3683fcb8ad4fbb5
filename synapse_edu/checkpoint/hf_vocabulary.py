"""A Hugging Face tokenizer → the vocabulary's metadata in a GGUF file.

Two kinds are known: ``tokenizer.model``, a SentencePiece model (Llama 1 and 2, TinyLlama,
Mistral 7B), and ``tokenizer.json`` with byte-level BPE (Llama 3, Qwen2, Nemo, SmolLM2).  Special
ids and the chat template are collected by PyPI's ``gguf``.

Source: llama.cpp's converter (conversion/base.py, ``_create_vocab_sentencepiece`` and
``get_vocab_base``), which tells families apart by the ids of a sample text; here the rule itself
is compared.
"""

import logging
import struct

import numpy as np

from ..errors import FileProblem, UnsupportedModel
from .safetensors import read_json

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
_TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
_UP, _LOW = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = rf"[^\r\n\p{{L}}\p{{N}}]?{_UP}*{_LOW}+|[^\r\n\p{{L}}\p{{N}}]?{_UP}+{_LOW}*|\p{{N}}"
# the regex by which each family cuts text into words → its name in a GGUF file
SPLITS = {
    _WORDS + r"|\p{N}{1,3}" + _TAIL: "llama-bpe",
    _WORDS + r"|\p{N}" + _TAIL: "qwen2",
    _TEKKEN + _TAIL.replace(r"[\r\n]*", r"[\r\n/]*", 1): "tekken",
}


def vocabulary_from(folder, n_vocab):
    """Metadata of the vocabulary; empty where the folder holds no tokenizer.

    Parameters
    ----------
    folder : Path
    n_vocab : int
        Rows of the embedding table; ids without a piece are filled up.

    Returns
    -------
    dict of str → NumPy scalar, str, ndarray, or list of bytes

    Raises
    ------
    FileProblem
        A tokenizer file is damaged.
    UnsupportedModel
        A way of cutting text that is not known.
    """
    if (folder / "tokenizer.model").is_file():
        found = _sentencepiece(folder, n_vocab)
    elif (folder / "tokenizer.json").is_file():
        found = _byte_level(folder, n_vocab)
    else:
        return {}
    return found | _special(folder, n_vocab, merges="tokenizer.ggml.scores" not in found)


class _Table:
    """Texts, scores and types by id, filled up with unused pieces."""

    def __init__(self, n_vocab):
        self.texts = [b"[PAD%d]" % i for i in range(n_vocab)]
        self.scores = np.full(n_vocab, -10000, np.float32)  # (n_vocab,)
        self.types = np.full(n_vocab, UNUSED, np.int32)  # (n_vocab,)

    def put(self, id, text, kind, score=0.0):
        if type(id) is not int or not isinstance(text, str) or id < 0:
            raise FileProblem(f"The tokenizer's entry {text!r:.40} with id {id!r:.40} is damaged.")
        if id < len(self.texts):  # ids beyond the embedding table cannot be used
            self.texts[id] = text.encode("utf-8", "replace")
            self.scores[id], self.types[id] = score, kind

    def added(self, entries, score=0.0):
        for id, text, special in entries:
            looks_special = isinstance(text, str) and (
                text == "<pad>" or text.startswith("<|") and text.endswith("|>")
            )
            self.put(id, text, CONTROL if special or looks_special else USER_DEFINED, score)


def _byte_level(folder, n_vocab):
    tokenizer = read_json(folder / "tokenizer.json")
    model = tokenizer.get("model")
    is_bpe = isinstance(model, dict) and model.get("type", "BPE") == "BPE"
    if not is_bpe or not isinstance(model.get("vocab"), dict):
        raise UnsupportedModel("tokenizer.json: only vocabularies of the kind BPE are converted.")
    if model.get("byte_fallback"):
        raise UnsupportedModel(
            "tokenizer.json: this is a SentencePiece vocabulary, whose scores are only in "
            "tokenizer.model. Put that file into the folder too."
        )
    table, owner = _Table(n_vocab), {}
    for text, id in model["vocab"].items():
        table.put(id, text, NORMAL)
        if owner.setdefault(id, text) != text:
            raise FileProblem(
                f"tokenizer.json: {owner[id]!r:.40} and {text!r:.40} have one id, {id}."
            )
    entries = tokenizer.get("added_tokens") or []
    try:
        table.added([(e["id"], e["content"], bool(e.get("special"))) for e in entries])
    except (KeyError, TypeError, AttributeError):
        raise FileProblem("tokenizer.json: its added_tokens are damaged.") from None
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre_tokenizer(tokenizer.get("pre_tokenizer")),
        "tokenizer.ggml.tokens": table.texts,
        "tokenizer.ggml.token_type": table.types,
    }


def pre_tokenizer(rule):
    """The GGUF name of a ``pre_tokenizer`` of ``tokenizer.json``.

    >>> pre_tokenizer({"type": "ByteLevel", "use_regex": True})
    'gpt-2'

    Raises
    ------
    UnsupportedModel
        A wrong guess would give wrong ids in silence.
    """
    parts = rule.get("pretokenizers", [rule]) if isinstance(rule, dict) else []
    kinds = [part.get("type") if isinstance(part, dict) else None for part in parts]
    if kinds == ["ByteLevel"] and parts[0].get("use_regex", True):
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and parts[0].get("individual_digits"):
        return "smollm"
    if kinds == ["Split", "ByteLevel"] and parts[1].get("use_regex") is False:
        pattern = parts[0].get("pattern")
        regex = pattern.get("Regex") if isinstance(pattern, dict) else None
        if isinstance(regex, str) and regex in SPLITS and parts[0].get("behavior") == "Isolated":
            return SPLITS[regex]
    raise UnsupportedModel(
        f"tokenizer.json: this way of cutting text into words is not known: {rule!r:.300}"
    )


def _sentencepiece(folder, n_vocab):
    table = _Table(n_vocab)
    pieces = list(_pieces(folder / "tokenizer.model"))
    if not pieces:
        raise FileProblem("tokenizer.model: this is not a SentencePiece model: it has no pieces.")
    for id, (text, score, kind) in enumerate(pieces):
        table.put(id, text, kind, score)
    for name, read in (("added_tokens.json", _plain), ("tokenizer_config.json", _decoder)):
        if (folder / name).is_file():
            table.added(read(read_json(folder / name), name), score=-1000.0)
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": table.texts,
        "tokenizer.ggml.scores": table.scores,
        "tokenizer.ggml.token_type": table.types,
    }


def _plain(values, _):
    return [(id, text, False) for text, id in values.items()]


def _decoder(values, name):
    try:
        entries = (values.get("added_tokens_decoder") or {}).items()
        return [
            (int(id), entry["content"].replace("▁", " ") if not entry.get("special")
             else entry["content"], bool(entry.get("special")))
            for id, entry in entries
        ]  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FileProblem(f"{name}: its added_tokens_decoder is damaged.") from None


def _pieces(path):
    """(text, score, type) of each piece of a SentencePiece model.

    The file is a protocol-buffer message whose field 1, repeated, is a piece; in a piece field 1
    is the text, 2 the score as float32, and 3 the type, numbered as in GGUF.
    """
    raw = path.read_bytes()
    try:
        for number, value in _fields(raw):
            if number == 1:
                piece = dict(_fields(value))
                score = struct.unpack("<f", piece.get(2, b"\0\0\0\0"))[0]
                yield piece[1].decode("utf-8"), score, piece.get(3, NORMAL)
    except (IndexError, KeyError, TypeError, AttributeError, ValueError, struct.error):
        raise FileProblem(f"{path.name}: this is not a SentencePiece model, or damaged.") from None


def _fields(raw):
    """(field number, value) of a protocol-buffer message: int, or bytes."""
    position = 0
    while position < len(raw):
        tag, position = _varint(raw, position)
        kind = tag & 7
        if kind == 0:
            value, position = _varint(raw, position)
        else:
            if kind not in (1, 2, 5):
                raise ValueError("unknown wire type")
            length = {1: 8, 5: 4}.get(kind)
            if length is None:
                length, position = _varint(raw, position)
            if length > len(raw) - position:
                raise ValueError("truncated")
            value = raw[position : position + length]
            position += length
        yield tag >> 3, value


def _varint(raw, position):
    """A whole number in groups of seven bits, the lowest first; the top bit says "more"."""
    value = 0
    for shift in range(0, 70, 7):
        byte = raw[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise ValueError("a number of more than ten bytes")


def _special(folder, n_vocab, merges):
    """Merges, special ids, flags and the chat template, as PyPI's ``gguf`` collects them."""
    import gguf

    log = logging.getLogger("gguf.vocab")
    level = log.level
    log.setLevel(logging.ERROR)  # its advice is meant for authors of converters
    try:
        found = gguf.SpecialVocab(folder, load_merges=merges, n_vocab=n_vocab)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise FileProblem(f"{folder}: the tokenizer is damaged ({error!r:.100}).") from None
    finally:
        log.setLevel(level)
    names = {"unk": "unknown", "sep": "seperator", "pad": "padding"}  # as GGUF spells them
    metadata = {}
    if merges:
        if not found.merges:
            raise FileProblem("tokenizer.json: it holds no merges, so no text could be tokenized.")
        metadata["tokenizer.ggml.merges"] = [m.encode("utf-8", "replace") for m in found.merges]
    for kind, id in found.special_token_ids.items():
        metadata[f"tokenizer.ggml.{names.get(kind, kind)}_token_id"] = np.uint32(id)
    for kind, flag in found.add_special_token.items():
        metadata[f"tokenizer.ggml.add_{kind}_token"] = np.bool_(flag)
    if isinstance(found.chat_template, str):
        metadata["tokenizer.chat_template"] = found.chat_template
    return metadata
