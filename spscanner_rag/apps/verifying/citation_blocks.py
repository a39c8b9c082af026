"""Answers with the citation blocks of Anthropic's and OpenAI's APIs, in and out.

Sources: Anthropic's "Citations" (blocks of text with ``citations`` of the types
``char_location``, ``page_location``, ``content_block_location`` and
``search_result_location``); OpenAI's Responses API (``output_text`` with
``annotations`` of the types ``url_citation``, ``file_citation`` and
``container_file_citation``).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from spscanner_rag.apps.verifying.report import Statement, Verification

_MOST_BLOCKS = 10_000


class CitedQuote(NamedTuple):
    """A citation of an API, with the span of the answer that it is for."""

    start: int
    end: int
    cited_text: str  # empty if the API does not tell
    document: int | None  # its index, if the API tells it
    title: str
    page: str | None


class ApiAnswer(NamedTuple):
    """The text of an answer, and what it cites."""

    text: str
    quotes: list[CitedQuote]


def read_answer(answer: Any) -> ApiAnswer:  # noqa: ANN401 - what an API returned
    """Read an answer: a string, a message of an API, or its content.

    Parameters
    ----------
    answer : str, object, mapping or sequence
        A string; an Anthropic message or its ``content``; an OpenAI response, its
        ``output``, or a chat completion's message. Objects of the APIs' packages and
        their dictionaries are both read.

    Raises
    ------
    TypeError
        For anything else.

    Examples
    --------
    >>> read_answer([{"type": "text", "text": "It sank."}]).text
    'It sank.'
    """
    if isinstance(answer, str):
        return ApiAnswer(answer, [])
    texts: list[str] = []
    quotes: list[CitedQuote] = []
    length = 0
    for block in _text_blocks(answer):
        text = _value(block, "text")
        if not isinstance(text, str):
            continue
        for citation in _list(block, "citations"):
            quotes.append(_anthropic_quote(citation, length, length + len(text)))
        for annotation in _list(block, "annotations"):
            quotes.append(_openai_quote(annotation, length, text))
        texts.append(text)
        length += len(text)
    if not texts:
        raise TypeError(
            f"answer: got {type(answer).__name__} without a block of text; expected a"
            " string, an Anthropic message or its content, or an OpenAI response or"
            " message: give its text"
        )
    return ApiAnswer("".join(texts), quotes)


def _value(block: object, name: str) -> Any:  # noqa: ANN401 - of any type
    if isinstance(block, Mapping):
        return block.get(name)
    return getattr(block, name, None)


def _list(block: object, name: str) -> Sequence[Any]:
    value = _value(block, name)
    return value[:_MOST_BLOCKS] if isinstance(value, list | tuple) else ()


def _text_blocks(answer: object) -> list[object]:
    """The blocks of text, however deep the API puts them."""
    if isinstance(answer, list | tuple):
        blocks: list[object] = []
        for block in answer[:_MOST_BLOCKS]:
            blocks += _list(block, "content") or [block]
        return blocks
    for name in ("output", "content"):
        inner = _value(answer, name)
        if isinstance(inner, list | tuple):
            return _text_blocks(inner)
        if isinstance(inner, str):  # a message of a chat completion
            return [{"text": inner, "annotations": _list(answer, "annotations")}]
    return [answer]


def _anthropic_quote(citation: object, start: int, end: int) -> CitedQuote:
    document = _value(citation, "document_index")
    if document is None:
        document = _value(citation, "search_result_index")
    page = _value(citation, "start_page_number")
    title = _value(citation, "document_title") or _value(citation, "source") or ""
    return CitedQuote(
        start,
        end,
        str(_value(citation, "cited_text") or ""),
        document if isinstance(document, int) else None,
        str(title),
        None if page is None else str(page),
    )


def _openai_quote(annotation: object, start: int, text: str) -> CitedQuote:
    inner = _value(annotation, "url_citation") or annotation
    first = _value(inner, "start_index")
    last = _value(inner, "end_index")
    at = _value(inner, "index")
    if not isinstance(first, int) or not isinstance(last, int):
        first = last = at if isinstance(at, int) else len(text)
    names = ("filename", "title", "url", "file_id")
    titles = [_value(inner, name) for name in names]
    title = next((str(name) for name in titles if name), "")
    return CitedQuote(start + first, start + last, "", None, title, None)


def to_anthropic(verification: Verification) -> list[dict[str, Any]]:
    """The answer as blocks of text with citations, as Anthropic's API returns them.

    Only supported statements are cited; a claim cites its likeliest sentence.

    Examples
    --------
    >>> from spscanner_rag import verify
    >>> checked = verify('Lost: "it sank in May".', ["Then it sank in May."])
    >>> citation = to_anthropic(checked)[1]["citations"][0]
    >>> citation["cited_text"], citation["start_char_index"]
    ('it sank in May', 5)
    """
    blocks: list[dict[str, Any]] = []
    at = 0
    for statement in _disjoint(verification):
        if statement.start > at:
            text = verification.answer[at : statement.start]
            blocks.append({"type": "text", "text": text})
        text = verification.answer[statement.start : statement.end]
        citations = []
        for place in statement.places[:1]:
            passage = place.passage
            citations.append(
                {
                    "type": "char_location",
                    "cited_text": passage.text,
                    "document_index": place.document,
                    "document_title": verification.documents[place.document] or None,
                    "start_char_index": passage.start,
                    "end_char_index": passage.end,
                }
            )
        blocks.append({"type": "text", "text": text, "citations": citations})
        at = statement.end
    if at < len(verification.answer):
        blocks.append({"type": "text", "text": verification.answer[at:]})
    return blocks


def to_openai(verification: Verification) -> dict[str, Any]:
    """The answer as an ``output_text`` with ``file_citation`` annotations, as OpenAI's.

    ``index`` is the end of the statement; ``file_id`` is the document's number, since
    no file was uploaded.

    Examples
    --------
    >>> from spscanner_rag import verify
    >>> log = ("log.txt", "Then it sank in May.")
    >>> checked = verify('Lost: "it sank in May".', [log])
    >>> to_openai(checked)["annotations"][0]["filename"]
    'log.txt'
    """
    annotations = []
    for statement in _disjoint(verification):
        for place in statement.places[:1]:
            annotations.append(
                {
                    "type": "file_citation",
                    "index": statement.end,
                    "file_id": str(place.document),
                    "filename": verification.documents[place.document],
                }
            )
    text = verification.answer
    return {"type": "output_text", "text": text, "annotations": annotations}


def _disjoint(verification: Verification) -> list[Statement]:
    """The supported statements.

    Of a claim and a quote in it, the quote.
    """
    supported = verification.with_status("supported")
    quotes = [statement for statement in supported if statement.kind == "quote"]
    cited = list(quotes)
    for statement in supported:
        if statement.kind == "claim" and not _overlaps(statement, quotes):
            cited.append(statement)
    return sorted(cited, key=lambda statement: statement.start)


def _overlaps(statement: Statement, others: Sequence[Statement]) -> bool:
    for other in others:
        if statement.start < other.end and other.start < statement.end:
            return True
    return False
