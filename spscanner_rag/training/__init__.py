"""Training: the loop, a run and its recipe; `data`, `pseudo` and `stages` are its parts."""

from collections.abc import Callable

Notify = Callable[[str], object]
"""Called with messages about work that takes long before the first step."""
