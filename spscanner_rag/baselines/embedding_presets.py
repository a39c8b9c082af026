"""Settings of the embedding models of the papers, from their model cards."""

from dataclasses import dataclass
from typing import Literal

Similarity = Literal["cosine", "dot"]
Pooling = Literal["mean", "cls"]

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings of one embedding model."""

    model: str | None  # name on the Hub; None if it is not on the Hub
    query_model: str | None = None  # if queries have their own encoder
    query_prefix: str = ""
    passage_prefix: str = ""
    similarity: Similarity | None = None  # None: the model's own
    pooling: Pooling | None = None
    end_token: str = ""
    # whether its checkpoint has a projection of ANCE's beside the encoder
    projected: bool = False
    # whether it runs code from the Hub, which needs trust_remote_code=True
    remote_code: bool = False


_WEB_SEARCH = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the"
    " query"
)

PRESETS = {
    "minilm": Preset(MINILM),
    "contriever": Preset(
        "facebook/contriever-msmarco", similarity="dot", pooling="mean"
    ),
    # this one and the five after it are those of Dense X, by the names in the scripts
    # of MixGR (Cai et al., 2024), which has the same six
    "contriever-unsupervised": Preset(
        "facebook/contriever", similarity="dot", pooling="mean"
    ),
    "simcse": Preset(
        "princeton-nlp/unsup-simcse-bert-base-uncased",
        similarity="cosine",
        pooling="cls",
    ),
    "dpr": Preset(
        "sentence-transformers/facebook-dpr-ctx_encoder-multiset-base",
        "sentence-transformers/facebook-dpr-question_encoder-multiset-base",
        similarity="dot",
    ),
    "ance": Preset(
        "castorini/ance-dpr-context-multi",
        "castorini/ance-dpr-question-multi",
        similarity="dot",
        pooling="cls",
        projected=True,
    ),
    "tas-b": Preset(
        "sentence-transformers/msmarco-distilbert-base-tas-b", similarity="dot"
    ),
    "gtr": Preset("sentence-transformers/gtr-t5-base", similarity="cosine"),
    "dragon": Preset(
        "facebook/dragon-plus-context-encoder",
        "facebook/dragon-plus-query-encoder",
        similarity="dot",
        pooling="cls",
    ),
    "gte-qwen2": Preset(
        "Alibaba-NLP/gte-Qwen2-1.5B-instruct",
        query_prefix=f"{_WEB_SEARCH}\nQuery: ",
        remote_code=True,
    ),
    "stella": Preset(
        "NovaSearch/stella_en_1.5B_v5",
        query_prefix=f"{_WEB_SEARCH}.\nQuery: ",
        remote_code=True,
    ),
    "gritlm": Preset(
        "GritLM/GritLM-7B",
        query_prefix=(
            "<|user|>\nGiven a web search query, retrieve relevant passages that answer"
            " the query\n<|embed|>\n"
        ),
        passage_prefix="<|embed|>\n",
        remote_code=True,
    ),
    "nv-embed-v2": Preset(
        "nvidia/NV-Embed-v2",
        query_prefix=(
            "Instruct: Given a question, retrieve passages that answer the"
            " question\nQuery: "
        ),
        end_token="</s>",
        remote_code=True,
    ),
    "openai-3": Preset(None),
}
"""The papers' embedding models."""


def preset_of(embedder: object) -> Preset:
    """Return the settings of a model by its short name, else those of any model."""
    if not isinstance(embedder, str):
        return Preset(None)
    return PRESETS.get(embedder, Preset(embedder))
