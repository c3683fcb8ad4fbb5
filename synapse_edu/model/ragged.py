"""The official generate loop: prompts of different lengths in one batch.

The batch advances together.  It begins by passing the tokens that all prompts have, as many as
the shortest one; from then on it adds one column at a time.  Where a prompt is longer, its own
next token is put there, not the sampled one.  Source: ``Llama.generate``, llama/generation.py.
"""

import numpy as np

from ..errors import BadArgument, ContextFull


def generate(
    transformer, prompts, max_gen_len, stop_ids=(), temperature=0.6, top_p=0.9, seed=None, pad_id=0
):
    """Continue several prompts.

    Parameters
    ----------
    transformer : batched.Transformer
    prompts : list of list of int
    max_gen_len : int
        Tokens to add to each at most.
    stop_ids : collection of int
        A row that draws one of these is finished.
    temperature, top_p : float
        Temperature 0 takes the largest logit.
    seed : int, optional

    Returns
    -------
    list of list of int
        The tokens added to each prompt, without the stop token.

    Raises
    ------
    BadArgument
        For an empty prompt, or a number outside its range.
    ContextFull
        If a prompt is longer than the model's `max_seq_len`.
    """
    args = transformer.args
    if max_gen_len < 0 or not temperature >= 0 or not 0 <= top_p <= 1:
        raise BadArgument(
            "max_gen_len and temperature must not be negative, and top_p lies between 0 and 1."
        )
    if not prompts or any(len(prompt) == 0 for prompt in prompts):
        raise BadArgument("Every prompt needs at least one token.")
    longest = max(map(len, prompts))
    if longest > args.max_seq_len:
        raise ContextFull(
            f"A prompt has {longest} tokens; max_seq_len is {args.max_seq_len}. Shorten it."
        )
    total = min(args.max_seq_len, max_gen_len + longest)
    tokens = np.full((len(prompts), total), pad_id, np.int64)  # (B, total)
    given = np.zeros(tokens.shape, bool)  # (B, total): part of a prompt
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)], given[row, : len(prompt)] = prompt, True
    random, finished = np.random.default_rng(seed), np.zeros(len(prompts), bool)  # (B,)
    previous = 0
    for current in range(min(map(len, prompts)), total):
        logits = transformer.forward(tokens[:, previous:current], previous)[:, -1]  # (B, vocab)
        drawn = np.array([pick(row, temperature, top_p, random) for row in logits])  # (B,)
        column = np.where(given[:, current], tokens[:, current], drawn)  # (B,)
        tokens[:, current] = column
        finished |= ~given[:, current] & np.isin(column, list(stop_ids))
        previous = current
        if finished.all():
            break
    return [
        _cut(tokens[row, len(prompt) : len(prompt) + max_gen_len].tolist(), stop_ids)
        for row, prompt in enumerate(prompts)
    ]


def pick(logits, temperature, top_p, random):
    """Draw one id: temperature first, then top-p, as the official code orders them."""
    if temperature <= 0:
        return int(np.argmax(logits))
    z = logits.astype(np.float64) / temperature  # (vocab,)
    shares = np.exp(z - z.max())
    shares /= shares.sum()
    order = np.argsort(-shares, kind="stable")  # (vocab,)
    sorted_shares = shares[order]
    before = np.cumsum(sorted_shares) - sorted_shares  # (vocab,): what the likelier ones hold
    kept = np.where(before > top_p, 0.0, sorted_shares)  # (vocab,)
    return int(order[random.choice(len(kept), p=kept / kept.sum())])


def _cut(added, stop_ids):
    ends = [added.index(i) for i in stop_ids if i in added]
    return added[: min(ends)] if ends else added
