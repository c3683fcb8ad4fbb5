"""Calls of kernels through an address, from compiled code.  All arguments are int64.

There are two types of C function: one prepares the activations of one token among some, one
multiplies.  A single token is a batch of one.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

QUANTIZE = types.void(*[types.int64] * 5)
PRODUCT = types.void(*[types.int64] * 9)


def _call(n_args, signature, complete):
    """Signature and code of a call: an address, then `n_args` numbers; nothing is returned.

    ``complete(args, zero, one)`` gives all arguments of the C function.
    """
    word = ir.IntType(64)
    kind = ir.FunctionType(ir.VoidType(), [word] * len(signature.args)).as_pointer()

    def codegen(context, builder, _, args):
        function = builder.inttoptr(args[0], kind)
        builder.call(function, complete(list(args[1:]), word(0), word(1)))
        return context.get_dummy_value()

    return types.void(*[types.int64] * (n_args + 1)), codegen


@intrinsic
def call_quantize(context, address, x, y, n_in):
    """Prepare one activation row: float32 (n_in,) at `x` → the partner format at `y`."""
    return _call(3, QUANTIZE, lambda args, zero, one: [*args, zero, one])


@intrinsic
def call_quantize_batch(context, address, x, y, n_in, token, n_tokens):
    """The same for the row of `token` among `n_tokens`; `y` is the place of them all."""
    return _call(5, QUANTIZE, lambda args, zero, one: args)


@intrinsic
def call_matvec(context, address, w, y, out, n_in, row0, row1, scratch):
    """``out[row0:row1] = W[row0:row1] · y`` for one prepared row."""
    return _call(7, PRODUCT, lambda args, zero, one: [*args[:6], one, zero, args[6]])


@intrinsic
def call_matmat(context, address, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
    """``out[t·out_stride + r] = W[r] · y[t]`` for all tokens and the rows row0 ≤ r < row1."""
    return _call(9, PRODUCT, lambda args, zero, one: args)
