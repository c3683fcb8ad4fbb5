"""Registers in vector code: their types, and `Value`, an expression over one.

The lowest part of `simd`, which says what this is for.
"""

from llvmlite import ir
from numba.core import cgutils

I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
FLOATS = (F16, F32, F64)


def vector(element, n):
    return ir.VectorType(element, n)


I8x16, I8x32, I16x16, I32x8 = vector(I8, 16), vector(I8, 32), vector(I16, 16), vector(I32, 8)
F16x8, F32x8, F64x8 = vector(F16, 8), vector(F32, 8), vector(F64, 8)
I16x8 = vector(I16, 8)


def constant_of(kind, x):
    """`x` as a constant; a number fills every lane of a vector."""
    if isinstance(kind, ir.VectorType):
        lanes = x if isinstance(x, (list, tuple)) else [x] * kind.count
        return ir.Constant(kind, [constant_of(kind.element, v) for v in lanes])
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
        other = other.ir if isinstance(other, Value) else constant_of(kind, other)
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

    def test(self, comparison, number):
        """Where this float compares so (``"<="``, ``">"`` …) with a number; NaN never does."""
        number = constant_of(self.type, number)
        return Value(self.code, self.code.builder.fcmp_ordered(comparison, self.ir, number))

    def as_(self, kind):
        """The same bits as another type."""
        return Value(self.code, self.code.builder.bitcast(self.ir, kind))

    def to(self, kind):
        """The same numbers as another type: integers by sign, floats rounded, widened or cut."""
        builder, a, b = self.code.builder, self.type, kind
        a, b = getattr(a, "element", a), getattr(b, "element", b)
        if a in FLOATS and b not in FLOATS:
            name = "fptosi"
        elif a in FLOATS:
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
        index = constant_of(vector(I32, len(lanes)), list(lanes))
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
