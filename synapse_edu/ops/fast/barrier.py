"""A barrier inside compiled code: threads wait for each other without leaving it.

A token has some two hundred places at which threads meet.  Spinning on an atomic counter takes a
tenth of a microsecond where everyone is running; after a while a waiting thread offers its
processor to others, because on a shared computer the one it waits for may not be running.
"""

import ctypes
import os

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .jit import cpu, inner

BYTES = 128  # a counter and a generation, each on a cache line of its own
SPINS = 200  # some ten microseconds


def yield_address():
    """Address of the system's function that offers the processor to another thread."""
    if os.name == "nt":
        return ctypes.cast(ctypes.windll.kernel32.SwitchToThread, ctypes.c_void_p).value
    return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value


def _pointer(builder, address):
    return builder.inttoptr(address, ir.IntType(64).as_pointer())


@intrinsic
def _add(context, address, n):
    """Add to the int64 at `address`; what was there before."""

    def codegen(context, builder, signature, args):
        return builder.atomic_rmw("add", _pointer(builder, args[0]), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _load(context, address):
    def codegen(context, builder, signature, args):
        return builder.load_atomic(_pointer(builder, args[0]), "seq_cst", 8)

    return types.int64(types.int64), codegen


@intrinsic
def _store(context, address, value):
    def codegen(context, builder, signature, args):
        builder.store_atomic(args[1], _pointer(builder, args[0]), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


_X86 = "sse2" in cpu()[1]


@intrinsic
def _pause(context):
    """Tell an x86 core that this is a waiting loop."""

    def codegen(context, builder, signature, args):
        if _X86:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(
                builder.module.globals.get("llvm.x86.sse2.pause")
                or ir.Function(builder.module, kind, "llvm.x86.sse2.pause"),
                [],
            )
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def _call(context, address):
    """Call a C function of no arguments."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(ir.IntType(32), []).as_pointer()
        builder.call(builder.inttoptr(args[0], kind), [])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@inner
def meet(place, n_threads, give_way):
    """Wait until all threads are here.

    Parameters
    ----------
    place : address of `BYTES` zero bytes, aligned to 64
    n_threads : int
    give_way : address from `yield_address`
    """
    if n_threads == 1:
        return
    generation = _load(place + 64)
    if _add(place, 1) == n_threads - 1:
        _store(place, 0)
        _add(place + 64, 1)
        return
    spins = 0
    while _load(place + 64) == generation:
        spins += 1
        if spins < SPINS:
            _pause()
        else:
            _call(give_way)
