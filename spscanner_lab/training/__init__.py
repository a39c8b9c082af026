"""Training: a run and its recipe.

`data` draws examples, `stages` trains with them, `kernels` has gradients.
"""

from collections.abc import Callable

Notify = Callable[
    [str], object
]  # called with messages about lengthy work before the first step
