"""Kernels of mamba-ssm, and ours, that Triton compiles for a GPU."""
