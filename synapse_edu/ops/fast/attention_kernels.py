"""Attention's two products in vector code: queries with keys, probabilities with values.

llama.cpp's portable C adds each dot product in float64, left to right.  So a vector register never
holds parts of one sum.  Scores of many queries: four of them side by side; a key's elements are
widened once and then filled into all lanes one by one.  Scores of few queries: eight positions side
by side; keys are turned in registers, so that an element of eight of them fills one.  Values:
elements of the head side by side, each its own sum over the positions.

Three kinds of product:

* ``half``: float16 cache, queries and probabilities rounded to float16.  A product of two float16
  is exact in float32, so float64 arithmetic gives the bits of "round the product, then add".
* ``wide``: float32 cache, products kept exact in float64.
* ``rounded``: float32 cache, products rounded to float32 before they are added.

ggml: ``ggml_vec_dot_f16`` and ``ggml_vec_dot_f32`` (vec.cpp) without SIMD.
"""

from .registers import F32, F64, I32, F32x8, I16x8, Value, vector
from .simd import kernel

F32x4, F64x4 = vector(F32, 4), vector(F64, 4)
KINDS = ("half", "wide", "rounded")
LANES = 4  # queries in a register
MOST_BLOCKS = 3  # registers of queries that `scores` takes at once
POSITIONS = 4  # keys that meet them at once, so that all sums stay in registers
LOW, HIGH = [0, 1, 2, 3], [4, 5, 6, 7]


def _load_eight(code, kind, address, offset=0):
    """Eight elements of the cache as float32."""
    if kind == "half":
        return code.halves(address, offset)
    return code.load(F32x8, address, offset, align=4)


def _two_doubles(x):
    return x.shuffle(LOW).to(F64x4), x.shuffle(HIGH).to(F64x4)


def _multiply_add(code, a, b, c, exact):
    """c + a·b in float64; a and b are float64 if `exact`, else float32 with a rounded product."""
    if not exact:
        return c + (a * b).to(c.type)
    if code.avx2:  # the product is exact, so that fusing changes no bit
        return code.call("llvm.fma.v4f64", F64x4, a, b, c)
    return c + a * b


def scores(kind, n_block):
    """A kernel: ``(k, q, s, head_dim, p0, p1, stride, s_stride, scratch)``.

    Parameters of the kernel
    ------------------------
    k : address of the head's first key; keys lie `stride` bytes apart
    q : float64 (head_dim, 4·n_block), or float32 for ``rounded``: queries, transposed
    s : float32 (4·n_block, s_stride): row r takes the scores of query r; positions p0 ≤ p < p1
        are written, and up to seven after them
    scratch : room for eight keys as float64
    """
    exact, n_p = kind != "rounded", POSITIONS
    element, wide = (F64, F64x4) if exact else (F32, F32x4)
    size = 8 if exact else 4

    def emit(code, k, q, s, head_dim, p0, p1, stride, s_stride, scratch):
        last = p1 - 1
        with code.loop(p0, p1, n_p) as p:
            keys = []
            for u in range(n_p):
                row = k + code.minimum(p + u, last) * stride
                keys.append(scratch + head_dim * (8 * u) if exact else row)
                if exact:
                    with code.loop(0, head_dim, 8) as e:
                        at = e * (2 if kind == "half" else 4)
                        low, high = _two_doubles(_load_eight(code, kind, row + at))
                        code.store(low, keys[u] + e * 8, align=8)
                        code.store(high, keys[u] + e * 8, 32, align=8)
            zero = code.constant(F64x4, 0.0)
            sums = [[code.variable(zero) for _ in range(n_block)] for _ in range(n_p)]
            with code.loop(0, head_dim) as e:
                row = q + e * (size * LANES * n_block)
                queries = [
                    code.load(wide, row, size * LANES * b, align=size) for b in range(n_block)
                ]
                for u in range(n_p):
                    x = code.fill(code.load(element, keys[u] + e * size, align=size), LANES)
                    for b in range(n_block):
                        sums[u][b].set(_multiply_add(code, x, queries[b], sums[u][b].get(), exact))
            _store_scores(code, sums, s + p * 4, s_stride * 4)

    return kernel(emit)


def _store_scores(code, sums, s, row_bytes):
    """Lane r of block b goes to row 4b + r."""
    for u, blocks in enumerate(sums):
        for b, block in enumerate(blocks):
            x = block.get().to(F32x4)
            for r in range(LANES):
                lane = Value(code, code.builder.extract_element(x.ir, I32(r)))
                code.store(lane, s + row_bytes * (LANES * b + r), 4 * u, align=4)


def few_scores(kind, n_rows):
    """`scores` for one to four queries; the others of its four rows are left alone."""
    exact = kind != "rounded"
    element, size, lanes = (F64, 8, LANES) if exact else (F32, 4, 8)
    row_of_keys, item = (I16x8, 2) if kind == "half" else (F32x8, 4)

    def emit(code, k, q, s, head_dim, p0, p1, stride, s_stride, scratch):
        last, zero = p1 - 1, code.constant(F64x4, 0.0)
        with code.loop(p0, p1, 8) as p:
            rows = [k + code.minimum(p + u, last) * stride for u in range(8)]
            sums = [[code.variable(zero) for _ in range(2)] for _ in range(n_rows)]
            with code.loop(0, head_dim, 8) as e:
                keys = [code.load(row_of_keys, row + e * item, align=item) for row in rows]
                for j, x in enumerate(code.transpose(keys)):
                    x = code.widen_halves(x) if kind == "half" else x
                    parts = _two_doubles(x) if exact else ()
                    for r, total in enumerate(sums):
                        at = q + (e + j) * (size * LANES)
                        y = code.fill(code.load(element, at, size * r, align=size), lanes)
                        _add_products(code, total, x, parts, y)
            for r, total in enumerate(sums):
                for i, part in enumerate(total):
                    row = s + s_stride * (4 * r) + p * 4
                    code.store(part.get().to(F32x4), row, 16 * i, align=4)

    return kernel(emit)


def _add_products(code, totals, x, parts, y):
    """Add eight numbers times y to two registers of sums; `parts` are x in float64 if exact."""
    if parts:
        for total, part in zip(totals, parts, strict=True):
            total.set(_multiply_add(code, part, y, total.get(), True))
    else:
        for total, term in zip(totals, _two_doubles(x * y), strict=True):
            total.add(term)


def width(head_dim):
    """Elements of a head that `values` sums at once."""
    return 16 if head_dim % 16 == 0 else 8


def values(kind, n_rows, n_elements):
    """A kernel: ``(v, p, sums, head_dim, p0, p1, stride, p_stride, first)``.

    Adds the weighted values of the positions p0 ≤ p < p1 to some elements of each row's sums.

    Parameters of the kernel
    ------------------------
    v : address of the head's first value; values lie `stride` bytes apart
    p : float64 (n_rows, p_stride), or float32 for ``rounded``: probabilities from position p0 on
    sums : float64 (n_rows, head_dim)
    first : the first of the `n_elements` (8 or 16) that are summed
    """
    exact = kind != "rounded"
    element, size, lanes = (F64, 8, LANES) if exact else (F32, 4, 8)
    item = 2 if kind == "half" else 4
    at_once = 8 if n_rows == LANES else n_elements  # so that all sums stay in registers

    def emit(code, v, p, sums, head_dim, p0, p1, stride, p_stride, first):
        for start in range(0, n_elements, at_once):
            at, eights = v + (first + start) * item, range(at_once // 8)
            places = [
                sums + (head_dim * r + first + start + 8 * b) * 8
                for r in range(n_rows)
                for b in eights
            ]
            totals = [
                [code.variable(code.load(F64x4, place, 32 * i, align=8)) for i in range(2)]
                for place in places
            ]
            with code.loop(p0, p1) as position:
                row = at + position * stride
                x = [_load_eight(code, kind, row, 8 * item * b) for b in eights]
                parts = [_two_doubles(part) if exact else () for part in x]
                for r in range(n_rows):
                    weight = p + (p_stride * r + position - p0) * size
                    y = code.fill(code.load(element, weight, align=size), lanes)
                    for b in eights:
                        _add_products(code, totals[r * len(eights) + b], x[b], parts[b], y)
            for place, total in zip(places, totals, strict=True):
                for i in range(2):
                    code.store(total[i].get(), place, 32 * i, align=8)

    return kernel(emit)
