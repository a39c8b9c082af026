"""A small result whose words are its tokens."""

import pytest

from spscanner_rag import ScanResult
from tests.results.small_result import make


@pytest.fixture
def result() -> ScanResult:
    return make(count_tokens=lambda text: len(text.split()))
