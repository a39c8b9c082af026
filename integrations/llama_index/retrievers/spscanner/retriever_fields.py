"""The retriever's options that can be checked without its nodes."""

from typing import ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.vector_stores.types import MetadataFilters
from pydantic import SkipValidation

from llama_index.postprocessor.spscanner.node_groups import AUTO
from spscanner_rag.retrieval import RetrieverFields


class NodeRetrieverFields(RetrieverFields):
    """The retriever's options that can be checked without its nodes."""

    limits: ClassVar = ("similarity_top_k", "top_k_per_document")
    other_stages: ClassVar = (
        BaseRetriever,
        "a BaseRetriever, such as index.as_retriever()",
    )

    similarity_top_k: SkipValidation[int | float | str | None] = 50
    top_k_per_document: SkipValidation[int | None] = None
    filters: SkipValidation[MetadataFilters | None] = None
    document_key: str | None = AUTO

    def shown(self) -> str:
        """Return ``name=value`` of the options that were passed.

        The number of sentences and the first stage are always shown.
        """
        values = {"similarity_top_k": self.similarity_top_k, "first_stage": self.stage}
        for name in type(self).model_fields:
            # A retriever is shown as the first stage.
            if name in self.model_fields_set and name != "retriever":
                values[name] = getattr(self, name)
        return ", ".join(f"{name}={value!r:.60}" for name, value in values.items())
