"""The names of what computes a model."""

BACKENDS = ("auto", "torch", "numba", "mamba-ssm", "numpy")


def check_backend(backend: object) -> None:
    """Raise ``ValueError`` for anything but the name of a backend."""
    if not isinstance(backend, str) or backend not in BACKENDS:
        raise ValueError(
            f"backend is {backend!r}; expected 'auto', 'torch', 'numba', 'mamba-ssm' or"
            " 'numpy'"
        )
