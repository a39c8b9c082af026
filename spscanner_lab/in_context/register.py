"""BlockSearch as a kind of retriever that a name can mean: ``blocksearch:MODEL``."""

from typing import TYPE_CHECKING

from spscanner_rag.baselines.register import LoadOptions, ModelName, RetrieverKind

if TYPE_CHECKING:
    from spscanner_rag.scorers import Scorer


def _load(model: str, options: LoadOptions) -> "Scorer":
    from spscanner_lab.in_context.block_search import BlockSearch

    return BlockSearch(
        model, options.unit, device=options.device, keep_texts=options.keep_texts
    )


BLOCK_SEARCH = RetrieverKind(
    "blocksearch",
    "blocksearch:MODEL, a language model that reads all units and answers with a code",
    _load,
    model=ModelName.REQUIRED,
    has_index=True,
)
