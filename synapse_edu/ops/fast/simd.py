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

I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
FLOATS = (F16, F32, F64)


def vector(element, n):
    return ir.VectorType(element, n)


I8x16, I8x32, I16x16, I32x8 = vector(I8, 16), vector(I8, 32), vector(I16, 16), vector(I32, 8)
F16x8, F32x8, F64x8 = vector(F16, 8), vector(F32, 8), vector(F64, 8)


def _constant(kind, x):
    """`x` as a constant; a number fills every lane of a vector."""
    if isinstance(kind, ir.VectorType):
        lanes = x if isinstance(x, (list, tuple)) else [x] * kind.count
        return ir.Constant(kind, [_constant(kind.element, v) for v in lanes])
    return ir.Constant(kind, float(x) if kind in FLOATS else int(x))


class Value:
    """A number or a register of numbers.  Operators work lane by lane; ``>>`` shifts in zeros."""

    __slots__ = ("code", "ir")

    def __init__(self, code, value):
        self.code, self.ir = code, value

    @property
    def type(self):
        return self.ir.type

    def _apply(self, whole, real, other):
        builder, kind = self.code.builder, self.type
        other = other.ir if isinstance(other, Value) else _constant(kind, other)
        is_float = getattr(kind, "element", kind) in FLOATS
        return Value(self.code, getattr(builder, real if is_float else whole)(self.ir, other))

    def __add__(self, other):
        return self._apply("add", "fadd", other)

    def __sub__(self, other):
        return self._apply("sub", "fsub", other)

    def __mul__(self, other):
        return self._apply("mul", "fmul", other)

    def __and__(self, other):
        return self._apply("and_", None, other)

    def __or__(self, other):
        return self._apply("or_", None, other)

    def __xor__(self, other):
        return self._apply("xor", None, other)

    def __lshift__(self, other):
        return self._apply("shl", None, other)

    def __rshift__(self, other):
        return self._apply("lshr", None, other)

    def shift_signed(self, n):
        return self._apply("ashr", None, n)

    def as_(self, kind):
        """The same bits as another type."""
        return Value(self.code, self.code.builder.bitcast(self.ir, kind))

    def to(self, kind):
        """The same numbers as another type: integers by sign, floats rounded or widened."""
        builder, a, b = self.code.builder, self.type, kind
        a, b = getattr(a, "element", a), getattr(b, "element", b)
        if a in FLOATS:
            name = "fpext" if FLOATS.index(a) < FLOATS.index(b) else "fptrunc"
        elif b in FLOATS:
            name = "sitofp"
        else:
            name = "sext" if a.width < b.width else "trunc"
        return Value(self.code, getattr(builder, name)(self.ir, kind))

    def unsigned(self, kind):
        """Integers widened with zeros."""
        return Value(self.code, self.code.builder.zext(self.ir, kind))

    def shuffle(self, lanes, other=None):
        """The chosen lanes of this register and, counted on from its last, of another."""
        other = ir.Constant(self.type, ir.Undefined) if other is None else other.ir
        index = _constant(vector(I32, len(lanes)), list(lanes))
        return Value(self.code, self.code.builder.shuffle_vector(self.ir, other, index))


class Variable:
    """A place for one value that changes inside a loop; LLVM keeps it in a register."""

    def __init__(self, code, value):
        self._code = code
        self._place = cgutils.alloca_once(code.builder, value.type)
        self.set(value)

    def get(self):
        return Value(self._code, self._code.builder.load(self._place))

    def set(self, value):
        self._code.builder.store(value.ir, self._place)

    def add(self, value):
        self.set(self.get() + value)


class Code:
    """What a kernel emits its instructions through."""

    def __init__(self, builder, avx2):
        self.builder, self.avx2 = builder, avx2

    def constant(self, kind, x):
        return Value(self, _constant(kind, x))

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
            ir.Constant(kind, ir.Undefined), value.ir, _constant(I32, 0)
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
        index.add_incoming(builder.add(index, _constant(I64, step)), builder.block)
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
        if self.avx2:
            return self.load(F16x8, address, offset).to(F32x8)
        h = self.load(vector(I16, 8), address, offset).unsigned(I32x8)
        # scaling by 2^112 moves the exponent to its place and makes subnormals normal
        size = ((h & 0x7FFF) << 13).as_(F32x8) * 2.0**112
        infinite = self.builder.icmp_unsigned(">=", (h & 0x7FFF).ir, _constant(I32x8, 0x7C00))
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
        rows, lanes = list(rows), range(8)
        for d in (1, 2, 4):  # exchange one bit of the row's number with the same bit of the lane's
            near = [lane if not lane & d else 8 + lane - d for lane in lanes]
            far = [lane + d if not lane & d else 8 + lane for lane in lanes]
            for i in lanes:
                if not i & d:
                    a, b = rows[i], rows[i + d]
                    rows[i], rows[i + d] = a.shuffle(near, b), a.shuffle(far, b)
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
