"""Middleware for agents: cuts long tool results to the sentences that answer the agent's question."""

import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from hashlib import sha256
from operator import or_
from typing import Annotated, Any, NotRequired, TypeAlias

from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from typing_extensions import override

from langchain_spscanner.compressor import SPScannerCompressor
from spscanner_rag.retrieval import install_line

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState
    from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
    from langchain.tools import ToolRuntime
    from langgraph.types import Command
except ImportError as error:
    raise ImportError(
        "SPScannerToolCompressionMiddleware needs langchain:"
        f" {install_line('langchain-agents')}"
    ) from error

READ_TOOL = "read_tool_result"
READ_CHARACTERS = 8_000  # maximum that one call of `read_tool_result` returns
QUESTION_CHARACTERS = 2_000  # a longer question is cut to its last characters
SHORTEST_CUT = 400  # strings in JSON of at most this many characters are not cut
CHARACTERS_PER_TOKEN = 4

_STRING = re.compile(
    r'"(?:[^"\\]++|\\.)*+"(\s*+:)?'
)  # a string of JSON, with the colon if it is a key

Answered: TypeAlias = "ToolMessage | Command[Any]"


class CompressedState(AgentState[Any]):
    """An agent's state, with the whole texts of the results that were cut, by handle."""

    spscanner_results: NotRequired[Annotated[dict[str, str], PrivateStateAttr, or_]]


class SPScannerToolCompressionMiddleware(AgentMiddleware[CompressedState, Any, Any]):
    """Cuts long tool results to the sentences that matter for the agent's question, verbatim and with offsets.

    The whole text stays in the agent's state, and so in its checkpoints; the tool
    ``read_tool_result`` reads it by the handle printed above the sentences. The
    middleware cuts strings, text blocks, and long strings within JSON, which stays
    JSON. It passes on all else unchanged: images and other blocks, artifacts, errors,
    commands.

    Parameters
    ----------
    longer_than : int, default 2000
        Only results of more tokens are cut; four characters count as one token.
    max_tokens : int, default 1000
        Token budget for the sentences kept of one result.
    tools : collection of str, optional
        Names of the tools whose results are cut; default: all. Set it if other tools
        return code or tables.
    question : callable, optional
        Returns the question from the agent's state; default: the text of the last human
        message. Without a question, nothing is cut.
    **fields
        Further fields of `SPScannerCompressor`, such as ``model``, ``scanner``, ``k``
        and ``threshold``.

    Raises
    ------
    ValueError, TypeError
        For an unknown field or a value out of range.
    """

    state_schema = CompressedState

    def __init__(
        self,
        *,
        longer_than: int = 2000,
        max_tokens: int = 1000,
        tools: Collection[str] | None = None,
        question: Callable[[Any], str] | None = None,
        **fields: Any,  # noqa: ANN401
    ) -> None:
        super().__init__()
        if type(longer_than) is not int or longer_than < 0:
            raise ValueError(
                f"longer_than: got {longer_than!r}; expected a number of tokens, at"
                " least 0"
            )
        if isinstance(tools, str):
            raise TypeError(
                f"tools: got a string, {tools!r}; expected a collection of names"
            )
        self.longer_than, self.only, self.question = (
            longer_than,
            tools,
            question or last_question,
        )
        fields = {"order": "document", "merge_adjacent": True, **fields}
        self.compressor = SPScannerCompressor(
            max_tokens=max_tokens, document_key=None, **fields
        )
        self.tools: list[BaseTool] = [
            StructuredTool.from_function(read_tool_result, handle_tool_error=True)
        ]

    @override
    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answered]
    ) -> Answered:
        answered = handler(request)
        if cut := self._cut(request, answered):
            return _shortened(
                answered, cut[0], self.compressor.compress_documents(*cut)
            )
        return answered

    @override
    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[Answered]],
    ) -> Answered:
        answered = await handler(request)
        if cut := self._cut(request, answered):
            return _shortened(
                answered, cut[0], await self.compressor.acompress_documents(*cut)
            )
        return answered

    def _cut(
        self, request: ToolCallRequest, answered: Answered
    ) -> tuple[list[Document], str] | None:
        """The texts of a result that is to be cut, and the question.

        None if the result stays as it is.
        """
        name = request.tool_call["name"]
        passed_on = name == READ_TOOL or (
            self.only is not None and name not in self.only
        )
        if (
            passed_on
            or not isinstance(answered, ToolMessage)
            or answered.status == "error"
        ):
            return None
        documents: list[Document] = []

        def noted(text: str) -> str:
            documents.append(
                Document(page_content=text, metadata={"text": len(documents)})
            )
            return text

        _replaced(answered.content, noted)
        if (
            sum(len(one.page_content) for one in documents)
            <= self.longer_than * CHARACTERS_PER_TOKEN
        ):
            return None
        question = self.question(request.state).strip()[-QUESTION_CHARACTERS:]
        return (documents, question) if question else None


def last_question(
    state: Any,  # noqa: ANN401
) -> str:
    """The text of the last human message in an agent's state; empty without one."""
    messages = (
        state.get("messages", ())
        if isinstance(state, Mapping)
        else getattr(state, "messages", state)
    )
    asked = (
        str(one.text) for one in reversed(messages) if isinstance(one, HumanMessage)
    )
    return next((text for text in asked if text.strip()), "")


def _shortened(
    message: Any,  # noqa: ANN401
    documents: Sequence[Document],
    kept: Sequence[Document],
) -> Answered:
    """A tool's message with its texts cut to the kept sentences, and the whole texts for the agent's state."""
    lines: list[list[str]] = [[] for _ in documents]
    for one in kept:
        start, end = one.metadata["start_index"], one.metadata["end_index"]
        lines[one.metadata["text"]].append(f"[{start}-{end}] {one.page_content}")
    whole: dict[str, str] = {}
    shorter = []
    for document, own in zip(documents, lines, strict=True):
        text = document.page_content
        handle = sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
        head = (
            f"[Sentences that matter from {len(text)} characters; all:"
            f' {READ_TOOL}("{handle}", start)]'
        )
        cut = "\n".join([head, *own])
        if len(cut) < len(text):
            whole[handle] = text
        shorter.append(min(text, cut, key=len))
    if not whole:
        return message  # type: ignore[no-any-return]
    rest = iter(shorter)
    content = _replaced(message.content, lambda text: next(rest))
    cut_down = message.model_copy(update={"content": content})
    return Command(update={"messages": [cut_down], "spscanner_results": whole})


def _replaced(content: Any, put: Callable[[str], str]) -> Any:  # noqa: ANN401 - blocks of any kind
    """A tool's content, with each text, or each long string in JSON, replaced by what ``put`` returns for it."""
    if isinstance(content, list):
        return [_replaced(block, put) for block in content]
    if isinstance(content, dict):
        own = content.get("text") if content.get("type") == "text" else None
        return (
            content | {"text": _replaced(own, put)} if isinstance(own, str) else content
        )
    if not _is_json(content):
        return put(content) if content.strip() else content

    def string(found: re.Match[str]) -> str:
        if found[1] or len(found[0]) <= SHORTEST_CUT:
            return found[0]
        return json.dumps(put(json.loads(found[0])), ensure_ascii=False)

    return _STRING.sub(string, content)


def _is_json(text: str) -> bool:
    try:
        return text.lstrip()[:1] in ("{", "[") and json.loads(text) is not None
    except (ValueError, RecursionError):
        return False


def read_tool_result(handle: str, runtime: ToolRuntime, start: int = 0) -> str:
    """Read the whole text of a tool result that you saw only some sentences of, from character ``start`` on."""
    known = runtime.state.get("spscanner_results") or {}
    if handle not in known:
        raise ToolException(
            f"handle: got {handle!r:.40}; expected one of"
            f" {', '.join(known) or 'none yet'}"
        )
    text, start = known[handle], max(0, start)
    end = min(len(text), start + READ_CHARACTERS)
    more = f"; continue with start={end}" if end < len(text) else ""
    return f"[{start}-{end} of {len(text)} characters{more}]\n{text[start:end]}"
