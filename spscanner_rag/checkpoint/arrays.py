"""The tensors of a safetensors file as numpy's arrays, without torch."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import deserialize

_DTYPES: Final = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}


def load_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the tensors of a file's content by name, bfloat16 as float32.

    Raises
    ------
    SafetensorError
        For a damaged file.
    ValueError
        For a dtype that no checkpoint has.

    Examples
    --------
    >>> import numpy as np
    >>> from safetensors.numpy import save
    >>> from spscanner_rag.checkpoint.arrays import load_arrays
    >>> load_arrays(save({"scale": np.ones(2, np.float32)}))["scale"].tolist()
    [1.0, 1.0]
    """
    arrays = {}
    for name, tensor in deserialize(content):  # type: ignore[no-untyped-call]
        array = _array(name, tensor["dtype"], tensor["data"])
        arrays[name] = array.reshape(tensor["shape"])
    return arrays


def _array(name: str, dtype: str, data: bytearray) -> NDArray[Any]:
    if dtype == "BF16":
        # the upper half of a float32
        halves = np.frombuffer(data, np.uint16).astype(np.uint32)
        return (halves << 16).view(np.float32)
    if dtype not in _DTYPES:
        raise ValueError(
            f"tensor {name} is {dtype}; expected bfloat16 or one of"
            f" {', '.join(_DTYPES)}"
        )
    return np.frombuffer(data, _DTYPES[dtype])
