"""What compiled code must know about a model: one table of int64, its places named here.

Compiled code is given a single address.  Behind it stand sizes and addresses, then one record for
the output matrix and one for each layer.  So one compiled function serves every model, and nothing
is passed in long lists of arguments.  A place of memory is where it is said in brackets: float32
unless another type is named; rows are padded to a multiple of eight, their stride is in the table.
"""

# fmt: off
(
    # sizes, and what Numerics ask for
    N_LAYER, N_EMBD, N_HEAD, N_HEAD_KV, HEAD_DIM, N_FF, N_VOCAB, N_ROT, NEOX,
    EPS, SCALE,         # bits of a float32
    EXP_KIND, HALF, WIDE, ITEMSIZE,  # attention: see ops.fast.attention
    # threads
    N_THREADS, PLACE, GIVE_WAY,      # ops.fast.barrier
    # this call: N tokens from POSITION on, of which N_WANTED need logits
    POSITION, N, WANTED, N_WANTED, N_CTX,
    COS, SIN, TEMPERATURE,           # of the first token [n, n_rot / 2], [n]; 0: none
    # what the threads share
    X, X2,                           # the residual stream [n, n_embd]
    QKV, QKV_STRIDE, K_AT, V_AT,     # [n, q | k | v], and bytes to k and v in a row
    HEADS,                           # attention's result [n, n_head · head_dim]
    GATE, UP, GATED,                 # [n, n_ff]: what SwiGLU takes, and what it gives
    EMBD_STRIDE, HEADS_STRIDE, FF_STRIDE, VOCAB_STRIDE,  # in numbers
    ACTIVATIONS,                     # prepared rows of all tokens
    LOGITS,                          # [n_wanted, n_vocab]
    SCORES, S_STRIDE, S_ROWS,        # one token's scores [n_head_kv, S_ROWS, S_STRIDE]
    # what a thread has to itself: WORK + number · WORK_BYTES, and places in it
    WORK, WORK_BYTES, NORMED_AT, OWN_AT, ATTENTION_AT, OWN_SCORES_AT,
    OUTPUT_NORM, OUTPUT, LAYERS,     # addresses of a norm, and of records
    KERNELS,                         # of attention, see ops.fast.attention_products
) = range(55)
SIZE = 64

# a matrix: addresses
(WEIGHTS, BIAS, QUANTIZE, MATVEC, MATMAT) = range(5)
MATRIX = 5 * 8  # bytes of its record

# a layer: addresses, then the records of its matrices (bytes from the layer's start)
(ATTN_NORM, FFN_NORM, K_CACHE, V_CACHE) = range(4)
ROLES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
Q, K, V, ATTN_OUTPUT, FFN_GATE, FFN_UP, FFN_DOWN = (32 + MATRIX * i for i in range(7))
LAYER = 32 + MATRIX * 7
# fmt: on
