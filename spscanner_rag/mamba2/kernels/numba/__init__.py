"""Kernels that numba compiles for the CPU."""
