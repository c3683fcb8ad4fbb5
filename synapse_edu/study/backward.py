"""The forward pass over a batch and its gradient, written by hand in float32.

`autograd` differentiates the same pass (`model/batched.py`) and is what the chapters read; this
module is what trains the built-in model, several times faster.  Each ``*_backward`` takes the
gradient of the loss with respect to its function's output, and returns those with respect to its
inputs.  Tests compare both with each other and with finite differences.

Parameters are a dict: ``token_embd`` (V, d), ``output_norm`` (d,), and for layer i
``blk.i.attn_norm`` (d,), ``blk.i.attn_q`` (n_head·hd, d), ``blk.i.attn_k`` and ``attn_v``
(n_head_kv·hd, d), ``blk.i.attn_output`` (d, n_head·hd), ``blk.i.ffn_norm`` (d,),
``blk.i.ffn_gate`` and ``ffn_up`` (f, d), ``blk.i.ffn_down`` (d, f).  The output is tied.
"""

import numpy as np

F32 = np.float32


def rope_tables(config, n_positions):
    """cos and sin of every position and pair, float32 (T, hd/2)."""
    half = config.head_dim // 2
    theta = config.rope.freq_base ** (-2.0 * np.arange(half) / config.head_dim)  # (hd/2,)
    angle = np.arange(n_positions)[:, None] * theta  # (T, hd/2)
    return np.cos(angle).astype(F32), np.sin(angle).astype(F32)


def document_mask(starts, n_positions):
    """What each position may look at: itself and what came before in its own document.

    Parameters
    ----------
    starts : ndarray of int, shape (B, T)
        For each position, where its document begins in the row.

    Returns
    -------
    ndarray of float32, shape (B, 1, 1, T, T)
        0 where allowed, −∞ elsewhere.
    """
    key = np.arange(n_positions)  # (T,)
    allowed = (key <= key[:, None]) & (key >= starts[:, :, None])  # (B, T, T)
    return np.where(allowed, F32(0), F32(-np.inf))[:, None, None]


def norm(x, g, eps):
    """RMSNorm of rows.  Returns the output and what its gradient needs."""
    r = F32(1) / np.sqrt(np.mean(x * x, -1, keepdims=True) + F32(eps))  # (N, 1)
    return x * r * g, (x, r, g)


def norm_backward(dy, saved):
    x, r, g = saved
    scaled = x * r  # (N, d)
    dg = (dy * scaled).sum(0)  # (d,)
    dh = dy * g  # (N, d)
    dx = r * (dh - scaled * np.mean(dh * scaled, -1, keepdims=True))  # (N, d)
    return dx, dg


def rotate(x, cos, sin):
    """RoPE on interleaved pairs: x (B, T, heads, hd)."""
    a, b = x[..., 0::2], x[..., 1::2]  # (B, T, heads, hd/2) each
    c, s = cos[:, None], sin[:, None]  # (T, 1, hd/2) each
    y = np.empty_like(x)  # (B, T, heads, hd)
    y[..., 0::2] = a * c - b * s
    y[..., 1::2] = a * s + b * c
    return y


def attention(q, k, v, mask):
    """q (B, Hk, g, T, hd) on k, v (B, Hk, 1, T, hd): output of q's shape, and what was saved."""
    scale = F32(1 / np.sqrt(q.shape[-1]))
    s = q @ k.swapaxes(-1, -2)  # (B, Hk, g, T, T)
    s *= scale
    s += mask
    s -= s.max(-1, keepdims=True)
    np.exp(s, out=s)
    s /= s.sum(-1, keepdims=True)
    return s @ v, (q, k, v, s, scale)


def attention_backward(dout, saved):
    q, k, v, p, scale = saved
    dv = (p.swapaxes(-1, -2) @ dout).sum(2, keepdims=True)  # (B, Hk, 1, T, hd)
    dp = dout @ v.swapaxes(-1, -2)  # (B, Hk, g, T, T)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))  # (B, Hk, g, T, T)
    ds *= scale
    dk = (ds.swapaxes(-1, -2) @ q).sum(2, keepdims=True)  # (B, Hk, 1, T, hd)
    return ds @ k, dk, dv


def swiglu(gate, up):
    """silu(gate) · up, and what its gradient needs."""
    sigmoid = F32(1) / (F32(1) + np.exp(-gate))  # (N, f)
    silu = gate * sigmoid  # (N, f)
    return silu * up, (gate, up, sigmoid, silu)


def swiglu_backward(dy, saved):
    gate, up, sigmoid, silu = saved
    dgate = dy * up * (sigmoid + silu * (F32(1) - sigmoid))  # (N, f)
    return dgate, dy * silu


def layer(p, i, x, config, tables, mask, shape):
    """One layer on rows x (B·T, d); returns the new rows and a tape for `layer_backward`."""
    n_batch, n_pos = shape
    heads, kv, hd = config.n_head, config.n_head_kv, config.head_dim
    at = f"blk.{i}."
    h, saved_norm = norm(x, p[at + "attn_norm"], config.rms_eps)
    q = rotate((h @ p[at + "attn_q"].T).reshape(n_batch, n_pos, heads, hd), *tables)
    k = rotate((h @ p[at + "attn_k"].T).reshape(n_batch, n_pos, kv, hd), *tables)
    v = (h @ p[at + "attn_v"].T).reshape(n_batch, n_pos, kv, hd)
    q5 = q.reshape(n_batch, n_pos, kv, heads // kv, hd).transpose(0, 2, 3, 1, 4)
    k5, v5 = (np.ascontiguousarray(z.transpose(0, 2, 1, 3))[:, :, None] for z in (k, v))
    out, saved_attention = attention(np.ascontiguousarray(q5), k5, v5, mask)
    o = out.transpose(0, 3, 1, 2, 4).reshape(n_batch * n_pos, heads * hd)  # (B·T, n_head·hd)
    middle = x + o @ p[at + "attn_output"].T  # (B·T, d)
    h2, saved_norm2 = norm(middle, p[at + "ffn_norm"], config.rms_eps)
    a, saved_ffn = swiglu(h2 @ p[at + "ffn_gate"].T, h2 @ p[at + "ffn_up"].T)
    tape = (h, saved_norm, saved_attention, o, h2, saved_norm2, a, saved_ffn)
    return middle + a @ p[at + "ffn_down"].T, tape


def layer_backward(p, i, dx, tape, config, tables, shape, grads):
    """Gradient through one layer; fills `grads`, returns the gradient of the layer's input."""
    n_batch, n_pos = shape
    heads, kv, hd = config.n_head, config.n_head_kv, config.head_dim
    h, saved_norm, saved_attention, o, h2, saved_norm2, a, saved_ffn = tape
    at = f"blk.{i}."
    grads[at + "ffn_down"] = dx.T @ a
    dgate, dup = swiglu_backward(dx @ p[at + "ffn_down"], saved_ffn)
    grads[at + "ffn_gate"], grads[at + "ffn_up"] = dgate.T @ h2, dup.T @ h2
    dh2 = dgate @ p[at + "ffn_gate"] + dup @ p[at + "ffn_up"]  # (B·T, d)
    dmiddle, grads[at + "ffn_norm"] = norm_backward(dh2, saved_norm2)
    dmiddle += dx
    grads[at + "attn_output"] = dmiddle.T @ o
    do = (dmiddle @ p[at + "attn_output"]).reshape(n_batch, n_pos, kv, heads // kv, hd)
    dq5, dk5, dv5 = attention_backward(
        np.ascontiguousarray(do.transpose(0, 2, 3, 1, 4)), saved_attention
    )
    back = (tables[0], -tables[1])  # a rotation is undone by the opposite angle
    dq = rotate(dq5.transpose(0, 3, 1, 2, 4).reshape(n_batch, n_pos, heads, hd), *back)
    dk = rotate(dk5[:, :, 0].transpose(0, 2, 1, 3), *back)
    dv = dv5[:, :, 0].transpose(0, 2, 1, 3)
    dq, dk, dv = (z.reshape(n_batch * n_pos, -1) for z in (dq, dk, dv))
    grads[at + "attn_q"], grads[at + "attn_k"] = dq.T @ h, dk.T @ h
    grads[at + "attn_v"] = dv.T @ h
    dh = dq @ p[at + "attn_q"] + dk @ p[at + "attn_k"] + dv @ p[at + "attn_v"]  # (B·T, d)
    dx_norm, grads[at + "attn_norm"] = norm_backward(dh, saved_norm)
    return dmiddle + dx_norm


def cross_entropy(logits, targets, weights):
    """Mean −log p of the targets, weighted; and its gradient with respect to the logits.

    Parameters
    ----------
    logits : ndarray of float32, shape (N, V); overwritten
    targets : ndarray of int, shape (N,)
    weights : ndarray of float32, shape (N,)
        0 leaves a position out.
    """
    rows = np.arange(len(targets))  # (N,)
    logits -= logits.max(-1, keepdims=True)
    right = logits[rows, targets]  # (N,)
    np.exp(logits, out=logits)
    total = logits.sum(-1, keepdims=True)  # (N, 1)
    share = weights / weights.sum()  # (N,)
    loss = float(((np.log(total[:, 0]) - right) * share).sum())
    logits /= total
    logits[rows, targets] -= 1
    logits *= share[:, None]
    return loss, logits


def loss_and_gradients(p, config, tokens, targets, weights, starts, gradients=True):
    """Loss of next-token prediction over packed documents, and its gradients.

    Parameters
    ----------
    p : dict of str → ndarray of float32
    config : Config
    tokens, targets : ndarray of int, shape (B, T)
    weights : ndarray of float32, shape (B, T)
    starts : ndarray of int, shape (B, T)
        Where the document of each position begins in its row.

    Returns
    -------
    loss : float
        In nats a token.
    grads : dict of str → ndarray of float32, or the argmax predictions (B, T)
        The predictions when `gradients` is false.
    """
    logits, tape = forward(p, config, tokens, starts)
    if not gradients:
        best = logits.argmax(-1).reshape(tokens.shape)  # (B, T)
        return cross_entropy(logits, targets.ravel(), weights.ravel())[0], best
    loss, dlogits = cross_entropy(logits, targets.ravel(), weights.ravel())
    return loss, backward(p, config, tokens, dlogits, tape)


def forward(p, config, tokens, starts):
    """Logits (B·T, V) after every token of packed documents, and the tape for `backward`."""
    shape = n_batch, n_pos = tokens.shape
    tables, mask = rope_tables(config, n_pos), document_mask(starts, n_pos)
    x = p["token_embd"][tokens.ravel()]  # (B·T, d)
    tapes = []
    for i in range(config.n_layer):
        x, tape = layer(p, i, x, config, tables, mask, shape)
        tapes.append(tape)
    h, saved = norm(x, p["output_norm"], config.rms_eps)
    return h @ p["token_embd"].T, (tables, tapes, h, saved)


def backward(p, config, tokens, dlogits, tape):
    """Gradients of any loss from its gradient with respect to the logits (B·T, V).

    Uses up the tape that `forward` gave.
    """
    tables, tapes, h, saved = tape
    grads = {"token_embd": dlogits.T @ h}
    dx, grads["output_norm"] = norm_backward(dlogits @ p["token_embd"], saved)
    for i in reversed(range(config.n_layer)):
        dx = layer_backward(p, i, dx, tapes.pop(), config, tables, tokens.shape, grads)
    np.add.at(grads["token_embd"], tokens.ravel(), dx)
    return grads
