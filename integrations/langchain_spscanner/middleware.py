"""Middleware for agents: cuts long tool results to the sentences that matter."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from hashlib import sha256
from operator import or_
from typing import Annotated, Any, NamedTuple, NotRequired, TypeAlias

from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from typing_extensions import override

from langchain_spscanner._tool_contents import texts_in, with_texts
from langchain_spscanner.compressor import SPScannerCompressor
from spscanner_rag.retrieval import framed, install_line, quoted

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
READ_TOOL_DESCRIPTION = (
    "Read the whole text of a tool result that you saw only some sentences of, from"
    " character ``start`` on."
)
READ_CHARACTERS = 8_000  # maximum that one call of `read_tool_result` returns
QUESTION_CHARACTERS = 2_000  # a longer question is cut to its last characters
CHARACTERS_PER_TOKEN = 4

ToolAnswer: TypeAlias = "ToolMessage | Command[Any]"


class CompressedState(AgentState[Any]):
    """An agent's state, with the whole texts of cut results by their handles."""

    spscanner_results: NotRequired[Annotated[dict[str, str], PrivateStateAttr, or_]]


class LongResult(NamedTuple):
    """A tool's message that is to be cut."""

    message: ToolMessage
    documents: list[Document]  # its texts
    question: str

    def shortened(self, sentences: Sequence[Document]) -> ToolAnswer:
        """The message with these sentences, and whole texts for the agent's state."""
        lines: list[list[str]] = [[] for _ in self.documents]
        for sentence in sentences:
            start = sentence.metadata["start_index"]
            end = sentence.metadata["end_index"]
            line = framed(f"[{start}-{end}] ", sentence.page_content)
            lines[sentence.metadata["text"]].append(line)
        whole_texts: dict[str, str] = {}
        shorter_texts = []
        for document, lines_of_text in zip(self.documents, lines, strict=True):
            text = document.page_content
            handle = _handle(text)
            cut = "\n".join([_head(text, handle), *lines_of_text])
            if len(cut) < len(text):
                whole_texts[handle] = text
            shorter_texts.append(min(text, cut, key=len))
        if not whole_texts:
            return self.message
        remaining = iter(shorter_texts)
        content = with_texts(self.message.content, lambda text: next(remaining))
        message = self.message.model_copy(update={"content": content})
        return Command(update={"messages": [message], "spscanner_results": whole_texts})


def _handle(text: str) -> str:
    """128 bits of the text's digest, so that no other text has it."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def _head(text: str, handle: str) -> str:
    return (
        f"[Sentences that matter from {len(text)} characters; all:"
        f' {READ_TOOL}("{handle}", start)]'
    )


class SPScannerToolCompressionMiddleware(AgentMiddleware[CompressedState, Any, Any]):
    """Cuts long tool results to the sentences that matter for the agent's question.

    The sentences have their offsets, and are verbatim but for their frame: further
    lines of a sentence begin with ``> ``, what looks like Markdown or HTML that acts
    gets a backslash, and invisible characters become Python escapes. The whole text
    stays in the agent's state, and so in its checkpoints; the tool ``read_tool_result``
    reads it by the handle printed above the sentences, in the same frame. The
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

    Examples
    --------
    >>> middleware = SPScannerToolCompressionMiddleware(longer_than=500, k=5)
    >>> [tool.name for tool in middleware.tools]
    ['read_tool_result']
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
        self.longer_than = longer_than
        self.only = tools
        self.question = question or last_question
        fields = {"order": "document", "merge_adjacent": True, **fields}
        self.compressor = SPScannerCompressor(
            max_tokens=max_tokens, document_key=None, **fields
        )
        self.tools: list[BaseTool] = [
            StructuredTool.from_function(
                read_tool_result,
                description=READ_TOOL_DESCRIPTION,
                handle_tool_error=True,
            )
        ]

    @override
    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolAnswer]
    ) -> ToolAnswer:
        answer = handler(request)
        long_result = self._long_result(request, answer)
        if long_result is None:
            return answer
        _, documents, question = long_result
        sentences = self.compressor.compress_documents(documents, question)
        return long_result.shortened(sentences)

    @override
    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolAnswer]],
    ) -> ToolAnswer:
        answer = await handler(request)
        long_result = self._long_result(request, answer)
        if long_result is None:
            return answer
        _, documents, question = long_result
        sentences = await self.compressor.acompress_documents(documents, question)
        return long_result.shortened(sentences)

    def _long_result(
        self, request: ToolCallRequest, answer: ToolAnswer
    ) -> LongResult | None:
        """The result that is to be cut, None if the answer stays as it is."""
        if not self._may_cut(request.tool_call["name"]):
            return None
        if not isinstance(answer, ToolMessage) or answer.status == "error":
            return None
        texts = texts_in(answer.content)
        if sum(map(len, texts)) <= self.longer_than * CHARACTERS_PER_TOKEN:
            return None
        question = self.question(request.state).strip()[-QUESTION_CHARACTERS:]
        if not question:
            return None
        documents = []
        for number, text in enumerate(texts):
            documents.append(Document(page_content=text, metadata={"text": number}))
        return LongResult(answer, documents, question)

    def _may_cut(self, tool_name: str) -> bool:
        if tool_name == READ_TOOL:
            return False
        return self.only is None or tool_name in self.only


def last_question(state: Any) -> str:  # noqa: ANN401
    """The text of the last human message in an agent's state, or an empty one."""
    if isinstance(state, Mapping):
        messages = state.get("messages", ())
    else:
        messages = getattr(state, "messages", state)
    for message in reversed(messages):
        if isinstance(message, HumanMessage) and str(message.text).strip():
            return str(message.text)
    return ""


def read_tool_result(handle: str, runtime: ToolRuntime, start: int = 0) -> str:
    """Read the whole text of a tool result, from a character on."""
    texts = runtime.state.get("spscanner_results") or {}
    if handle not in texts:
        raise ToolException(
            f"handle: got {handle!r:.40}; expected one of"
            f" {', '.join(texts) or 'none yet'}"
        )
    text = texts[handle]
    start = max(0, start)
    end = min(len(text), start + READ_CHARACTERS)
    more = ""
    if end < len(text):
        more = f"; continue with start={end}"
    head = f"[{start}-{end} of {len(text)} characters{more}]"
    return f"{head}\n{quoted(text[start:end])}"
