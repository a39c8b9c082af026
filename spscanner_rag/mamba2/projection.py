"""Linear layers over tokens, whose number differs from text to text."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_FEWEST_ROWS = 16
_SIZES_PER_DOUBLING = 16


class Projection(nn.Linear):
    """A linear layer, with few different numbers of rows in bfloat16 on a CPU.

    oneDNN compiles a product for every number of rows that it meets, in up to a millisecond, and keeps the last
    thousand, up to a megabyte each: a server would grow by a gigabyte.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., in_features) to (..., out_features)."""
        if inputs.device.type != "cpu" or inputs.dtype != torch.bfloat16:
            return super().forward(inputs)
        rows = inputs.reshape(-1, inputs.shape[-1])
        missing = filled(len(rows)) - len(rows)
        outputs = F.linear(F.pad(rows, (0, 0, 0, missing)) if missing else rows, self.weight, self.bias)
        return outputs[: len(rows)].view(*inputs.shape[:-1], self.out_features)


def filled(rows: int) -> int:
    """The next of the numbers that products are made for: at most a sixteenth more, above `_FEWEST_ROWS`."""
    step = max(_FEWEST_ROWS, (1 << max(0, rows - 1).bit_length()) // (2 * _SIZES_PER_DOUBLING))
    return -(-rows // step) * step
