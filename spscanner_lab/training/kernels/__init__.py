"""Gradients of the fused kernels, compiled by numba."""
