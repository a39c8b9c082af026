"""Whether torch is installed, and what to say where it is missing.

The distribution ``spscanner-rag-light`` does not bring it. Questions are then answered
in numpy; training, accelerators and published checkpoints need torch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec


def torch_is_installed() -> bool:
    """Return whether torch can be imported, without importing it."""
    return find_spec("torch") is not None


def needs_torch(got: str) -> ImportError:
    """Return the error for what only torch computes.

    Parameters
    ----------
    got : str
        What was asked for.

    Examples
    --------
    >>> from spscanner_rag.system.torch_absence import needs_torch
    >>> print(needs_torch("the device 'cuda'"))
    got the device 'cuda', which needs torch; expected what numpy computes: the ...
    """
    return ImportError(
        f"got {got}, which needs torch; expected what numpy computes: the bundled"
        " checkpoint or one of its kind, on the CPU in float32. To install torch: pip"
        ' install "torch>=2.6,<3"'
    )


@contextmanager
def torch_needed_for(got: str) -> Iterator[None]:
    """Raise `needs_torch` in place of a failed import of torch."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise needs_torch(got) from error
