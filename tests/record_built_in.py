"""Record what llama.cpp says on the built-in model: ``python tests/record_built_in.py``.

It needs the package llama-cpp-python, built from its source distribution for portable x86-64:
CMAKE_ARGS with GGML_NATIVE, GGML_SSE42, GGML_AVX, GGML_AVX2, GGML_FMA, GGML_F16C, GGML_BMI2,
GGML_LLAMAFILE and GGML_CPU_REPACK all OFF.  The tests compare with the record and need no
llama.cpp.
"""

import ctypes
import json
from pathlib import Path

import llama_cpp
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "data" / "built-in.gguf"
OUT = ROOT / "tests" / "golden" / "built_in.json"
PROMPTS = (
    "Mia has a red ball. Tom has two green cups. Mia is in the park. Tom is in the barn. "
    "Mia gives her ball to Tom. Now the ball belongs to",
    "Anna has",
    "Hugo is in the school. Nina is in the barn. Where is Nina?",
    "The morning is quiet.",
)
N_GREEDY = 40


def main():
    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(
        str(MODEL).encode(), llama_cpp.llama_model_default_params()
    )
    what = (
        "llama.cpp, portable x86-64 build, flash attention off, one token at a time, on "
        f"data/built-in.gguf; llama-cpp-python {llama_cpp.__version__}"
    )
    rows = [record(model, prompt) for prompt in PROMPTS]
    text = json.dumps({"what": what, "rows": rows}, separators=(",", ":"))
    OUT.write_text(text + "\n", encoding="utf-8")
    for row in rows:
        print(len(row["ids"]), "ids,", len(row["greedy"]), "greedy tokens:", repr(row["text"]))


def record(model, prompt):
    """Ids of the prompt, the bits of the logits after it, and the greedy continuation."""
    vocab = llama_cpp.llama_model_get_vocab(model)
    settings = llama_cpp.llama_context_default_params()
    settings.n_ctx, settings.n_threads, settings.n_threads_batch = 256, 1, 1
    settings.flash_attn_type = 0  # disabled
    context = llama_cpp.llama_init_from_model(model, settings)
    ids = tokenize(vocab, prompt.encode())
    for token in ids:
        logits = evaluate(context, vocab, token)
    first, written = logits, []
    while len(written) < N_GREEDY:
        written.append(int(logits.argmax()))
        if llama_cpp.llama_vocab_is_eog(vocab, written[-1]):
            break
        logits = evaluate(context, vocab, written[-1])
    llama_cpp.llama_free(context)
    text = b"".join(piece(vocab, token) for token in written).decode("utf-8")
    bits = first.view(np.uint32).tolist()
    return {"prompt": prompt, "ids": ids, "greedy": written, "text": text, "logits_bits": bits}


def tokenize(vocab, raw):
    room = (llama_cpp.llama_token * 256)()
    n = llama_cpp.llama_tokenize(vocab, raw, len(raw), room, 256, True, False)
    return list(room[:n])


def piece(vocab, token):
    room = ctypes.create_string_buffer(64)
    n = llama_cpp.llama_token_to_piece(vocab, token, room, 64, 0, False)
    return room.raw[:n]


def evaluate(context, vocab, token):
    one = (llama_cpp.llama_token * 1)(token)
    if llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(one, 1)):
        raise SystemExit("llama_decode failed")
    shape = (llama_cpp.llama_vocab_n_tokens(vocab),)
    return np.ctypeslib.as_array(llama_cpp.llama_get_logits(context), shape=shape).copy()


if __name__ == "__main__":
    main()
