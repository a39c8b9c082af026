"""Training: the loop, a run and its recipe. `data` reads data, `pseudo` makes questions, `stages` trains."""

from collections.abc import Callable

Notify = Callable[[str], object]
"""Called with messages about lengthy work before the first step."""
