"""Memory by address, in compiled code: plain arrays over what lies there.

Kernels are handed addresses, not arrays, so that one signature serves every kind of weight.
"""

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from .jit import inner

ALIGN = 64  # a cache line


def aligned_empty(n_bytes):
    """Uninitialised bytes, uint8 of shape (n_bytes,), whose first is aligned to 64."""
    room = np.empty(n_bytes + ALIGN, np.uint8)  # (n_bytes + 64,)
    start = -room.ctypes.data % ALIGN
    return room[start : start + n_bytes]


def _view(dtype):
    @intrinsic
    def pointer(context, address):
        def codegen(context, builder, signature, args):
            kind = context.get_value_type(signature.return_type)
            return builder.inttoptr(args[0], kind)

        return types.CPointer(dtype)(types.int64), codegen

    @inner
    def view(address, n):
        return carray(pointer(address), (n,))

    return view


# An array over n elements that lie at an address.
u8_at = _view(types.uint8)
i8_at = _view(types.int8)
i16_at = _view(types.int16)
u16_at = _view(types.uint16)
i32_at = _view(types.int32)
i64_at = _view(types.int64)
u32_at = _view(types.uint32)
f32_at = _view(types.float32)
f64_at = _view(types.float64)
