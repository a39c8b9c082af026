"""The estimate of a text's tokens."""

from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.retrieval.token_estimate import estimated_tokens


@given(st.text(max_size=50))
def test_the_estimate_of_tokens(text: str) -> None:
    tokens = estimated_tokens(text)
    assert (tokens == 0) == (not text.strip())
    if tokens:
        n_ascii = sum(ord(character) < 128 for character in text)
        others = sum(
            len(c.encode("utf-8", "surrogatepass")) for c in text if ord(c) >= 128
        )
        assert tokens == (n_ascii + 3) // 4 + others
