"""Wrong answers to the exercises of chapter 05."""

WRONG = {
    "ex05.attention_macs": [
        lambda n, h, kv, d, p: 2 * n * kv * d * (p + 1),
        lambda n, h, kv, d, p: 2 * n * h * d * p,
        lambda n, h, kv, d, p: n * h * d * (p + 1),
        lambda n, h, kv, d, p: 2 * h * d * (p + 1),
        lambda n, h, kv, d, p: 2 * n * kv * d * p,
        lambda n, h, kv, d, p: 4 * n * h * d * (p + 1),
        lambda n, h, kv, d, p: 2 * n * h * d * (p + 2),
        lambda n, h, kv, d, p: 2 * n * h * (p + 1),
        lambda n, h, kv, d, p: 2 * n * d * (p + 1),
        lambda n, h, kv, d, p: 2 * n * h * d * (p + 1) ** 2,
        lambda n, h, kv, d, p: n * (h + kv) * d * (p + 1),
        lambda n, h, kv, d, p: 65_536 * (p + 1),
        lambda n, h, kv, d, p: n * h * d * (p + 1) * (p + 2),
    ],
    "ex05.roofline": [
        lambda m, b, w, r: m / r + b / w,
        lambda m, b, w, r: min(m / r, b / w),
        lambda m, b, w, r: b / w,
        lambda m, b, w, r: m / r,
        lambda m, b, w, r: max(m / w, b / r),
        lambda m, b, w, r: max(r / m if m else 0.0, w / b),
        lambda m, b, w, r: max(2 * m / r, b / w),
        lambda m, b, w, r: max(m / r, 8 * b / w),
        lambda m, b, w, r: (m / r + b / w) / 2,
        lambda m, b, w, r: max(m / r, b / w) * 1000,
        lambda m, b, w, r: m / b / (r / w),
        lambda m, b, w, r: 0.02,
    ],
    "ex05.batch": [22, 38, 11, 3, 37, 84, 95, 1, 21, 11.84, 169, 0],
    "ex05.faster": [4.0, 0.28125, 1.0, 3.2, 3.0, 16.0, 4.5, 2.0, 0.25, 12.6, 3.76, 7.1],
    "ex05.crossing": [
        21214, 21216, 75427, 169705, 5304, 10607, 42427, 8192, 131072, 1, 37714, 18857,
    ],
}  # fmt: skip
