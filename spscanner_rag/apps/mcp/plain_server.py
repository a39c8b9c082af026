"""A server that takes null as not given, and says plainly what is wrong."""

from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError
from typing_extensions import override

from spscanner_rag.text.escaping import one_line
from spscanner_rag.text.framing import inert

_VALUE_CHARACTERS = 60  # that a message repeats


class PlainServer(MCPServer[Any]):
    """The protocol's server with plain messages for wrong arguments."""

    @override
    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        context: Context[Any, Any] | None = None,
    ) -> Any:
        """Call a tool.

        Agents send null for arguments that they do not set.
        """
        present: dict[str, Any] = {}
        for argument, value in arguments.items():
            if value is not None:
                present[argument] = value
        try:
            return await super().call_tool(name, present, context)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(plain_message(cause)) from None
            raise


def plain_message(error: ValidationError) -> str:
    """The first fault of some arguments, on one line.

    Examples
    --------
    >>> from pydantic import TypeAdapter
    >>> try:
    ...     TypeAdapter(dict[str, int]).validate_python({"max_tokens": None})
    ... except ValidationError as error:
    ...     print(plain_message(error))
    max_tokens: got None; expected it to be a valid integer
    """
    first, *others = error.errors(include_url=False, include_context=False)
    place = ".".join(str(part) for part in first["loc"]) or "arguments"
    if first["type"] == "missing":
        message = f"{place}: missing; expected a value for it"
    else:
        expected = first["msg"].rpartition(" should ")[2]
        message = f"{place}: got {_shown(first['input'])}; expected it to {expected}"
    if others:
        message += f" (and {len(others)} more)"
    return inert(one_line(message))


def _shown(value: object) -> str:
    if isinstance(value, str):
        value = value[:_VALUE_CHARACTERS]
    return repr(value)[:_VALUE_CHARACTERS]
