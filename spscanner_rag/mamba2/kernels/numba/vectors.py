"""Vectors of float32 numbers as values in functions that numba compiles.

A loop over an array leaves it to the compiler whether a value stays in a register. A `Vector` always does, so
that the state of a recurrence need not be written to memory and read again at every token.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba.core import config, types
from numba.extending import intrinsic, models, register_model


def _lanes() -> int:
    """Numbers in a vector: two registers of a processor with AVX-512, one of AVX2, two of NEON."""
    if config.CPU_FEATURES is None:
        wide = binding.get_host_cpu_features().get("avx512f")
    else:  # NUMBA_CPU_FEATURES: numba is told to compile for another processor
        wide = "+avx512f" in config.CPU_FEATURES.split(",")
    return 32 if wide else 8


LANES = _lanes()
TO_INTEGER = 1.5 * 2**23
"""Added to a float32 number of less than 2**22, it leaves the nearest integer in the lowest bits."""

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_BITS, _HALVES = ir.VectorType(ir.IntType(32), LANES), ir.VectorType(ir.IntType(16), LANES)


class Vector(types.Type):
    """The numba type of a vector of `LANES` float32 numbers."""

    def __init__(self) -> None:
        super().__init__(name=f"Vector({LANES})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:  # noqa: ANN401 - numba's own
        super().__init__(manager, kind, _VECTOR)


vector = Vector()
_FLAGS = ("contract", "nsz")  # a product and a sum may become one instruction


@intrinsic
def load(typing, array, index):  # noqa: ANN001, ANN201
    """The vector that begins at ``index`` of a contiguous array of float32, or of bfloat16 given as uint16."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        pointer = _pointer(context, builder, signature.args[0], arguments)
        value = builder.load(pointer)
        value.align = _size(signature.args[0])
        if signature.args[0].dtype == types.float32:
            return value
        return builder.bitcast(builder.shl(builder.zext(value, _BITS), _each(16)), _VECTOR)

    return vector(array, types.intp), code


@intrinsic
def store(typing, array, index, value):  # noqa: ANN001, ANN201
    """Write a vector at ``index`` of a contiguous array of float32, or of bfloat16: rounded, ties to even."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        pointer, value = _pointer(context, builder, signature.args[0], arguments), arguments[2]
        if signature.args[0].dtype != types.float32:
            bits = builder.bitcast(value, _BITS)
            odd = builder.and_(builder.lshr(bits, _each(16)), _each(1))
            bits = builder.add(bits, builder.add(odd, _each(0x7FFF)))
            value = builder.trunc(builder.lshr(bits, _each(16)), _HALVES)
        builder.store(value, pointer).align = _size(signature.args[0])
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), code


@intrinsic
def repeated(typing, array, index):  # noqa: ANN001, ANN201
    """A vector of the number at ``index`` of a contiguous float32 array."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        number = builder.load(builder.gep(data, [arguments[1]]))
        return _spread(builder, number)

    return vector(array, types.intp), code


@intrinsic
def spread(typing, number):  # noqa: ANN001, ANN201
    """A vector of a float32 number."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        return _spread(builder, arguments[0])

    return vector(types.float32), code


@intrinsic
def product(typing, one, other):  # noqa: ANN001, ANN201
    """The product of two vectors, number by number."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        return builder.fmul(*arguments, flags=_FLAGS)

    return vector(vector, vector), code


@intrinsic
def total(typing, one, other):  # noqa: ANN001, ANN201
    """The sum of two vectors, number by number."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        return builder.fadd(*arguments, flags=_FLAGS)

    return vector(vector, vector), code


@intrinsic
def quotient(typing, one, other):  # noqa: ANN001, ANN201
    """One vector divided by another, number by number."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        return builder.fdiv(*arguments)

    return vector(vector, vector), code


@intrinsic
def between(typing, value, least, most):  # noqa: ANN001, ANN201
    """The numbers of a vector, none below those of ``least`` or above those of ``most``; NaN stays."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        value, least, most = arguments
        value = builder.select(builder.fcmp_ordered("<", value, least), least, value)
        return builder.select(builder.fcmp_ordered(">", value, most), most, value)

    return vector(vector, vector, vector), code


@intrinsic
def power_of_rounded(typing, rounded):  # noqa: ANN001, ANN201
    """2 to the integers that were rounded by adding `TO_INTEGER`, which leaves them in the lowest bits."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        exponent = builder.shl(builder.bitcast(arguments[0], _BITS), _each(23))
        return builder.bitcast(builder.add(exponent, _each(127 << 23)), _VECTOR)

    return vector(vector), code


def _spread(builder, number):  # noqa: ANN001, ANN202
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, zeros)


@intrinsic
def flushed(typing, one, least):  # noqa: ANN001, ANN201
    """A vector with 0 for each number that is nearer to 0 than a float32 number."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        one, least = arguments[0], _spread(builder, arguments[1])
        above = builder.fcmp_ordered(">", one, least)
        below = builder.fcmp_ordered("<", one, builder.fneg(least))
        return builder.select(builder.or_(above, below), one, ir.Constant(_VECTOR, None))

    return vector(vector, types.float32), code


@intrinsic
def total_of_lanes(typing, one):  # noqa: ANN001, ANN201
    """The sum of a vector's numbers, float32."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        value, count = arguments[0], LANES
        while count > 1:
            count //= 2
            undefined = ir.Constant(value.type, ir.Undefined)
            halves = [
                builder.shuffle_vector(
                    value, undefined, ir.Constant(ir.VectorType(ir.IntType(32), count), part)
                )
                for part in (list(range(count)), list(range(count, 2 * count)))
            ]
            value = builder.fadd(*halves, flags=_FLAGS)
        return builder.extract_element(value, ir.IntType(32)(0))

    return types.float32(vector), code


def _each(number):  # noqa: ANN001, ANN202
    return ir.Constant(_BITS, [number] * LANES)


def _size(array):  # noqa: ANN001, ANN202
    return 4 if array.dtype == types.float32 else 2


def _pointer(context, builder, array, arguments):  # noqa: ANN001, ANN202
    if array.dtype not in (types.float32, types.uint16) or array.layout != "C":
        raise TypeError(f"got {array}; expected a contiguous array of float32, or of bfloat16 as uint16")
    data = context.make_array(array)(context, builder, arguments[0]).data
    kind = _VECTOR if array.dtype == types.float32 else _HALVES
    return builder.bitcast(builder.gep(data, [arguments[1]]), kind.as_pointer())
