"""Vectors of float32 numbers as values in functions that numba compiles.

A loop over an array leaves it to the compiler whether a value stays in a register. A `Vector` always does, so
that the state of a recurrence need not be written to memory and read again at every token.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba.core import types
from numba.extending import intrinsic, models, register_model


def _lanes() -> int:
    """Numbers in a vector: two registers of a processor with AVX-512, one of AVX2, two of NEON."""
    return 32 if binding.get_host_cpu_features().get("avx512f") else 8


LANES = _lanes()
_VECTOR = ir.VectorType(ir.FloatType(), LANES)


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
    """The vector that begins at ``index`` of a contiguous float32 array."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        pointer = _pointer(context, builder, signature.args[0], arguments)
        value = builder.load(pointer)
        value.align = 4
        return value

    return vector(array, types.intp), code


@intrinsic
def store(typing, array, index, value):  # noqa: ANN001, ANN201
    """Write a vector at ``index`` of a contiguous float32 array."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        pointer = _pointer(context, builder, signature.args[0], arguments)
        builder.store(arguments[2], pointer).align = 4
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), code


@intrinsic
def repeated(typing, array, index):  # noqa: ANN001, ANN201
    """A vector of the number at ``index`` of a contiguous float32 array."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        number = builder.load(builder.gep(data, [arguments[1]]))
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(undefined, number, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return builder.shuffle_vector(first, undefined, zeros)

    return vector(array, types.intp), code


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


def _pointer(context, builder, array, arguments):  # noqa: ANN001, ANN202
    if array.dtype != types.float32 or array.layout != "C":
        raise TypeError(f"got {array}; expected a contiguous array of float32")
    data = context.make_array(array)(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(data, [arguments[1]]), _VECTOR.as_pointer())
