"""Change a value inside the pass, and see what becomes of the prediction.

The walk hands out every value before the next one is computed, and takes another in its place.
So one mechanism serves four experiments: breaking a formula on purpose, silencing a head, moving
a value from one run into another (activation patching), and asking at which layer and token a
fact travels (a causal trace; Meng et al., 2022).
"""

from dataclasses import dataclass

import numpy as np

from ..errors import BadArgument
from ..model.sampling import log_probabilities


def walk(model, ids, cache, change=None):
    """One token or a batch of tokens, every step through `change`.

    Parameters
    ----------
    model : Llama
    ids : int, or sequence of int
        For a sequence every value has a leading axis of tokens.
    cache : KVCache
    change : function, optional
        Given a Step, returns an array to put in its place, or None to leave it.

    Returns
    -------
    list of Step
        As computed, before any change.
    """
    steps, answer = [], None
    passing = model.walk(ids, cache)
    while True:
        try:
            step = passing.send(answer)
        except StopIteration:
            return steps
        steps.append(step)
        answer = None if change is None else change(step)


def run(model, ids, change=None):
    """The logits after `ids`, token by token, with `change` applied to every step of each.

    Returns
    -------
    ndarray of float32, shape (n_vocab,)
    """
    ids = model.check_ids(ids)
    cache = model.new_cache(len(ids))
    for token in ids:
        steps = walk(model, token, cache, change)
    return _result(steps, change)


def run_batch(model, ids, change=None):
    """The logits after each of `ids`, all in one batch, with `change` applied to every step.

    The values have a leading axis of tokens, so `change` must not depend on the position.

    Returns
    -------
    ndarray of float32, shape (n, n_vocab)
    """
    ids = model.check_ids(ids)
    return _result(walk(model, ids, model.new_cache(len(ids)), change), change)


def _result(steps, change):
    """The logits, the last step, as `change` leaves them."""
    replaced = None if change is None else change(steps[-1])
    return np.array(steps[-1].value if replaced is None else replaced)


def silence(heads):
    """A change that sets the output of some heads to zero.

    Parameters
    ----------
    heads : collection of (int, int)
        (layer, head).
    """
    heads = set(heads)

    def change(step):
        if step.name != "attention":
            return None
        chosen = [head for layer, head in heads if layer == step.layer]
        if not chosen:
            return None
        value = np.array(step.value)  # (n_head, head_dim), or (n, n_head, head_dim)
        value[..., chosen, :] = 0
        return value

    return change


def put(values):
    """A change that puts given arrays in place: a dict of (name, layer, position) → array."""

    def change(step):
        return values.get((step.name, step.layer, step.position))

    return change


@dataclass(frozen=True)
class CausalTrace:
    """Where a difference between two prompts travels.

    Attributes
    ----------
    tokens : list of bytes
        Of the prompt that was patched into.
    effect : ndarray of float64, shape (n_layer, T)
        0 where restoring that state changes nothing, 1 where it brings the whole prediction back.
    """

    tokens: list
    effect: np.ndarray


def causal_trace(model, clean, corrupt, right, wrong, step="layer_output"):
    """Restore one state of the clean run at a time inside the corrupt run.

    Parameters
    ----------
    model : Llama
    clean, corrupt : sequence of int
        Two prompts of the same length, which differ in the word that matters.
    right, wrong : int
        The next token after the clean prompt, and after the corrupt one.
    step : str
        Which value of each layer is carried over.

    Returns
    -------
    CausalTrace

    Raises
    ------
    BadArgument
        If the prompts differ in length, or make no difference.
    """
    if len(clean) != len(corrupt):
        raise BadArgument(
            f"The prompts have {len(clean)} and {len(corrupt)} tokens; a causal trace needs two "
            "of the same length."
        )
    kept = {}

    def keep(item):
        if item.name == step:
            kept[item.name, item.layer, item.position] = np.array(item.value)

    best = _margin(run(model, clean, keep), right, wrong)
    worst = _margin(run(model, corrupt), right, wrong)
    if best == worst:
        raise BadArgument(
            "Both prompts prefer the right token to the wrong one by the same margin, so there is "
            "nothing to bring back. Do the prompts differ, and are these two tokens not the same?"
        )
    effect = np.zeros((model.config.n_layer, len(clean)))  # (n_layer, T)
    for layer, position in np.ndindex(effect.shape):
        key = (step, layer, position)
        patched = _margin(run(model, corrupt, put({key: kept[key]})), right, wrong)
        effect[layer, position] = (patched - worst) / (best - worst)
    return CausalTrace([model.tokenizer.piece(i) for i in corrupt], effect)


def _margin(logits, right, wrong):
    return float(logits[right]) - float(logits[wrong])


def head_effects(model, prompts):
    """How much each head matters: what silencing it costs the right next token.

    Parameters
    ----------
    model : Llama
    prompts : list of (sequence of int, int)
        Prompt and the right next token.

    Returns
    -------
    ndarray of float64, shape (n_layer, n_head)
        Mean loss of log-probability in nats; larger means that the head matters more.
    """
    config = model.config
    whole = [log_probabilities(run_batch(model, ids)[-1])[right] for ids, right in prompts]
    effects = np.zeros((config.n_layer, config.n_head))  # (n_layer, n_head)
    for layer, head in np.ndindex(effects.shape):
        for (ids, right), before in zip(prompts, whole, strict=True):
            logits = run_batch(model, ids, silence([(layer, head)]))[-1]  # (n_vocab,)
            after = log_probabilities(logits)[right]
            effects[layer, head] += (before - after) / len(prompts)
    return effects


def looks_back(trace, layer, by=1):
    """How much each head looks at the token `by` places before: mean probability, (n_head,)."""
    p = trace.attention(layer)  # (n_head, T, T)
    return np.diagonal(p, -by, 1, 2).mean(-1)


def induces(trace, layer, period, ahead=1):
    """How much each head looks at what followed the same token earlier: (n_head,).

    The trace must be of a sequence that repeats every `period` tokens after the begin token.  A
    head that looks `ahead` places after each earlier occurrence of the present token knows what
    came next then: an induction head (Olsson et al., 2022).
    """
    p = trace.attention(layer)  # (n_head, T, T)
    total, rows = 0.0, range(period + 1 + ahead, p.shape[1])  # tokens seen at least once before
    for t in rows:
        earlier = [t - k + ahead for k in range(period, t, period)]
        total = total + p[:, t, earlier].sum(-1)
    return total / len(rows)
