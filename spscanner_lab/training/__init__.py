"""Training: a run and its recipe.

`data` draws examples, `stages` trains with them, `kernels` has gradients.
"""

from collections.abc import Callable

# called with messages about lengthy work before the first step
Notify = Callable[[str], object]
