"""Vector code for kernels, written in Python and emitted as LLVM instructions.

Numba's loops reach a tenth of a processor's integer throughput, because its vectoriser does not
find the instructions that multiply bytes and add neighbours.  Here a kernel is a Python function
that emits the code itself, through a `Code`, in ordinary expressions over `Value`: registers and
addresses.  ``kernel`` turns it into a function that compiled code can call.

Only three operations depend on the processor (`Code.dot_bytes`, `Code.dot_pairs`, `Code.halves`).
With AVX2 each is one instruction; without, the same numbers come from plain vector arithmetic,
which LLVM translates for any processor.
"""

from contextlib import contextmanager

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .jit import has_avx2
from .registers import (
    I1,
    I32,
    I64,
    F16x8,
    F32x8,
    I8x32,
    I16x8,
    I16x16,
    I32x8,
    Value,
    Variable,
    constant_of,
    vector,
)  # fmt: skip


class Code:
    """What a kernel emits its instructions through."""

    def __init__(self, builder, avx2):
        self.builder, self.avx2 = builder, avx2

    def constant(self, kind, x):
        return Value(self, constant_of(kind, x))

    def load(self, kind, address, offset=0, align=1):
        """`kind` from memory at address + offset."""
        loaded = self.builder.load(self._pointer(address, offset, kind))
        loaded.align = align
        return Value(self, loaded)

    def store(self, value, address, offset=0, align=1):
        self.builder.store(value.ir, self._pointer(address, offset, value.type)).align = align

    def _pointer(self, address, offset, kind):
        at = address + offset if offset else address
        return self.builder.inttoptr(at.ir, ir.PointerType(kind))

    def fill(self, value, n):
        """A register of `n` lanes that all hold `value`."""
        kind = vector(value.type, n)
        one = self.builder.insert_element(
            ir.Constant(kind, ir.Undefined), value.ir, constant_of(I32, 0)
        )
        return Value(self, one).shuffle([0] * n)

    def load_fill(self, kind, address, offset=0):
        """One element of memory in every lane; `kind` is the register's type."""
        return self.fill(self.load(kind.element, address, offset), kind.count)

    def load_four(self, address, offset=0):
        """Four bytes of memory in each of eight lanes: int8 × 32."""
        return self.load_fill(I32x8, address, offset).as_(I8x32)

    def load_pair(self, address, offset=0):
        """Two int16 of memory in each of eight lanes: int16 × 16."""
        return self.load_fill(I32x8, address, offset).as_(I16x16)

    def minimum(self, a, b):
        """The smaller of two integers."""
        less = self.builder.icmp_signed("<", a.ir, b.ir)
        return Value(self, self.builder.select(less, a.ir, b.ir))

    def choose(self, test, a, b):
        """Lane by lane `a` where `test` holds, else `b`; see `Value.test`."""
        return Value(self, self.builder.select(test.ir, a.ir, b.ir))

    def variable(self, value):
        return Variable(self, value)

    @contextmanager
    def loop(self, start, stop, step=1):
        """Code that runs for start, start + step, … below stop (all int64)."""
        builder = self.builder
        start, stop = (x if isinstance(x, Value) else self.constant(I64, x) for x in (start, stop))
        before = builder.block
        head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(I64)
        index.add_incoming(start.ir, before)
        builder.cbranch(builder.icmp_signed("<", index, stop.ir), body, end)
        builder.position_at_end(body)
        yield Value(self, index)
        index.add_incoming(builder.add(index, constant_of(I64, step)), builder.block)
        builder.branch(head)
        builder.position_at_end(end)

    def call(self, name, kind, *args):
        """An LLVM intrinsic."""
        function_type = ir.FunctionType(kind, [a.type for a in args])
        function = cgutils.get_or_insert_function(self.builder.module, function_type, name)
        return Value(self, self.builder.call(function, [a.ir for a in args]))

    def dot_bytes(self, u, s):
        """uint8 × 32 times int8 × 32, neighbours added: int16 × 16.  Sums must fit into int16."""
        if self.avx2:
            return self.call("llvm.x86.avx2.pmadd.ub.sw", I16x16, u, s)
        u, s = u.as_(I16x16), s.as_(I16x16)
        even = (u & 255) * (s << 8).shift_signed(8)
        return even + (u >> 8) * s.shift_signed(8)

    def dot_pairs(self, a, b):
        """int16 × 16 times int16 × 16, neighbours added: int32 × 8."""
        if self.avx2:
            return self.call("llvm.x86.avx2.pmadd.wd", I32x8, a, b)
        wide = vector(I32, 16)
        products = a.to(wide) * b.to(wide)
        return products.shuffle(range(0, 16, 2)) + products.shuffle(range(1, 16, 2))

    def add_pairs(self, a):
        """Neighbours of int16 × 16 added: int32 × 8."""
        return self.dot_pairs(a, self.constant(I16x16, 1))

    def byte_pairs(self, words, first):
        """Bytes `first` and first + 1 of each int32 lane, zero-extended: int16 × 16."""
        if self.avx2:  # one byte shuffle
            lanes = [
                x for lane in range(8) for x in (4 * lane + first, 32, 4 * lane + first + 1, 32)
            ]
            return words.as_(I8x32).shuffle(lanes, self.constant(I8x32, 0)).as_(I16x16)
        low = words >> 8 * first if first else words
        return ((low & 255) | ((low & 0xFF00) << 8)).as_(I16x16)

    def halves(self, address, offset=0):
        """Eight float16 of memory as float32 × 8."""
        return self.widen_halves(self.load(I16x8, address, offset))

    def widen_halves(self, bits):
        """Eight float16, given as int16 × 8, as float32 × 8."""
        if self.avx2:
            return bits.as_(F16x8).to(F32x8)
        h = bits.unsigned(I32x8)
        # scaling by 2^112 moves the exponent to its place and makes subnormals normal
        size = ((h & 0x7FFF) << 13).as_(F32x8) * 2.0**112
        infinite = self.builder.icmp_unsigned(">=", (h & 0x7FFF).ir, constant_of(I32x8, 0x7C00))
        top = self.builder.sext(infinite, I32x8)
        return (size.as_(I32x8) | (Value(self, top) & 0x7F800000) | ((h & 0x8000) << 16)).as_(F32x8)

    def dot_signed(self, a, s):
        """int8 × 32 times int8 × 32, neighbours added: int16 × 16.  -128 must not occur in `s`."""
        if self.avx2:
            size = self.call("llvm.abs.v32i8", I8x32, a, self.constant(I1, 0))
            return self.dot_bytes(size, self.call("llvm.x86.avx2.psign.b", I8x32, s, a))
        a, s = a.as_(I16x16), s.as_(I16x16)
        even = (a << 8).shift_signed(8) * (s << 8).shift_signed(8)
        return even + a.shift_signed(8) * s.shift_signed(8)

    def transpose(self, rows):
        """Eight registers of eight lanes, rows and lanes exchanged."""
        if rows[0].type == I16x8:
            return _unpack(rows)
        rows, lanes = list(rows), range(8)
        for d in (1, 2, 4):  # exchange one bit of the row's number with the same bit of the lane's
            near = [lane if not lane & d else 8 + lane - d for lane in lanes]
            far = [lane + d if not lane & d else 8 + lane for lane in lanes]
            for i in lanes:
                if not i & d:
                    a, b = rows[i], rows[i + d]
                    rows[i], rows[i + d] = a.shuffle(near, b), a.shuffle(far, b)
        return rows


def _unpack(rows):
    """`Code.transpose` of registers of 128 bits: ever larger pieces of two are interleaved."""
    for size in (1, 2, 4):
        starts = [start + i for i in range(0, 8, size) for start in (0, 8)]
        lanes = [lane for start in starts for lane in range(start, start + size)]
        rows = [
            rows[first + i].shuffle(half, rows[first + size + i])
            for first in range(0, 8, 2 * size)
            for i in range(size)
            for half in (lanes[:8], lanes[8:])
        ]
    return rows


def kernel(emit):
    """A function of nine int64, for compiled code to call, whose body `emit` writes.

    Parameters
    ----------
    emit : function
        ``emit(code, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch)``: a `Code`, and
        the arguments of a ``matmat`` as `Value`.
    """
    avx2 = has_avx2()

    def codegen(context, builder, signature, args):
        code = Code(builder, avx2)
        emit(code, *(Value(code, a) for a in args))
        return context.get_dummy_value()

    @intrinsic
    def call(context, w, y, out, n_in, row0, row1, n_tokens, out_stride, scratch):
        return types.void(*[types.int64] * 9), codegen

    return call
