"""Published configurations by name, so that a shape can be asked for without any file.

Each line is what the released model has: its ``config.json`` or ``params.json``.  Where a paper
and the files differ, the files count: Llama 3's paper speaks of a vocabulary of 128 000 tokens,
its files hold 128 256.  Of Qwen, the lines are the instruct models; some base models have
ε = 1e-5 or a context of 131 072.
"""

LLAMA_1 = dict(freq_base=10000.0, n_ctx=2048)
LLAMA_2 = dict(freq_base=10000.0, n_ctx=4096)
LLAMA_3 = dict(freq_base=500000.0, n_ctx=8192)
LLAMA_31 = dict(freq_base=500000.0, n_ctx=131072, rope_freqs=True)
SMOLLM_2 = dict(freq_base=100000.0, n_ctx=8192)
QWEN = dict(freq_base=1e6, n_ctx=32768, architecture="qwen2")
MISTRAL = dict(freq_base=1e6, n_ctx=32768)
MISTRAL_1 = dict(freq_base=10000.0, n_ctx=32768)
NEMO = dict(freq_base=1e6, n_ctx=131072)
MINISTRAL_3 = dict(
    freq_base=1e6,
    n_ctx=262144,
    architecture="mistral3",
    attn_temperature_scale=0.1,
    yarn=dict(factor=16.0, n_ctx_orig=16384, yarn_log_multiplier=1.0),
)

# name: (layers, width, heads, kv heads, head width, ffn width, vocabulary, ε, tied, the family's)
SIZES = {
    "llama-7b": (32, 4096, 32, 32, 128, 11008, 32000, 1e-6, False, LLAMA_1),
    "llama-13b": (40, 5120, 40, 40, 128, 13824, 32000, 1e-6, False, LLAMA_1),
    "llama-33b": (60, 6656, 52, 52, 128, 17920, 32000, 1e-6, False, LLAMA_1),
    "llama-65b": (80, 8192, 64, 64, 128, 22016, 32000, 1e-5, False, LLAMA_1),
    "llama-2-7b": (32, 4096, 32, 32, 128, 11008, 32000, 1e-5, False, LLAMA_2),
    "llama-2-13b": (40, 5120, 40, 40, 128, 13824, 32000, 1e-5, False, LLAMA_2),
    "llama-2-70b": (80, 8192, 64, 8, 128, 28672, 32000, 1e-5, False, LLAMA_2),
    "llama-3-8b": (32, 4096, 32, 8, 128, 14336, 128256, 1e-5, False, LLAMA_3),
    "llama-3-70b": (80, 8192, 64, 8, 128, 28672, 128256, 1e-5, False, LLAMA_3),
    "llama-3.1-8b": (32, 4096, 32, 8, 128, 14336, 128256, 1e-5, False, LLAMA_31),
    "llama-3.1-70b": (80, 8192, 64, 8, 128, 28672, 128256, 1e-5, False, LLAMA_31),
    "llama-3.1-405b": (126, 16384, 128, 8, 128, 53248, 128256, 1e-5, False, LLAMA_31),
    "llama-3.2-1b": (16, 2048, 32, 8, 64, 8192, 128256, 1e-5, True, LLAMA_31),
    "llama-3.2-3b": (28, 3072, 24, 8, 128, 8192, 128256, 1e-5, True, LLAMA_31),
    "tinyllama-1.1b": (22, 2048, 32, 4, 64, 5632, 32000, 1e-5, False, LLAMA_1),
    "smollm2-135m": (30, 576, 9, 3, 64, 1536, 49152, 1e-5, True, SMOLLM_2),
    "qwen2-0.5b": (24, 896, 14, 2, 64, 4864, 151936, 1e-6, True, QWEN),
    "qwen2-1.5b": (28, 1536, 12, 2, 128, 8960, 151936, 1e-6, True, QWEN),
    "qwen2-7b": (28, 3584, 28, 4, 128, 18944, 152064, 1e-6, False, QWEN),
    "qwen2-72b": (80, 8192, 64, 8, 128, 29568, 152064, 1e-6, False, QWEN),
    "qwen2.5-0.5b": (24, 896, 14, 2, 64, 4864, 151936, 1e-6, True, QWEN),
    "qwen2.5-1.5b": (28, 1536, 12, 2, 128, 8960, 151936, 1e-6, True, QWEN),
    "qwen2.5-3b": (36, 2048, 16, 2, 128, 11008, 151936, 1e-6, True, QWEN),
    "qwen2.5-7b": (28, 3584, 28, 4, 128, 18944, 152064, 1e-6, False, QWEN),
    "qwen2.5-14b": (48, 5120, 40, 8, 128, 13824, 152064, 1e-6, False, QWEN),
    "qwen2.5-32b": (64, 5120, 40, 8, 128, 27648, 152064, 1e-6, False, QWEN),
    "qwen2.5-72b": (80, 8192, 64, 8, 128, 29568, 152064, 1e-6, False, QWEN),
    "mistral-7b-v0.1": (32, 4096, 32, 8, 128, 14336, 32000, 1e-5, False, MISTRAL_1),
    "mistral-7b-v0.2": (32, 4096, 32, 8, 128, 14336, 32000, 1e-5, False, MISTRAL),
    "mistral-7b-v0.3": (32, 4096, 32, 8, 128, 14336, 32768, 1e-5, False, MISTRAL),
    "mistral-nemo": (40, 5120, 32, 8, 128, 14336, 131072, 1e-5, False, NEMO),
    "ministral-3-3b": (26, 3072, 32, 8, 128, 9216, 131072, 1e-5, True, MINISTRAL_3),
    "ministral-3-8b": (34, 4096, 32, 8, 128, 14336, 131072, 1e-5, False, MINISTRAL_3),
    "ministral-3-14b": (
        40, 5120, 32, 8, 128, 16384, 131072, 1e-5, False, MINISTRAL_3 | dict(freq_base=1e9),
    ),
}  # fmt: skip
