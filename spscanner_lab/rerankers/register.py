"""These retrievers as kinds that a name can mean, such as ``listwise:LLM``."""

from typing import TYPE_CHECKING, Literal

from spscanner_rag.baselines.register import LoadOptions, ModelName, RetrieverKind

if TYPE_CHECKING:
    from spscanner_rag.scorers import Scorer


def _reranker(
    model: str, order: Literal["listwise", "pairwise", "setwise"], options: LoadOptions
) -> "Scorer":
    from spscanner_lab.rerankers.language_model_reranker import LanguageModelReranker
    from spscanner_lab.synthesis.scripted import model_of

    return LanguageModelReranker(model_of(model), order, options.unit)


def _load_listwise(model: str, options: LoadOptions) -> "Scorer":
    return _reranker(model, "listwise", options)


def _load_pairwise(model: str, options: LoadOptions) -> "Scorer":
    return _reranker(model, "pairwise", options)


def _load_setwise(model: str, options: LoadOptions) -> "Scorer":
    return _reranker(model, "setwise", options)


def _load_generative(model: str, options: LoadOptions) -> "Scorer":
    from spscanner_lab.rerankers.generative_selection import GenerativeSelection
    from spscanner_lab.synthesis.scripted import model_of

    return GenerativeSelection(model_of(model), options.unit)


def _load_rprs(model: str, options: LoadOptions) -> "Scorer":
    from spscanner_lab.rerankers.rprs import MINILM, RPRS

    return RPRS(
        model or MINILM,
        options.unit,
        device=options.torch_device,
        trust_remote_code=options.trust_remote_code,
        keep_texts=max(16, options.keep_texts),
    )


LISTWISE = RetrieverKind(
    "listwise",
    "listwise:LLM, a language model that ranks windows of BM25's best 100 units",
    _load_listwise,
    model=ModelName.REQUIRED,
)
PAIRWISE = RetrieverKind(
    "pairwise",
    "pairwise:LLM, a language model that compares pairs of BM25's best 100 units",
    _load_pairwise,
    model=ModelName.REQUIRED,
)
SETWISE = RetrieverKind(
    "setwise",
    "setwise:LLM, a language model that picks from sets of BM25's best 100 units",
    _load_setwise,
    model=ModelName.REQUIRED,
)
GENERATIVE = RetrieverKind(
    "generative",
    "generative:LLM, a language model that reads the document and names sentences",
    _load_generative,
    model=ModelName.REQUIRED,
)
PROPORTIONS = RetrieverKind(
    "rprs",
    "rprs or rprs:MODEL, the share of sentences that are near one of the query "
    "(default: all-MiniLM-L6-v2)",
    _load_rprs,
)
