"""Llama: ids → logits → next id, for one model."""

import numpy as np

from ..arguments import is_whole
from ..errors import BadArgument, TokenizerProblem
from ..numerics import Numerics
from ..tokenizer.tokenizer import Tokenizer
from ..tokenizer.vocabulary import Vocabulary
from . import backends
from .cache import KVCache
from .generate import Generation
from .steps import plan
from .walk import forward

N_CTX_DEFAULT = 4096


class Llama:
    """One Llama-family model, ready to run.

    Parameters
    ----------
    config : Config
    weights : checkpoint.weights.Weights
    metadata : mapping, optional
        The file's metadata, from which the tokenizer is made when first asked for.
    numerics : str or Numerics
        Where values are rounded, and in which order they are summed.
    backend : {"reference", "fast"}, optional
    n_ctx : int, optional
        Positions of a new cache; by default the model's own context, at most 4096.
    n_threads : int, optional
    name : str

    Attributes
    ----------
    config, weights, metadata, numerics, backend, n_ctx, name
    tokenizer : Tokenizer
        Only this raises if the file's vocabulary is of an unknown kind.
    """

    def __init__(
        self,
        config,
        weights,
        metadata=None,
        numerics="llama.cpp",
        backend=None,
        n_ctx=None,
        n_threads=None,
        name="",
    ):
        self.config, self.weights, self.name = config, weights, name or config.name
        self.numerics = Numerics.named(numerics)
        self.backend = backends.make(backend, weights, config, self.numerics, n_threads)
        self.n_ctx = min(config.n_ctx_train, N_CTX_DEFAULT) if n_ctx is None else n_ctx
        if not is_whole(self.n_ctx) or self.n_ctx < 1:
            raise BadArgument(f"n_ctx must be a whole number of at least 1, not {n_ctx!r}.")
        self.metadata = {} if metadata is None else metadata
        self._tokenizer, self._asked = None, (backend, n_threads)

    def __repr__(self):
        return f"Llama({self.name!r}, numerics={self.numerics.name!r}, n_ctx={self.n_ctx})"

    def with_numerics(self, numerics):
        """The same model and weights under other Numerics."""
        return Llama(
            self.config,
            self.weights,
            metadata=self.metadata,
            numerics=numerics,
            backend=self._asked[0],
            n_ctx=self.n_ctx,
            n_threads=self._asked[1],
            name=self.name,
        )

    @property
    def tokenizer(self):
        if self._tokenizer is None:
            if not self.metadata:
                raise TokenizerProblem(
                    "This model was made without a vocabulary. Give it ids, not text."
                )
            self._tokenizer = Tokenizer(Vocabulary.from_metadata(self.metadata))
        return self._tokenizer

    def plan(self):
        """The steps that a token takes through this model, in order: list of (StepSpec, layer)."""
        layer = vars(self.weights.layers[0])
        have = {
            name for name, value in layer.items() if name.endswith("_bias") and value is not None
        }
        if self.weights.output_bias is not None:
            have.add("output_bias")
        return plan(self.config, have)

    def new_cache(self, n_ctx=None):
        """An empty KVCache of `n_ctx` positions; by default as many as the model was given."""
        n_ctx = self.n_ctx if n_ctx is None else n_ctx
        return KVCache(self.config, n_ctx, self.numerics.cache, self.weights.fingerprint)

    def _check_cache(self, cache):
        if not isinstance(cache, KVCache):
            kind = type(cache).__name__
            raise BadArgument(f"The cache must come from model.new_cache(); this is a {kind}.")
        cache.check(self.config, self.numerics.cache, self.weights.fingerprint)

    def prefill(self, ids, cache, logits="last"):
        """Put ids at the cache's next positions.

        Parameters
        ----------
        ids : sequence of int, shape (n,)
        cache : KVCache
        logits : {"last", "all"} or list of int
            Which rows of logits to return; negative ones count from the end.

        Returns
        -------
        ndarray of float32
            (n_vocab,) for ``"last"``, else (rows, n_vocab).

        Raises
        ------
        ContextFull
            Before anything is computed, if the ids do not fit.
        BadArgument
            If an id is not in the vocabulary, or there is none.
        """
        ids = self.check_ids(ids)
        rows = _rows(logits, len(ids))
        self._check_cache(cache)
        cache.require(len(ids))
        wanted = sorted(set(rows))
        out = self.backend.prefill(ids, cache, wanted)  # (len(wanted), n_vocab)
        if isinstance(logits, str) and logits == "last":
            return out[0]  # (n_vocab,)
        if wanted != rows:
            out = out[[wanted.index(r) for r in rows]]  # (rows, n_vocab)
        return out

    def decode(self, id, cache):
        """Put one id at the cache's next position; its logits, float32 (n_vocab,)."""
        (id,) = self.check_ids([id])
        self._check_cache(cache)
        cache.require(1)
        return self.backend.decode(id, cache)

    def walk(self, ids, cache):
        """Every step of one token, or of a batch of tokens, as it is computed.

        Always the reference backend.  A generator of `walk.Step`: ``send(array)`` replaces the
        step last yielded, and returns the next one.  The cache counts the tokens when the walk
        has come to its end; until then it can be given up.

        Parameters
        ----------
        ids : int, or sequence of int
            For a sequence every value has a leading axis of tokens.
        cache : KVCache
        """
        single = isinstance(ids, int | np.integer)
        checked = self.check_ids([ids] if single else ids)
        self._check_cache(cache)
        cache.require(len(checked))
        return forward(self.weights, self.config, self.numerics, checked, cache, single=single)

    def generate(self, prompt, max_tokens=None, sampler=None, cache=None, stop=True):
        """Continue a prompt, token by token.

        Parameters
        ----------
        prompt : str, bytes, or sequence of int
            Text is encoded with the special tokens its vocabulary asks for at the start; what
            looks like a special token inside it stays plain text.
        max_tokens : int, optional
            None goes on until an end token or the end of the context.
        sampler : Sampler, optional
            Greedy by default.
        cache : KVCache, optional
            Its longest common prefix with the prompt is kept and not computed again; at least
            the last id is.
        stop : bool or collection of int
            True stops at the vocabulary's end-of-generation tokens; ids stop at those.

        Returns
        -------
        Generation
            An iterator of `Token`; its `stop_reason` says why it ended.
        """
        return Generation(self, prompt, max_tokens, sampler, cache, stop)

    def check_ids(self, ids):
        """The ids as a list of int; BadArgument if there are none or one is out of range."""
        unordered = isinstance(ids, str | bytes | dict | set | frozenset)
        if unordered or not hasattr(ids, "__iter__") or getattr(ids, "ndim", 1) != 1:
            raise BadArgument(
                f"Expected a list of token ids, not {type(ids).__name__}; encode text with "
                "model.tokenizer.encode(text)."
            )
        ids = list(ids)
        if not ids:
            raise BadArgument("There are no ids to evaluate: the prompt is empty. Give at least 1.")
        for id in ids:
            if not is_whole(id):
                raise BadArgument(f"Token ids are whole numbers; {id!r} is {type(id).__name__}.")
            if not 0 <= id < self.config.n_vocab:
                raise BadArgument(
                    f"id {id} is outside the vocabulary: ids run from 0 to "
                    f"{self.config.n_vocab - 1}."
                )
        return [int(id) for id in ids]


def _rows(logits, n):
    """The rows asked for, as a list of int from 0 to n - 1."""
    if isinstance(logits, str):
        if logits not in ("last", "all"):
            raise BadArgument(f'logits must be "last", "all" or a list of rows, not {logits!r}.')
        return [n - 1] if logits == "last" else list(range(n))
    rows = []
    for r in np.atleast_1d(logits).tolist():
        if not is_whole(r) or not -n <= r < n:
            raise BadArgument(f"Row {r!r} does not exist: the batch has rows 0 to {n - 1}.")
        rows.append(r % n)
    return rows
