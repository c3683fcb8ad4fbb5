"""The official pass against implementations that others wrote, on torch's CPU.

Runs where the extra `peer` is installed: ``pytest -m peer tests/test_peer.py``.
"""

import numpy as np
import pytest

from synapse_edu.model import batched, ragged

pytestmark = pytest.mark.peer

ARGS = batched.ModelArgs(
    dim=64, n_layers=3, n_heads=8, n_kv_heads=2, vocab_size=101, multiple_of=32,
    rope_theta=500000.0, max_batch_size=4, max_seq_len=64,
)  # fmt: skip


def parameters(seed=0):
    rng = np.random.default_rng(seed)

    def normal(n_out, n_in):
        return (rng.standard_normal((n_out, n_in)) / np.sqrt(n_in)).astype(np.float32)

    d, kv = ARGS.dim, ARGS.kv_heads * ARGS.head_dim
    p = {"tok_embeddings.weight": normal(101, d), "output.weight": normal(101, d)}
    p["norm.weight"] = 1 + 0.1 * rng.standard_normal(d).astype(np.float32)
    for i in range(ARGS.n_layers):
        at = f"layers.{i}."
        for name, n_out in (("wq", d), ("wk", kv), ("wv", kv), ("wo", d)):
            p[f"{at}attention.{name}.weight"] = normal(n_out, d)
        p[at + "feed_forward.w1.weight"] = normal(ARGS.ffn_dim, d)
        p[at + "feed_forward.w3.weight"] = normal(ARGS.ffn_dim, d)
        p[at + "feed_forward.w2.weight"] = normal(d, ARGS.ffn_dim)
        for norm in ("attention_norm", "ffn_norm"):
            p[f"{at}{norm}.weight"] = 1 + 0.1 * rng.standard_normal(d).astype(np.float32)
    return p


def half_split(w, n_heads):
    """Rows from neighbouring pairs to half-split pairs, as the Hugging Face layout has them."""
    return w.reshape(n_heads, -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


@pytest.fixture(scope="module")
def peer():
    """transformers' LlamaForCausalLM with the same weights."""
    import torch  # chosen by the marker: a missing package is a failure, not a skip
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=101, hidden_size=ARGS.dim, intermediate_size=ARGS.ffn_dim,
        num_hidden_layers=ARGS.n_layers, num_attention_heads=ARGS.n_heads,
        num_key_value_heads=ARGS.kv_heads, rms_norm_eps=ARGS.norm_eps,
        max_position_embeddings=64, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": ARGS.rope_theta},
        rope_theta=ARGS.rope_theta, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    p = parameters()
    names = {
        "model.embed_tokens.weight": p["tok_embeddings.weight"],
        "model.norm.weight": p["norm.weight"],
        "lm_head.weight": p["output.weight"],
    }
    for i in range(ARGS.n_layers):
        ours, theirs = f"layers.{i}.", f"model.layers.{i}."
        q, k = (p[f"{ours}attention.{w}.weight"] for w in ("wq", "wk"))
        names[theirs + "self_attn.q_proj.weight"] = half_split(q, ARGS.n_heads)
        names[theirs + "self_attn.k_proj.weight"] = half_split(k, ARGS.kv_heads)
        for a, b in (
            ("attention.wv", "self_attn.v_proj"), ("attention.wo", "self_attn.o_proj"),
            ("feed_forward.w1", "mlp.gate_proj"), ("feed_forward.w3", "mlp.up_proj"),
            ("feed_forward.w2", "mlp.down_proj"), ("attention_norm", "input_layernorm"),
            ("ffn_norm", "post_attention_layernorm"),
        ):  # fmt: skip
            names[f"{theirs}{b}.weight"] = p[f"{ours}{a}.weight"]
    state = {k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in names.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and not [m for m in missing if "rotary" not in m]

    def logits(ids):
        with torch.no_grad():
            return model(torch.tensor([ids])).logits[0].numpy()

    return logits


IDS = [5, 99, 3, 42, 42, 17, 8, 60, 1, 2, 77, 31]


def close(a, b):
    return np.abs(a - b).max() < 2e-5 * np.abs(b).max()


@pytest.mark.parametrize("cuts", [[12], [1] * 12, [5, 7], [3, 1, 8]])
def test_logits(peer, cuts):
    t, parts, start = batched.Transformer(ARGS, parameters()), [], 0
    for n in cuts:
        parts.append(t.forward(np.array([IDS[start : start + n]]), start)[0])
        start += n
    assert close(np.concatenate(parts), peer(IDS))


def test_a_batch_of_rows(peer):
    rows = np.array([IDS, IDS[::-1], [7] * 12])
    got = batched.Transformer(ARGS, parameters()).forward(rows, 0)
    for row, mine in zip(rows, got, strict=True):
        assert close(mine, peer(row.tolist()))


def test_ragged_greedy_generation(peer):
    prompts = [IDS[:3], IDS[:7], IDS[4:9]]
    got = ragged.generate(batched.Transformer(ARGS, parameters()), prompts, 8, temperature=0)
    for prompt, added in zip(prompts, got, strict=True):
        ids = list(prompt)
        for _ in range(8):
            ids.append(int(np.argmax(peer(ids)[-1])))
        assert added == ids[len(prompt) :]
