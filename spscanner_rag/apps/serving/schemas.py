"""The bodies of requests, as Cohere, text-embeddings-inference and this package define them."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from spscanner_rag.text.units import readable

# JSON can escape half a character, which no answer can contain.
Text = Annotated[str, AfterValidator(readable)]
Query = Annotated[Text, Field(description="The question; not empty.")]


class _Body(BaseModel):
    # Clients send fields of other versions of an API; those that change nothing here are ignored.
    model_config = ConfigDict(extra="ignore", protected_namespaces=())


class _Own(BaseModel):
    # An unknown field of our own API is a mistake.
    model_config = ConfigDict(extra="forbid")


class CohereRerank(_Body):
    """Body of ``/v1/rerank`` and ``/v2/rerank``. Documents are read whole, whatever ``max_tokens_per_doc`` is."""

    query: Query
    documents: list[Text | dict[str, Any]]
    top_n: Annotated[int, Field(ge=1)] | None = None
    rank_fields: list[str] | None = None  # of v1: fields of a document that is an object; default "text"
    return_documents: bool = False  # of v1


class TeiRerank(_Body):
    """Body of ``/rerank``, as text-embeddings-inference takes it."""

    query: Query
    texts: list[Text]
    raw_scores: bool = False
    return_text: bool = False
    return_pruned_text: bool = False
    pruned_sentences: Annotated[int, Field(ge=1)] = 5  # best sentences of each text in its ``pruned_text``


class Scan(_Own):
    """Body of ``/v1/scan``: one text, or several documents as one collection. Selection as `ScanResult.select`."""

    query: Query
    text: Text | None = None
    documents: list[Text] | None = None
    top_k: int | float | None = 10
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    context: Annotated[int, Field(ge=0)] = 0
    order: Literal["document", "score"] = "score"
    merge: bool = False
    stream: bool = False  # lines of JSON: progress, then the result


class Page(_Own):
    """Body of ``/v1/page``: a text, or the content of a file in base64 with its name."""

    query: Query
    text: Text | None = None
    file: str | None = None
    name: Annotated[Text, Field(max_length=300)] = ""
    top_k: Annotated[int, Field(ge=1)] = 10


class UnitsOfText(_Own):
    """A text and its units to score: start, end, and what the model reads (null: up to the next unit)."""

    query: Query
    text: Text
    units: list[tuple[Annotated[int, Field(ge=0)], int, Text | None]]


class Score(_Own):
    """Body of ``/v1/score``: units that the caller cut."""

    requests: list[UnitsOfText]
    together: bool = False
    collection: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None  # uploaded before


class Texts(_Own):
    """Body of ``/v1/segment`` and ``/v1/count_tokens``."""

    texts: list[Text]
