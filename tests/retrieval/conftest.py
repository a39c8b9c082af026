"""A corpus of four texts, and an encoder."""

import pytest

from spscanner_rag.retrieval.held_texts import HeldTexts
from tests.retrieval.encoded import TEXTS, Encoded
from tests.retrieval.searching import joined


@pytest.fixture
def encoded() -> Encoded:
    """A scorer whose encoder knows only a few words."""
    return Encoded()


@pytest.fixture
def corpus() -> HeldTexts:
    """Four texts, one of them empty."""
    return HeldTexts().with_texts(joined(TEXTS))
