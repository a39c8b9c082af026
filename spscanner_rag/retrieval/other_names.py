"""Names that other classes and frameworks give to our options."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Final

_NUMBER_OF_RESULTS: Final = frozenset(
    "k top_k top_n similarity_top_k n_results num_results limit max_results"
    " rerank_top_n".split()
)
_NUMBER_OF_EACH: Final = frozenset(
    "k_per_document top_n_per_document top_k_per_document top_k_per_text".split()
)
_FILTERS: Final = frozenset("filter filters where metadata_filters pre_filter".split())
_SAME_AS: Final = {
    "score_threshold": "threshold",
    "similarity_cutoff": "threshold",
    "similarity_threshold": "threshold",
    "min_score": "threshold",
    "cutoff": "threshold",
    "model_name": "model",
    "model_name_or_path": "model",
    "model_id": "model",
    "checkpoint": "model",
    "base_retriever": "retriever",
    "docs": "documents",
    "context": "context_sentences",
    "merge": "merge_adjacent",
    "token_counter": "count_tokens",
    "max_length": "max_tokens",
    "num_tokens": "max_tokens",
}


def other_name_hint(name: str, options: Collection[str], limits: Iterable[str]) -> str:
    """What to write in place of an unknown option.

    Parameters
    ----------
    name : str
        The unknown option.
    options : collection of str
        The options that there are.
    limits : iterable of str
        Those for the number of results, of all documents and of each.

    Examples
    --------
    >>> other_name_hint("top_n", ["k", "filter"], ("k", "k_per_document"))
    'expected k, as it is called here'
    >>> other_name_hint("tresh", ["k", "threshold"], ("k", "k_per_document"))
    'did you mean threshold?'
    """
    of_all, of_each = limits
    if name == "search_kwargs":
        inside = [of_all, *(sorted(_FILTERS & set(options))), "threshold"]
        return (
            f"expected its entries as options of their own, such as {of_all}=10:"
            f" {', '.join(inside)}"
        )
    ours = _SAME_AS.get(name, "")
    if name in _NUMBER_OF_RESULTS:
        ours = of_all
    elif name in _NUMBER_OF_EACH:
        ours = of_each
    elif name in _FILTERS:
        ours = next(iter(sorted(_FILTERS & set(options))), "")
    if ours in options:
        return f"expected {ours}, as it is called here"
    close = get_close_matches(name, options, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"expected one of {', '.join(sorted(options))}"
