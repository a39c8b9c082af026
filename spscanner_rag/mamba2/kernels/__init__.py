"""The same operators, computed by PyTorch, numba and Triton."""
