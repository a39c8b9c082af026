"""The bodies of requests, as Cohere, TEI and this package define them."""

from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, PlainValidator
from pydantic_core import PydanticCustomError

from spscanner_rag.apps.serving.bodies import Body, OwnBody
from spscanner_rag.apps.serving.selection_fields import (
    SelectionFields,
    with_selection_options,
)
from spscanner_rag.scorers import Read, check_read

Query = Annotated[
    str, Field(max_length=100_000, description="The question; not empty.")
]
# a server has a lower limit: 413
Texts = Annotated[list[str], Field(max_length=100_000, fail_fast=True)]

_Value = str | bool | int | FiniteFloat | None
_Values = Annotated[list[_Value], Field(max_length=10_000, fail_fast=True)]
Document = Annotated[
    dict[str, _Value | _Values], Field(max_length=1_000, fail_fast=True)
]


def _checked_read(value: object) -> Read | None:
    """Check the option ``read``, with the message that it has everywhere."""
    if value is None:
        return None
    try:
        return check_read(value)
    except (TypeError, ValueError) as error:
        message = str(error).removeprefix("read: ")
        raise PydanticCustomError("read", "{message}", {"message": message}) from None


ReadField = Annotated[
    Read | None,
    PlainValidator(_checked_read, json_schema_input_type=Read | None),
    Field(
        description='What is read of the texts: "auto", "all", or a share of their'
        " tokens from 0 to 1. Default: as the server was started."
    ),
]


class _Rerank(Body):
    """The common fields of the bodies for ranking."""

    query: Query
    read: ReadField = None
    # for models that follow instructions; this one has only the query
    instruction: Literal[""] | None = None


class CohereRerank(_Rerank):
    """Body of ``/v1/rerank`` and ``/v2/rerank``.

    Documents are read whole without ``max_tokens_per_doc``.
    """

    documents: Annotated[
        list[str | Document], Field(max_length=100_000, fail_fast=True)
    ]
    top_n: Annotated[int, Field(ge=1)] | None = None
    # v1 only: fields of documents that are objects; default "text"
    rank_fields: (
        Annotated[list[str], Field(max_length=1_000, fail_fast=True)] | None
    ) = None
    return_documents: bool = False  # v1 only
    # by the checkpoint's tokenizer
    max_tokens_per_doc: Annotated[int, Field(ge=1)] | None = None


class TeiRerank(_Rerank):
    """Body of ``/rerank``, as text-embeddings-inference takes it."""

    texts: Texts
    raw_scores: bool = False
    return_text: bool = False
    return_pruned_text: bool = False
    # number of best sentences in each ``pruned_text``
    pruned_sentences: Annotated[int, Field(ge=1)] = 5


@with_selection_options(defaults={"top_k": 10, "order": "score"})
class Scan(OwnBody, SelectionFields):
    """Body of ``/v1/scan``: one text, or several documents as one collection.

    Each document's sentences are selected as by `ScanResult.select`.
    """

    query: Query
    text: str | None = None
    documents: Texts | None = None
    read: ReadField = None
    stream: bool = False  # lines of JSON: progress, then the result


FileName = Annotated[str, Field(max_length=300)]

MOST_FILES = 50  # of one question on the page


class NamedFile(Body):
    """A file in base64, with its name."""

    file: str
    name: FileName = ""


class DocumentBody(OwnBody):
    """Body of ``/v1/prepare``: a text, a file with its name, or several such files."""

    text: str | None = None
    file: str | None = None
    name: FileName = ""
    files: Annotated[
        list[NamedFile] | None,
        Field(min_length=1, max_length=MOST_FILES, fail_fast=True),
    ] = None


class Page(DocumentBody):
    """Body of ``/v1/page``: a question about such documents."""

    query: Query
    top_k: Annotated[int, Field(ge=1)] = 10


class UnitsOfText(Body):
    """A text and its units to score.

    Each has its start, its end, and the text for the model (null: up to the next unit).
    """

    query: Query
    text: str
    units: Annotated[
        list[tuple[Annotated[int, Field(ge=0)], int, str | None]],
        Field(max_length=1_000_000, fail_fast=True),
    ]


class Score(OwnBody):
    """Body of ``/v1/score``: texts whose units the caller cut."""

    requests: Annotated[list[UnitsOfText], Field(max_length=100_000, fail_fast=True)]
    together: bool = False
    read: ReadField = None
    # uploaded earlier
    collection: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None


class SeveralTexts(OwnBody):
    """Body of ``/v1/segment`` and ``/v1/count_tokens``."""

    texts: Texts
