"""A stand-in for a cross-reader."""

from collections.abc import Sequence

import numpy as np


class Knowing:
    """A cross-reader that knows that the sentence "yes" answers."""

    def logits(
        self, query: str, sentences: Sequence[str], scores: object
    ) -> np.ndarray:
        """A higher logit for a sentence that answers."""
        return np.array(
            [5.0 * (sentence == "yes") - 4 for sentence in sentences], np.float32
        )
