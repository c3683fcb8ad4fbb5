"""Published constants of the elementary functions, shared by the NumPy and the Numba twins.

The polynomials and tables of expf, powf, logf, sinf and cosf are those of Arm's "optimized
routines", which glibc adopted; the polynomial of `exp_poly` is the one in ggml's
``ggml_v_expf`` (vec.h).  A hexadecimal literal gives a double exactly, digit for digit.
"""

import numpy as np

_hex = float.fromhex

# exp: 2^(i/32) as the bits of a double, less i·2^47, so that adding k·2^47 gives 2^(k/32).
# fmt: off
EXP2_TABLE = np.array(
    [
        0x3FF0000000000000, 0x3FEFD9B0D3158574, 0x3FEFB5586CF9890F, 0x3FEF9301D0125B51,
        0x3FEF72B83C7D517B, 0x3FEF54873168B9AA, 0x3FEF387A6E756238, 0x3FEF1E9DF51FDEE1,
        0x3FEF06FE0A31B715, 0x3FEEF1A7373AA9CB, 0x3FEEDEA64C123422, 0x3FEECE086061892D,
        0x3FEEBFDAD5362A27, 0x3FEEB42B569D4F82, 0x3FEEAB07DD485429, 0x3FEEA47EB03A5585,
        0x3FEEA09E667F3BCD, 0x3FEE9F75E8EC5F74, 0x3FEEA11473EB0187, 0x3FEEA589994CCE13,
        0x3FEEACE5422AA0DB, 0x3FEEB737B0CDC5E5, 0x3FEEC49182A3F090, 0x3FEED503B23E255D,
        0x3FEEE89F995AD3AD, 0x3FEEFF76F2FB5E47, 0x3FEF199BDD85529C, 0x3FEF3720DCEF9069,
        0x3FEF5818DCFBA487, 0x3FEF7C97337B9B5F, 0x3FEFA4AFA2A490DA, 0x3FEFD0765B6E4540,
    ],
    np.uint64,
)  # (32,)
# fmt: on
INV_LN2 = _hex("0x1.71547652b82fep+0")
ROUND_TO_INT = _hex("0x1.8p+52")  # adding it leaves the nearest integer in the low bits
EXP2_C0 = _hex("0x1.c6af84b912394p-5")
EXP2_C1 = _hex("0x1.ebfce50fac4f3p-3")
EXP2_C2 = _hex("0x1.62e42ff0c52d6p-1")
EXP_OVERFLOW = _hex("0x1.62e42ep6")  # ln 2^128
EXP_UNDERFLOW = _hex("-0x1.9fe368p6")  # ln 2^-150

# log: the significand lies in one of 16 intervals; 1/c and log c of a point c near its centre.
LOG_OFFSET = 0x3F330000
LOG_INV_C = np.array(
    [
        _hex(x)
        for x in (
            "0x1.661ec79f8f3bep+0 0x1.571ed4aaf883dp+0 0x1.49539f0f010bp+0 0x1.3c995b0b80385p+0 "
            "0x1.30d190c8864a5p+0 0x1.25e227b0b8eap+0 0x1.1bb4a4a1a343fp+0 0x1.12358f08ae5bap+0 "
            "0x1.0953f419900a7p+0 0x1p+0 0x1.e608cfd9a47acp-1 0x1.ca4b31f026aap-1 "
            "0x1.b2036576afce6p-1 0x1.9c2d163a1aa2dp-1 0x1.886e6037841edp-1 0x1.767dcf5534862p-1"
        ).split()
    ]
)  # (16,)
LOG_C = np.array(
    [
        _hex(x)
        for x in (
            "-0x1.57bf7808caadep-2 -0x1.2bef0a7c06ddbp-2 -0x1.01eae7f513a67p-2 "
            "-0x1.b31d8a68224e9p-3 -0x1.6574f0ac07758p-3 -0x1.1aa2bc79c81p-3 "
            "-0x1.a4e76ce8c0e5ep-4 -0x1.1973c5a611cccp-4 -0x1.252f438e10c1ep-5 0x0p+0 "
            "0x1.aa5aa5df25984p-5 0x1.c5e53aa362eb4p-4 0x1.526e57720db08p-3 "
            "0x1.bc2860d22477p-3 0x1.1058bc8a07ee1p-2 0x1.4043057b6ee09p-2"
        ).split()
    ]
)  # (16,)
LOG2_C = np.array(
    [
        _hex(x)
        for x in (
            "-0x1.efec65b963019p-2 -0x1.b0b6832d4fca4p-2 -0x1.7418b0a1fb77bp-2 "
            "-0x1.39de91a6dcf7bp-2 -0x1.01d9bf3f2b631p-2 -0x1.97c1d1b3b7afp-3 "
            "-0x1.2f9e393af3c9fp-3 -0x1.960cbbf788d5cp-4 -0x1.a6f9db6475fcep-5 0x0p+0 "
            "0x1.338ca9f24f53dp-4 0x1.476a9543891bap-3 0x1.e840b4ac4e4d2p-3 "
            "0x1.40645f0c6651cp-2 0x1.88e9c2c1b9ff8p-2 0x1.ce0a44eb17bccp-2"
        ).split()
    ]
)  # (16,)
LN2 = _hex("0x1.62e42fefa39efp-1")
LOG_A0 = _hex("-0x1.00ea348b88334p-2")
LOG_A1 = _hex("0x1.5575b0be00b6ap-2")
LOG_A2 = _hex("-0x1.ffffef20a4123p-2")
LOG2_A0 = _hex("0x1.27616c9496e0bp-2")
LOG2_A1 = _hex("-0x1.71969a075c67ap-2")
LOG2_A2 = _hex("0x1.ec70a6ca7baddp-2")
LOG2_A3 = _hex("-0x1.7154748bef6c8p-1")
LOG2_A4 = _hex("0x1.71547652ab82bp0")

# sin, cos: π/2, 2/π scaled by 2^24, and 4/π to 192 bits in overlapping windows of 32.
HALF_PI_HI = _hex("0x1.921FB544p0")
HALF_PI_LO = _hex("0x1.0B46p-34")  # their sum is the double nearest to π/2
INV_HALF_PI_24 = _hex("0x1.45F306DC9C883p+23")
TWO_PI_64 = _hex("0x1.921FB54442D18p-62")  # 2π·2^-64
_FOUR_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041
INV_PIO4 = np.array(
    [(_FOUR_OVER_PI >> (184 - 8 * i)) & 0xFFFFFFFF for i in range(24)], np.uint64
)  # (24,)
COS_C1 = _hex("-0x1.ffffffd0c621cp-2")
COS_C2 = _hex("0x1.55553e1068f19p-5")
COS_C3 = _hex("-0x1.6c087e89a359dp-10")
COS_C4 = _hex("0x1.99343027bf8c3p-16")
SIN_S1 = _hex("-0x1.555545995a603p-3")
SIN_S2 = _hex("0x1.1107605230bc4p-7")
SIN_S3 = _hex("-0x1.994eb3774cf24p-13")

# ggml's float32 polynomial for exp.
POLY_ROUND = np.float32(_hex("0x1.8p23"))
POLY_INV_LN2 = np.float32(_hex("0x1.715476p+0"))
POLY_LN2_HI = np.float32(_hex("0x1.62e4p-1"))
POLY_LN2_LO = np.float32(_hex("0x1.7f7d1cp-20"))
POLY_C1 = np.float32(_hex("0x1.ffffecp-1"))
POLY_C2 = np.float32(_hex("0x1.fffdb6p-2"))
POLY_C3 = np.float32(_hex("0x1.555e66p-3"))
POLY_C4 = np.float32(_hex("0x1.573e2ep-5"))
POLY_C5 = np.float32(_hex("0x1.0e4020p-7"))

# ln 2 in two parts: the first has 21 trailing zero bits, so that k times it is exact.
LN2_HI = _hex("0x1.62e42feep-1")
LN2_LO = _hex("0x1.a39ef35793c76p-33")
