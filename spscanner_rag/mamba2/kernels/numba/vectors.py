"""Vectors of float32 numbers as values in functions that numba compiles.

A loop over an array leaves it to the compiler whether a value stays in a register. A
`Vector` always does, so that the state of a recurrence need not be written to memory
and read again at every token.
"""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201, ANN202  # noqa: RUF100

from __future__ import annotations

import numpy as np
from llvmlite import binding, ir
from numba import njit
from numba.core import config, types
from numba.extending import intrinsic, models, overload, register_model

# a product and a sum may become one instruction; 0 has no sign
CONTRACT = {
    "contract",
    "nsz",
}
SUMS = CONTRACT | {"reassoc"}  # sums in any order too, so that they can be vectors


def compiled(flags, *, inline="never", keep=False):
    """Compile a function when it is first called.

    ``keep`` the code on disk for later processes.
    """

    def compile_function(function):
        options = {
            "nogil": True,
            "error_model": "numpy",
            "fastmath": flags,
            "inline": inline,
        }
        try:
            return njit(function, cache=keep, **options)
        except RuntimeError:  # neither this folder nor the user's cache is writable
            return njit(function, **options)

    return compile_function


def as_float32(number):
    """A number of either kind as float32."""
    raise NotImplementedError("compiled functions alone call this")


def as_kind_of(array, number):
    """A float32 number as the kind of number that the array has."""
    raise NotImplementedError("compiled functions alone call this")


@overload(as_float32, inline="always")
def _as_float32(number):
    if number == types.float32:
        return lambda number: number
    return lambda number: np.uint32(np.uint32(number) << np.uint32(16)).view(np.float32)


@overload(as_kind_of, inline="always")
def _as_kind_of(array, number):
    if array.dtype == types.float32:
        return lambda array, number: number

    def rounded(array, number):  # to the nearest bfloat16, ties to even
        bits = np.float32(number).view(np.uint32)
        odd = (bits >> np.uint32(16)) & np.uint32(1)
        return np.uint16(np.uint32(bits + np.uint32(0x7FFF) + odd) >> np.uint32(16))

    return rounded


if config.CPU_FEATURES is None:
    _WIDE = binding.get_host_cpu_features().get("avx512f")
else:  # NUMBA_CPU_FEATURES makes numba compile for another processor
    _WIDE = "+avx512f" in config.CPU_FEATURES.split(",")

LANES = 32 if _WIDE else 8
"""Numbers in a vector: two registers of a processor with AVX-512, one of AVX2, two
of NEON."""

TO_INTEGER = np.float32(1.5 * 2**23)
"""Added to a float32 number of less than 2**22, it leaves the nearest integer in the
lowest bits."""

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_BITS = ir.VectorType(ir.IntType(32), LANES)
_HALVES = ir.VectorType(ir.IntType(16), LANES)


class Vector(types.Type):
    """The numba type of a vector of `LANES` float32 numbers."""


register_model(Vector)(
    lambda manager, kind: models.PrimitiveModel(manager, kind, _VECTOR)
)
vector = Vector(f"Vector({LANES})")


@intrinsic
def load(typing, array, index):
    """The vector at ``index`` of a contiguous array of float32.

    An array of bfloat16 is given as uint16.
    """

    def code(context, builder, signature, arguments):
        pointer, size = _pointer(context, builder, signature.args[0], arguments)
        value = builder.load(pointer)
        value.align = size
        if size == 4:
            return value
        return builder.bitcast(
            builder.shl(builder.zext(value, _BITS), _each(16)), _VECTOR
        )

    return vector(array, types.intp), code


@intrinsic
def store(typing, array, index, value):
    """Write a vector at ``index`` of a contiguous array of float32 or bfloat16.

    For bfloat16 it is rounded, ties to even.
    """

    def code(context, builder, signature, arguments):
        (pointer, size) = _pointer(context, builder, signature.args[0], arguments)
        value = arguments[2]
        if size == 2:
            bits = builder.bitcast(value, _BITS)
            odd = builder.and_(builder.lshr(bits, _each(16)), _each(1))
            bits = builder.add(bits, builder.add(odd, _each(0x7FFF)))
            value = builder.trunc(builder.lshr(bits, _each(16)), _HALVES)
        builder.store(value, pointer).align = size
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), code


@intrinsic
def repeated(typing, array, index):
    """A vector of the number at ``index`` of a contiguous float32 array."""

    def code(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(
            context, builder, arguments[0]
        ).data
        number = builder.load(builder.gep(data, [arguments[1]]))
        return _spread(builder, number)

    return vector(array, types.intp), code


@intrinsic
def spread(typing, number):
    """A vector of a float32 number."""

    def code(context, builder, signature, arguments):
        return _spread(builder, arguments[0])

    return vector(types.float32), code


def _arithmetic(instruction, flags=()):
    """An instruction on two vectors, number by number."""

    def apply(typing, left, right):
        def code(context, builder, signature, arguments):
            return getattr(builder, instruction)(*arguments, flags=flags)

        return vector(vector, vector), code

    return intrinsic(apply)


_FLAGS = sorted(CONTRACT)
product = _arithmetic("fmul", _FLAGS)
total = _arithmetic("fadd", _FLAGS)
quotient = _arithmetic("fdiv")


@intrinsic
def between(typing, value, lowest, highest):
    """The numbers of a vector, clipped to ``lowest`` and ``highest``.

    NaN stays.
    """

    def code(context, builder, signature, arguments):
        value, lowest, highest = arguments
        value = builder.select(builder.fcmp_ordered("<", value, lowest), lowest, value)
        return builder.select(builder.fcmp_ordered(">", value, highest), highest, value)

    return vector(vector, vector, vector), code


@intrinsic
def power_of_rounded(typing, rounded):
    """2 to the integers that were rounded by adding `TO_INTEGER`.

    They stand in the lowest bits.
    """

    def code(context, builder, signature, arguments):
        exponent = builder.shl(builder.bitcast(arguments[0], _BITS), _each(23))
        return builder.bitcast(builder.add(exponent, _each(127 << 23)), _VECTOR)

    return vector(vector), code


def _spread(builder, number):
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, zeros)


@intrinsic
def flushed(typing, numbers, least):
    """A vector whose numbers nearer to 0 than a float32 number are set to 0."""

    def code(context, builder, signature, arguments):
        numbers = arguments[0]
        least = _spread(builder, arguments[1])
        above = builder.fcmp_ordered(">", numbers, least)
        below = builder.fcmp_ordered("<", numbers, builder.fneg(least))
        return builder.select(
            builder.or_(above, below), numbers, ir.Constant(_VECTOR, None)
        )

    return vector(vector, types.float32), code


def _each(number):
    return ir.Constant(_BITS, [number] * LANES)


def _pointer(context, builder, array, arguments):
    if array.dtype not in (types.float32, types.uint16) or array.layout != "C":
        raise TypeError(
            f"got {array}; expected a contiguous array of float32, or of bfloat16 as"
            " uint16"
        )
    data = context.make_array(array)(context, builder, arguments[0]).data
    kind, size = (_VECTOR, 4) if array.dtype == types.float32 else (_HALVES, 2)
    return builder.bitcast(builder.gep(data, [arguments[1]]), kind.as_pointer()), size


_LOG2_E = np.float32(1.44269504)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_EXP_MOST = np.float32(87.0)
_E1 = np.float32(1.9875691500e-4)
_E2 = np.float32(1.3981999507e-3)
_E3 = np.float32(8.3334519073e-3)
_E4 = np.float32(4.1665795894e-2)
_E5 = np.float32(1.6666665459e-1)
_E6 = np.float32(5.0000001201e-1)
_HALF = np.float32(0.5)
_ONE = np.float32(1.0)
_MINUS_ONE = np.float32(-1.0)


@compiled(CONTRACT, inline="always")
def exponential(x):
    """exp(x) between -87 and 87, in operations that vectorize.

    Relative error below 3e-7 (Cephes, expf).
    """
    x = min(max(x, -_EXP_MOST), _EXP_MOST)
    power = np.floor(x * _LOG2_E + _HALF)
    x = x - power * _LN2_HIGH
    x = x - power * _LN2_LOW
    series = ((((_E1 * x + _E2) * x + _E3) * x + _E4) * x + _E5) * x + _E6
    series = series * x * x + x + _ONE
    return series * np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(
        np.float32
    )


@compiled(CONTRACT, inline="always")
def silu(x):
    """SiLU: x / (1 + exp(-x))."""
    return x / (_ONE + exponential(-x))


@compiled(CONTRACT, inline="always")
def silu_of(x):
    """`silu` of a vector, with exp(-x) as `exponential` computes it for a number."""
    power = between(
        product(x, spread(_MINUS_ONE)), spread(-_EXP_MOST), spread(_EXP_MOST)
    )
    rounded = total(product(power, spread(_LOG2_E)), spread(TO_INTEGER))
    integers = total(rounded, spread(-TO_INTEGER))
    power = total(power, product(integers, spread(-_LN2_HIGH)))
    power = total(power, product(integers, spread(-_LN2_LOW)))
    series = total(product(spread(_E1), power), spread(_E2))
    series = total(product(series, power), spread(_E3))
    series = total(product(series, power), spread(_E4))
    series = total(product(series, power), spread(_E5))
    series = total(product(series, power), spread(_E6))
    series = total(total(product(product(series, power), power), power), spread(_ONE))
    return quotient(x, total(product(series, power_of_rounded(rounded)), spread(_ONE)))
