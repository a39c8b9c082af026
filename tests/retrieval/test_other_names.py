import pytest

from spscanner_rag.retrieval.other_names import other_name_hint

KNOWN = ["k", "k_per_document", "filter", "threshold", "model", "context_sentences"]
LIMITS = ("k", "k_per_document")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("top_n", "expected k, as it is called here"),
        ("similarity_top_k", "expected k, as it is called here"),
        ("top_n_per_document", "expected k_per_document, as it is called here"),
        ("filters", "expected filter, as it is called here"),
        ("score_threshold", "expected threshold, as it is called here"),
        ("model_name", "expected model, as it is called here"),
        ("context", "expected context_sentences, as it is called here"),
        ("threshhold", "did you mean threshold?"),
        ("colour", "expected one of context_sentences, filter"),
    ],
)
def test_our_name_is_told(name: str, hint: str) -> None:
    assert other_name_hint(name, KNOWN, LIMITS).startswith(hint)


def test_search_kwargs_are_options_of_their_own() -> None:
    hint = other_name_hint("search_kwargs", KNOWN, LIMITS)
    assert hint.endswith("such as k=10: k, filter, threshold")
