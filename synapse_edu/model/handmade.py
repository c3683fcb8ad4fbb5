"""A transformer of 2 560 numbers whose answers are known, because it was built and not trained.

One layer, one head, width 16, a vocabulary of 16 tokens, a feed-forward layer of width 32 with
ReLU, no norms and no positions.  It continues t with (5t + 3) mod 16.

How it is built.  Write e_t for the vector that is 1 at place t and 0 elsewhere.

1. *Embedding*: token t becomes e_t.
2. *Attention*: W_q and W_k are 2·I, so a query meets a key of the same token with the score
   4/√16 = 1 and every other with 0.  W_v is I and W_o is I/2.  The output is half of a weighted
   average of earlier tokens; call its part at place j m_j ≥ 0, with Σ m_j = 1/2.  The stream is
   e_t + m.
3. *Which token is it?*  Column j of W_1 is +1 at place j and −1 elsewhere.  Unit j receives
   x_j − Σ_{i≠j} x_i.  For j = t that is 1 + m_t − (1/2 − m_t) ≥ 1/2.  For another j it is
   m_j − 1 − (1/2 − m_j) ≤ −1/2, and ReLU makes it 0.  So exactly one unit is on, whatever came
   before.  The second sixteen units are a copy of the first.
4. *What comes next?*  Unit t of the first sixteen adds 4·e_next, at least 2; unit t of the copy
   takes away 2·e_t, at least 1.
5. *Output*: W_out is I.  The next token's logit is at least 2, and no other exceeds
   1 + 1/2 − 1 = 1/2.

Examples
--------
>>> generate(0, 10)
[0, 3, 2, 13, 4, 7, 6, 1, 8, 11, 10]
"""

import numpy as np

from ..errors import BadArgument

V = D = 16
FFN = 32


def next_token(t):
    """The rule that the model was built to follow."""
    return (5 * t + 3) % V


def weights():
    """All 2 560 numbers, float64, by name; row vectors are multiplied from the left: x @ W."""
    one = np.eye(D)  # (16, 16)
    detect = 2 * one - np.ones((D, D))  # (16, 16): +1 on the diagonal, −1 elsewhere
    answer = np.zeros((FFN, D))  # (32, 16)
    for t in range(V):
        answer[t, next_token(t)] = 4
        answer[D + t, t] = -2
    return {
        "E": one,
        "Wq": 2 * one,
        "Wk": 2 * one,
        "Wv": one.copy(),
        "Wo": one / 2,
        "W1": np.hstack([detect, detect]),  # (16, 32)
        "W2": answer,
        "Wout": one.copy(),
    }


def step(w, token, keys, values):
    """One token through the layer; its key and value are appended to the two lists.

    Returns
    -------
    dict of str → ndarray
        Every intermediate value by name; ``logits`` is (16,).
    """
    _check(token)
    x = w["E"][token]  # (16,)
    q, k, v = x @ w["Wq"], x @ w["Wk"], x @ w["Wv"]  # (16,) each
    keys.append(k)
    values.append(v)
    scores = np.array(keys) @ q / np.sqrt(D)  # (p + 1,)
    e = np.exp(scores - scores.max())  # (p + 1,)
    a = e / e.sum()  # (p + 1,)
    x1 = x + (a @ np.array(values)) @ w["Wo"]  # (16,)
    hidden = np.maximum(x1 @ w["W1"], 0)  # (32,)
    x2 = x1 + hidden @ w["W2"]  # (16,)
    return {
        "x": x, "q": q, "k": k, "v": v, "scores": scores, "a": a, "x1": x1, "hidden": hidden,
        "x2": x2, "logits": x2 @ w["Wout"],
    }  # fmt: skip


def generate(token, n):
    """`token` and the `n` that follow it, greedily."""
    return _continue(token, n, weights(), lambda *state: step(*state)["logits"])


def _continue(token, n, w, logits):
    """The greedy loop: `logits(w, token, keys, values)` scores what comes after a token."""
    keys, values, out = [], [], [token]
    for _ in range(n):
        out.append(int(np.argmax(logits(w, out[-1], keys, values))))
    return out


# --- the same in whole numbers -----------------------------------------------------------------
ONE = 16  # what stands for 1.0 in the stream
SHIFTS = {"Wq": 0, "Wk": 0, "Wv": 0, "Wo": 1, "W1": 0, "W2": 0, "Wout": 0}
SCORE_SHIFT = 8  # brings 32 · 32 down to 4


def int8_weights():
    """The same weights as int8, by name; a product is shifted right by `SHIFTS` afterwards."""
    w = weights()
    whole = {name: (x * (1 << SHIFTS.get(name, 0))) for name, x in w.items()}
    whole["E"] = w["E"] * ONE
    for name, x in whole.items():
        if not np.array_equal(x, np.rint(x)) or np.abs(x).max() > 127:
            raise BadArgument(f"{name} does not fit int8 exactly.")
    return {name: x.astype(np.int8) for name, x in whole.items()}


def int8_step(w, token, keys, values):
    """`step` in exact integer arithmetic: sums in 32 bits, shifts for divisions, and powers of
    two in place of the exponential.  Returns the logits, int32 of shape (16,)."""
    _check(token)

    def product(x, name):
        return (x.astype(np.int32) @ w[name].astype(np.int32)) >> SHIFTS[name]

    x = w["E"][token].astype(np.int32)  # (16,)
    q = product(x, "Wq")  # (16,)
    keys.append(_int8(product(x, "Wk")))
    values.append(_int8(product(x, "Wv")))
    scores = (np.array(keys, np.int32) @ q) >> SCORE_SHIFT  # (p + 1,)
    shares = 256 >> np.minimum(scores.max() - scores, 8)  # (p + 1,): 2^(score − largest)
    mixed = (shares @ np.array(values, np.int32)) // shares.sum()  # (16,)
    x1 = _int8(x + product(mixed, "Wo")).astype(np.int32)  # (16,)
    hidden = _int8(np.maximum(product(x1, "W1"), 0)).astype(np.int32)  # (32,)
    x2 = _int8(x1 + product(hidden, "W2"))  # (16,)
    return product(x2, "Wout")


def int8_generate(token, n):
    """`generate` with the int8 weights."""
    return _continue(token, n, int8_weights(), int8_step)


def _int8(x):
    """Check that whole numbers fit eight bits, and store them so."""
    if np.abs(x).max() > 127:
        raise BadArgument("A value of the int8 model left the range −127 … 127.")
    return x.astype(np.int8)


def _check(token):
    if not isinstance(token, int | np.integer) or not 0 <= token < V:
        raise BadArgument(f"The hand-made model knows the tokens 0 to {V - 1}, not {token!r}.")
