"""A corpus of four texts, and an encoder."""

import pytest

from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.text_encoder import TextEncoder
from spscanner_rag.retrieval.held_texts import HeldTexts
from tests.retrieval.encoded import TEXTS, WEIGHTS, embed
from tests.retrieval.searching import joined


@pytest.fixture
def meaning() -> Meaning:
    """An encoder that knows only a few words."""
    return Meaning(TextEncoder(embed), WEIGHTS)


@pytest.fixture
def corpus() -> HeldTexts:
    """Four texts, one of them empty."""
    return HeldTexts().with_texts(joined(TEXTS))
