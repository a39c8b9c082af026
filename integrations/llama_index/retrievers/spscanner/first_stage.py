"""What chooses the documents to read for a question: BM25, nothing, or a retriever of LlamaIndex."""

from llama_index.core.base.base_retriever import BaseRetriever

from spscanner_rag.retrieval import OwnFirstStage, check_own_first_stage

FirstStage = OwnFirstStage | BaseRetriever


def checked_first_stage(first_stage: object, retriever: object) -> FirstStage:
    """The first stage, given under either name; raises ``ValueError`` or ``TypeError`` for anything else."""
    if first_stage is not None and retriever is not None:
        raise ValueError("retriever: got first_stage as well; expected one of them: they mean the same")
    if retriever is None:
        if first_stage is None:
            return "bm25"
        if isinstance(first_stage, str):
            return check_own_first_stage(first_stage)
    name, chosen = ("first_stage", first_stage) if retriever is None else ("retriever", retriever)
    if not isinstance(chosen, BaseRetriever):
        raise TypeError(
            f"{name} is {type(chosen).__name__}; expected a BaseRetriever, such as index.as_retriever()"
        )
    return chosen
