"""Tokenizer: text → ids and back, with llama.cpp's results for every input."""

import sys

from ..errors import BadArgument, TokenizerProblem
from . import chat, explain, pieces
from .attributes import CONTROL, UNKNOWN
from .bpe import BytePairEncoder
from .special import partition
from .spm import ScoreEncoder
from .stream import TextStream
from .utf8 import as_bytes


def _show(sentence):
    print(sentence, file=sys.stderr)


class Tokenizer:
    """Encodes and decodes with one vocabulary.

    Parameters
    ----------
    vocabulary : Vocabulary
    say : callable or None
        Receives each note once, when it first applies; the default prints it.

    Attributes
    ----------
    notes : list of str
        What has been noted so far: a missing pre-tokenizer name, a second begin token, …
    """

    def __init__(self, vocabulary, say=_show):
        self.vocabulary = vocabulary
        self.encoder = {"bpe": BytePairEncoder, "spm": ScoreEncoder}[vocabulary.kind](vocabulary)
        self._special = [
            (token, vocabulary.tokens[token], int(vocabulary.bits[token]))
            for token in vocabulary.special
        ]
        self._always_special = [e for e in self._special if not e[2] & (CONTROL | UNKNOWN)]
        self._pieces = {}
        self._say = say
        self.notes = []
        for sentence in vocabulary.notes:
            self._note(sentence)

    def __repr__(self):
        return f"Tokenizer({self.vocabulary!r})"

    # --- text → ids -----------------------------------------------------------------------

    def encode(self, text, add_special=True, parse_special=False):
        """Ids of a text.

        Parameters
        ----------
        text : str or bytes
        add_special : bool
            Put the begin and end tokens where this vocabulary wants them.
        parse_special : bool
            Let control tokens that are spelled in the text, like ``<|eot_id|>``, become those
            tokens.  Leave it off for text that somebody typed.

        Returns
        -------
        list of int

        Raises
        ------
        BadArgument
            For anything but str and bytes, and for half a surrogate pair.
        TokenizerProblem
            For a code point above U+10FFFF, a byte that has no token in an SPM vocabulary, and
            a vocabulary that wants a begin or end token but names none.
        """
        parts = self.fragments(as_bytes(text), parse_special)
        return self._finish(self.ends(add_special, "bos") + self._encode(parts), add_special)

    def _encode(self, parts):
        out = []
        for fragment, raw, prefix in parts:
            if fragment.token is None:
                out += self.encoder.encode(raw, prefix)
            else:
                out.append(fragment.token)
        return out

    def fragments(self, raw, parse_special, typed=b""):
        """(Fragment, its bytes, whether a space goes in front) for each part of the text; for
        `typed` see `special.partition`."""
        special = self._special if parse_special else self._always_special
        prefix = self.vocabulary.add_space_prefix
        for fragment in partition(raw, special, typed):
            yield fragment, raw[fragment.start : fragment.end], prefix
            prefix = self.vocabulary.add_space_prefix and fragment.token is not None

    def ends(self, add_special, role):
        """[id] of the begin or end token if it is to be added, else []."""
        v = self.vocabulary
        if not (add_special and (v.add_bos if role == "bos" else v.add_eos)):
            return []
        if v.roles[role] is None:
            raise TokenizerProblem(
                f"tokenizer.ggml.add_{role}_token asks for a token that the file does not name "
                f"(tokenizer.ggml.{role}_token_id). Encode with add_special=False."
            )
        return [v.roles[role]]

    def _finish(self, out, add_special):
        if self.ends(add_special, "bos") and out[1:2] == out[:1]:
            self._note(
                "The text already began with the begin token, and another was put in front: the "
                "ids now start with two. Encode such a text with add_special=False."
            )
        return out + self.ends(add_special, "eos")

    def _note(self, sentence):
        if sentence not in self.notes:
            self.notes.append(sentence)
            if self._say:
                self._say(sentence)

    def render_chat(self, messages, template=None, **options):
        """A chat as the text that the file's template makes of it; `chat.render` has the
        parameters (``tools``, ``add_generation_prompt``, …)."""
        return chat.render(self.vocabulary, messages, template, **options).text

    def apply_chat_template(self, messages, template=None, **options):
        """Ids of a chat.

        Only what the template itself writes can become a control token, never what a message
        spells; the ids begin with one begin token, or with none where the family has none.

        Parameters
        ----------
        messages : list of dict
            ``[{"role": "user", "content": "Hi"}]``.
        template : str, optional
            A template, or the name of one in the file; see `chat.render`.
        **options
            ``tools``, ``add_generation_prompt`` (True), ``now``, and the template's variables.

        Returns
        -------
        list of int
        """
        rendered = chat.render(self.vocabulary, messages, template, **options)
        ids = self._encode(self.fragments(as_bytes(rendered.text), True, rendered.typed))
        begin = self.vocabulary.roles["bos"]
        while begin is not None and ids[:2] == [begin, begin]:
            del ids[0]
        return ids if ids[:1] == [begin] else self.ends(True, "bos") + ids

    def explain(self, text, add_special=True, parse_special=False):
        """Why `encode` gives these ids: an `explain.Explanation` with `.ids`, `.table()`,
        `.replay()` and `.units`; takes up to 100 000 bytes."""
        return explain.explain(self, as_bytes(text), add_special, parse_special)

    @property
    def newline_id(self):
        """Id of a line end: the byte token 0x0A of SPM, the first id of "\\n" in BPE."""
        v = self.vocabulary
        if v.kind == "spm":
            return v.ids.get(b"<0x0A>", v.ids.get(b"\n", v.roles["pad"]))
        return next(iter(self.encoder.encode(b"\n")), v.roles["pad"])

    # --- ids → text -----------------------------------------------------------------------

    def piece(self, token, special=True, lstrip=0):
        """Bytes of one token, exactly llama_token_to_piece.

        Parameters
        ----------
        token : int
        special : bool
            Show control and unknown tokens by their text; otherwise they are empty.
        lstrip : int
            Drop up to this many leading spaces.
        """
        token = self._check(token)
        if not special and self.vocabulary.bits[token] & (CONTROL | UNKNOWN):
            return b""
        found = self._pieces.get(token)
        if found is None:
            found = self._pieces[token] = pieces.piece_of(self.vocabulary, token)
        return pieces.strip_leading(found, lstrip)

    def _check(self, token):
        try:
            index = token.__index__()
        except (AttributeError, TypeError):
            raise BadArgument(f"A token id is a whole number, not {token!r}.") from None
        if not 0 <= index < self.vocabulary.n_tokens:
            raise BadArgument(
                f"Token id {index} is outside this vocabulary: ids run from 0 to "
                f"{self.vocabulary.n_tokens - 1}."
            )
        return index

    def decode_bytes(self, ids, remove_special=False, unparse_special=True):
        """Bytes of a list of ids, exactly llama_detokenize.

        Parameters
        ----------
        ids : iterable of int
        remove_special : bool
            Drop the begin and end tokens that encoding adds.  After a dropped begin token the
            first piece keeps its leading space.
        unparse_special : bool
            Show control tokens by their text.
        """
        if not hasattr(ids, "__iter__") or getattr(ids, "ndim", 1) != 1:
            raise BadArgument(f"decode takes a list of token ids, not {ids!r}.")
        v, ids = self.vocabulary, [self._check(token) for token in ids]
        strip = int(v.add_space_prefix)
        if remove_special and v.add_bos and ids and ids[0] == v.roles["bos"]:
            ids, strip = ids[1:], 0
        if remove_special and v.add_eos and ids and ids[-1] == v.roles["eos"]:
            ids = ids[:-1]
        first = [self.piece(token, unparse_special, strip) for token in ids[:1]]
        raw = b"".join(first + [self.piece(token, unparse_special) for token in ids[1:]])
        return pieces.clean_spaces(raw) if v.clean_spaces else raw

    def decode(self, ids, special=False):
        """Text of a list of ids; bytes that are not UTF-8 show as U+FFFD.

        Parameters
        ----------
        ids : iterable of int
        special : bool
            Show control tokens by their text.
        """
        raw = self.decode_bytes(ids, remove_special=not special, unparse_special=special)
        return raw.decode("utf-8", "replace")

    def new_stream(self, special=False, continuing=True):
        """A TextStream for ids that arrive one at a time.

        With `continuing` the ids follow other text, so a leading space is part of the text; else
        they begin it, and the space that encoding put in front is dropped.
        """
        strip = self.vocabulary.add_space_prefix and not continuing
        return TextStream(lambda token: self.piece(token, special), strip_first=strip)

    def stream(self, ids, special=False, continuing=False):
        """Yield the text of `ids` bit by bit, never half a character; see `new_stream`."""
        stream = self.new_stream(special, continuing)
        for token in ids:
            if text := stream.push(token):
                yield text
        if text := stream.flush():
            yield text
