"""Vocabulary: pieces, kinds, ranks or scores, and special ids, checked and completed.

>>> v = Vocabulary.from_metadata({
...     "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm",
...     "tokenizer.ggml.tokens": ["a", "b", "ab"], "tokenizer.ggml.merges": ["a b"]})
>>> v.kind, v.n_tokens, v.ids[b"ab"], v.ranks[b"a b"]
('bpe', 3, 2, 0)
"""

from dataclasses import dataclass, field

import numpy as np

from ..errors import TokenizerProblem
from . import attributes, metadata
from .families import Family, family_of
from .metadata import PREFIX

_ID_KEYS = {
    "bos": ("bos_token_id",),
    "eos": ("eos_token_id",),
    "eot": ("eot_token_id",),
    "eom": ("eom_token_id",),
    "unk": ("unknown_token_id",),
    "sep": ("seperator_token_id",),  # the format's own spelling
    "pad": ("padding_token_id",),
    "mask": ("mask_token_id",),
    "fim_pre": ("fim_pre_token_id", "prefix_token_id"),
    "fim_suf": ("fim_suf_token_id", "suffix_token_id"),
    "fim_mid": ("fim_mid_token_id", "middle_token_id"),
    "fim_pad": ("fim_pad_token_id",),
    "fim_rep": ("fim_rep_token_id",),
    "fim_sep": ("fim_sep_token_id",),
}
_SPECIAL = attributes.CONTROL | attributes.USER_DEFINED | attributes.UNKNOWN


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Everything that tokenizing needs to know, as plain values.

    Attributes
    ----------
    kind : {"bpe", "spm"}
        Merges by rank over the byte alphabet, or by score over characters.
    pre : str
        Name of the pre-tokenizer; "" for SPM.
    family : Family
        What that name implies; for SPM only its defaults are used.
    tokens : list of bytes
        Token texts as the file writes them: byte alphabet for BPE, U+2581 for space in SPM.
    ids : dict of bytes to int
        Text → id.
    scores : float32 (n_tokens,)
        Merge priority of SPM.
    ranks : dict of bytes to int
        BPE merges: the line "left right" → its rank, lower first.
    bits : uint16 (n_tokens,)
        Attributes; `kind_of` names them.
    roles : dict of str to int or None
        Special ids: bos, eos, eot, eom, unk, sep, pad, mask, fim_*.
    eog : frozenset of int
        Ids that end generation.
    special : list of int
        Ids that are looked for in text, longest text first.
    add_bos, add_eos, add_space_prefix, clean_spaces : bool
    chat_templates : dict of str to str
        Chat templates by name; "" is the usual one.
    notes : list of str
        Sentences that a user of this vocabulary should read.
    """

    kind: str
    pre: str
    family: Family
    tokens: list
    ids: dict
    scores: np.ndarray
    ranks: dict
    bits: np.ndarray
    roles: dict
    eog: frozenset
    special: list
    add_bos: bool
    add_eos: bool
    add_space_prefix: bool
    clean_spaces: bool
    chat_templates: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)

    @property
    def n_tokens(self):
        """Number of tokens."""
        return len(self.tokens)

    def kind_of(self, token):
        """Attribute names of a token: ["control"], ["normal", "control"], …"""
        return attributes.attribute_names(int(self.bits[token]))

    def __repr__(self):
        name = f"bpe, {self.pre}" if self.kind == "bpe" else "spm"
        return f"Vocabulary({name}, {self.n_tokens} tokens, {len(self.special)} special)"

    @classmethod
    def from_metadata(cls, mapping):
        """The vocabulary described by a file's metadata.

        Parameters
        ----------
        mapping : Mapping of str to value
            Scalars as NumPy scalars of the file's exact type (or Python's own), strings as str,
            arrays as ndarray, arrays of strings as a sequence of bytes or str.

        Raises
        ------
        TokenizerProblem
            Naming the key: missing, of the wrong type, too short, or of a kind not known here.
        """
        notes = []
        kind = _kind(mapping)
        pre, family = _family(mapping, kind, notes)
        tokens, ids = _tokens(mapping)
        n = len(tokens)
        types = metadata.numbers(mapping, PREFIX + "token_type", n, [np.int32])
        if types is None:
            types = np.ones(n, np.int32)  # (n,) all normal
        roles = _roles(mapping, kind, family, n, notes)
        retyped = attributes.retype(ids, attributes.from_types(types), roles)
        special = _special_list(tokens, retyped.bits)
        _strip_rules(mapping, pre, ids, special, retyped.bits)
        spm = kind == "spm"
        return cls(
            kind=kind,
            pre=pre,
            family=family,
            tokens=tokens,
            ids=ids,
            scores=_scores(mapping, n),
            ranks={} if spm else _ranks(mapping),
            bits=retyped.bits,
            roles=retyped.roles,
            eog=frozenset(retyped.eog),
            special=special,
            add_bos=metadata.boolean(mapping, PREFIX + "add_bos_token", spm or family.add_bos),
            add_eos=metadata.boolean(mapping, PREFIX + "add_eos_token", False),
            add_space_prefix=metadata.boolean(mapping, PREFIX + "add_space_prefix", spm),
            clean_spaces=not spm and family.clean_spaces,
            chat_templates=_chat_templates(mapping),
            notes=notes,
        )


def _kind(mapping):
    key = PREFIX + "model"
    model = metadata.string(mapping, key)
    if model is None:
        raise TokenizerProblem(f"{key} is missing: this file holds no vocabulary.")
    if model not in ("gpt2", "llama"):
        raise TokenizerProblem(
            f"{key} is {model!r}; this package knows 'gpt2' (byte-level BPE) and 'llama' (SPM)."
        )
    return "bpe" if model == "gpt2" else "spm"


def _family(mapping, kind, notes):
    pre = metadata.string(mapping, PREFIX + "pre") or ""
    if kind == "spm":
        return "", Family("none", bos=1)
    if not pre:
        notes.append(
            f"{PREFIX}pre is missing: text is cut by the 'default' rules, which are probably not "
            f"the model's own. Convert the model again for right ids."
        )
        pre = "default"
    return pre, family_of(pre)


def _tokens(mapping):
    key = PREFIX + "tokens"
    tokens = metadata.texts(mapping, key)
    if not tokens:
        raise TokenizerProblem(f"{key} is {'empty' if tokens == [] else 'missing'}.")
    if b"" in tokens:
        tokens = [text or b"[EMPTY_%d]" % i for i, text in enumerate(tokens)]
    ids = dict(zip(tokens, range(len(tokens)), strict=True))
    if len(ids) < len(tokens):
        first = next(i for i, text in enumerate(tokens) if ids[text] != i)
        raise TokenizerProblem(
            f"{key} holds the text {tokens[first].decode('utf-8', 'replace')!r} twice, as id "
            f"{first} and id {ids[tokens[first]]}: a text must name one token."
        )
    return tokens, ids


def _scores(mapping, n):
    key = PREFIX + "scores"
    scores = metadata.numbers(mapping, key, n, [np.float32, np.int32])
    if scores is None:
        return np.zeros(n, np.float32)  # (n,)
    scores = scores.astype(np.float32)  # (n,)
    if np.isnan(scores).any():
        raise TokenizerProblem(f"{key} holds NaN, which has no place in an order of merges.")
    return scores


def _ranks(mapping):
    """The line "left right" → rank.  No text over the byte alphabet holds a space, so the line
    itself is a unique key; of a repeated line the first rank counts."""
    key = PREFIX + "merges"
    lines = metadata.texts(mapping, key)
    if lines is None:
        raise TokenizerProblem(f"{key} is missing: byte-level BPE cannot work without merges.")
    return dict(zip(reversed(lines), range(len(lines) - 1, -1, -1), strict=True))


def _roles(mapping, kind, family, n, notes):
    defaults = {"bos": 1, "eos": 2, "unk": 0} if kind == "spm" else {"bos": family.bos, "eos": 11}
    roles = dict.fromkeys(_ID_KEYS)
    for role, keys in _ID_KEYS.items():
        default = defaults.get(role)
        roles[role] = default if default is not None and default < n else None
        for key in keys:
            token = metadata.token_id(mapping, PREFIX + key)
            if token is None:
                continue
            if token < n:
                roles[role] = token
            else:
                notes.append(
                    f"{PREFIX}{key} is {token}, but there are only {n} tokens: it is not used."
                )
    return roles


def _special_list(tokens, bits):
    found = np.flatnonzero(bits & _SPECIAL).tolist()
    return sorted(found, key=lambda i: -len(tokens[i]))


def _strip_rules(mapping, pre, ids, special, bits):
    """Special tokens that swallow the white space beside them; only certain models have them."""
    name = (metadata.string(mapping, "general.name") or "").lower()
    if "jina-v2-de" in pre or "jina-v2-es" in pre:
        bits[[ids[b"<mask>"]] if b"<mask>" in ids else []] |= attributes.LSTRIP
    elif "phi-3" in name or "phi3" in name:
        texts = (b"</s>", b"<unk>", b"<s>", b"<|endoftext|>")
        missing = [text.decode() for text in texts if text not in ids]
        if missing:
            raise TokenizerProblem(
                f"general.name says Phi-3, whose vocabulary holds {', '.join(missing)}; "
                f"{PREFIX}tokens does not."
            )
        bits[special] |= attributes.RSTRIP
        bits[ids[b"</s>"]] |= attributes.RSTRIP
        bits[[ids[text] for text in texts[1:]]] &= ~np.uint16(attributes.RSTRIP)
    elif "modern-bert" in name and b"[MASK]" in ids:
        bits[ids[b"[MASK]"]] |= attributes.LSTRIP


def _chat_templates(mapping):
    key = "tokenizer.chat_template"
    found = {"": metadata.string(mapping, key)}
    for name in metadata.texts(mapping, "tokenizer.chat_templates") or []:
        name = name.decode("utf-8", "replace")
        found[name] = metadata.string(mapping, f"{key}.{name}")
    return {name: text for name, text in found.items() if text is not None}
