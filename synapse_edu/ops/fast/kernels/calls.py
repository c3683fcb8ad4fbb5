"""Calls of kernels through an address, from compiled code.  All arguments are int64."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _call(n_args):
    """Signature and code of a call: an address, then `n_args` numbers; nothing is returned."""
    word = ir.IntType(64)
    kind = ir.FunctionType(ir.VoidType(), [word] * n_args).as_pointer()

    def codegen(context, builder, signature, args):
        builder.call(builder.inttoptr(args[0], kind), args[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * (n_args + 1)), codegen


@intrinsic
def call_quantize(context, address, x, y, n_in):
    """Prepare one activation row: float32 (n_in,) at `x` → the partner format at `y`."""
    return _call(3)


@intrinsic
def call_quantize_batch(context, address, x, y, n_in, token, n_tokens):
    """The same for the row of `token` among `n_tokens`; `y` is the place of them all."""
    return _call(5)


@intrinsic
def call_matvec(context, address, w, y, out, n_in, row0, row1, scratch):
    """``out[row0:row1] = W[row0:row1] · y`` for one prepared row."""
    return _call(7)


@intrinsic
def call_matmat(context, address, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
    """``out[t·out_stride + r] = W[r] · y[t]`` for all tokens and the rows row0 ≤ r < row1."""
    return _call(9)


# The same as types of the functions called.
QUANTIZE = types.void(*[types.int64] * 3)
QUANTIZE_BATCH = types.void(*[types.int64] * 5)
MATVEC = types.void(*[types.int64] * 7)
MATMAT = types.void(*[types.int64] * 9)
