"""What is trained: the built-in model's vocabulary, its shape, and the numbers it begins with."""

import numpy as np

from ..config import Config, Rope
from ..tokenizer.train import train as train_bpe
from . import storyworld

F32 = np.float32


def vocabulary(n_merges=400):
    """Metadata of the story world's own byte-level BPE: its words become one token each."""
    words = storyworld.lexicon()
    # each word alone and after a space, twice, so that every pair in it counts
    text = "\n".join(words) + "".join(f"\n {w}" for w in words)
    return train_bpe(text + "\n" + text, n_merges, pre="smollm")


def story_config(n_vocab, n_layer=4):
    """The built-in model's shape: 4 layers of width 128, 4 heads on 2 key/value heads."""
    return Config(
        architecture="llama",
        n_layer=n_layer,
        n_embd=128,
        n_head=4,
        n_head_kv=2,
        head_dim=32,
        n_ff=352,
        n_vocab=n_vocab,
        n_ctx_train=256,
        tied=True,
        rope=Rope(freq_base=10000.0, n_rot=32, n_ctx_orig=256),
        name="synapse_edu story model",
    )


def initial(config, seed):
    """Initial parameters: normal, scaled by a unit's inputs; the residual branches smaller."""
    rng = np.random.default_rng(seed)

    def normal(n_out, n_in, scale=1.0):
        return (rng.standard_normal((n_out, n_in)) * scale / np.sqrt(n_in)).astype(F32)

    d, f, q, kv = config.n_embd, config.n_ff, config.n_embd_head, config.n_embd_kv
    branch = 1 / np.sqrt(2 * config.n_layer)
    p = {"token_embd": normal(config.n_vocab, d, 0.5), "output_norm": np.ones(d, F32)}
    for i in range(config.n_layer):
        at = f"blk.{i}."
        p[at + "attn_norm"], p[at + "ffn_norm"] = np.ones(d, F32), np.ones(d, F32)  # (d,) each
        p[at + "attn_q"], p[at + "attn_k"] = normal(q, d), normal(kv, d)
        p[at + "attn_v"], p[at + "attn_output"] = normal(kv, d), normal(d, q, branch)
        p[at + "ffn_gate"], p[at + "ffn_up"] = normal(f, d), normal(f, d)
        p[at + "ffn_down"] = normal(d, f, branch)
    look_back(p, config, rng)
    return p


def look_back(p, config, rng):
    """Let the heads of layer 0 begin by looking 1, 2, 3, … tokens back.

    From a purely random start, heads that look back take millions of tokens to form, and nothing
    that copies can be learned before.  All embeddings get one common direction c.  W_k turns c
    into a vector u, and W_q of head h turns it into u rotated by h + 1 positions, so that q·k is
    largest where the key stands h + 1 tokens before the query.  Training is free to undo it.
    """
    c = rng.standard_normal(config.n_embd)  # (n_embd,)
    c = (c / np.linalg.norm(c)).astype(F32)
    p["token_embd"] += F32(0.5) * c
    hd, n_fast = config.head_dim, min(4, config.head_dim // 2)
    theta = config.rope.freq_base ** (-2.0 * np.arange(n_fast) / hd)  # (n_fast,): the fast pairs
    for head in range(config.n_head):
        angle = -(head + 1) * theta  # (n_fast,)
        q, k = np.zeros(hd, F32), np.zeros(hd, F32)  # (hd,) each
        q[0 : 2 * n_fast : 2], q[1 : 2 * n_fast : 2] = np.cos(angle), np.sin(angle)
        k[0 : 2 * n_fast : 2] = 1
        size = F32(1.5 / np.sqrt(n_fast))
        rows = slice(head * hd, (head + 1) * hd)
        p["blk.0.attn_q"][rows] += size * np.outer(q, c)
        if head % config.n_group == 0:
            group = head // config.n_group
            p["blk.0.attn_k"][group * hd : (group + 1) * hd] += size * np.outer(k, c)
