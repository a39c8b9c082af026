"""What chooses the documents to read for a question: BM25, nothing, or a runnable of LangChain."""

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from spscanner_rag.retrieval import OwnFirstStage, check_own_first_stage

FirstStage = OwnFirstStage | Runnable[str, list[Document]]


def check_first_stage(first_stage: object, name: str) -> None:
    """Raise ``ValueError`` for an unknown string, ``TypeError`` for anything else that is no runnable.

    ``name`` is that of the field that it was given as.
    """
    if isinstance(first_stage, str):
        check_own_first_stage(first_stage)
    elif not isinstance(first_stage, Runnable):
        raise TypeError(
            f"{name}: got {type(first_stage).__name__}; expected a LangChain retriever or another "
            "runnable (wrap a function in langchain_core.runnables.RunnableLambda)"
        )
