"""AdamW, its schedule, and the limit on the gradients' norm."""

import numpy as np

F32 = np.float32


def learning_rate(recipe, step):
    """Linear warm-up, then a cosine from the peak to the final rate."""
    if step < recipe.n_warmup:
        return recipe.learning_rate * (step + 1) / recipe.n_warmup
    done = (step - recipe.n_warmup) / max(1, recipe.n_steps - recipe.n_warmup)
    half = (recipe.learning_rate - recipe.final_rate) / 2
    return recipe.final_rate + half * (1 + np.cos(np.pi * min(1.0, done)))


def clip(grads, limit):
    """Scale all gradients together so that their norm is at most `limit`; returns the norm."""
    norm = float(np.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in grads.values())))
    if norm > limit:
        for g in grads.values():
            g *= F32(limit / norm)
    return norm


def adamw(p, grads, m, v, step, recipe):
    """One step of AdamW (Loshchilov & Hutter, 2019), in place; only matrices decay."""
    rate = learning_rate(recipe, step)
    b1, b2, t = recipe.beta1, recipe.beta2, step + 1
    size = F32(rate / (1 - b1**t))
    for name, g in grads.items():
        m[name] *= F32(b1)
        m[name] += F32(1 - b1) * g
        v[name] *= F32(b2)
        v[name] += F32(1 - b2) * g * g
        if p[name].ndim == 2:
            p[name] *= F32(1 - rate * recipe.weight_decay)
        p[name] -= size * m[name] / (np.sqrt(v[name] / F32(1 - b2**t)) + F32(1e-8))
