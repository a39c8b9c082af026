"""Files, and an agent that searches them by the protocol's own client."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spscanner_rag import Scanner

if TYPE_CHECKING:
    from spscanner_rag.apps.mcp import Library

TREATY = (
    "# Treaty\n\nThe keeper signed it.\n\n## Weather\n\nIt rained. The captain left"
    " with 3 ships.\n"
)
KEEPER = (
    "The keeper wrote the date. He signed the treaty. The well was dry. A bell rang"
    " twice. Nobody left."
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that an agent may read, beside files that it may not."""
    (tmp_path / "secret.txt").write_text("The keeper signed the secret.")
    (folder := tmp_path / "open").mkdir()
    (folder / "treaty.md").write_text(TREATY)
    (folder / "keeper.txt").write_text(KEEPER)
    (folder / "inner").mkdir()
    (folder / "inner" / "ship.txt").write_text("The ship sank. The captain swam.")
    (folder / "picture.bin").write_bytes(bytes(range(256)))
    (folder / ".hidden.txt").write_text("The keeper hid it.")
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "up").symlink_to(tmp_path)
    return folder


class Silent:
    """The context of a call whose client asks for no progress."""

    session = None

    async def report_progress(self, done: float, total: float | None) -> None:
        """Tell nobody."""


class Agent:
    """Calls tools, each time as a new client, and tells errors from answers."""

    def __init__(self, server: Any) -> None:
        self.server = server

    async def called(self, tool: str, **arguments: object) -> Any:
        from mcp import Client

        async with Client(self.server) as client:
            return await client.call_tool(tool, arguments)

    async def __call__(self, tool: str, **arguments: object) -> dict[str, Any]:
        result = await self.called(tool, **arguments)
        assert not result.is_error, result.content
        return dict(result.structured_content)

    async def refused(self, tool: str, **arguments: object) -> str:
        result = await self.called(tool, **arguments)
        assert result.is_error, result.content
        return str(result.content[0].text)


@pytest.fixture
def library(tiny_scanner: Scanner, folder: Path) -> Iterator["Library"]:
    from spscanner_rag.apps.mcp import Library

    library = Library(tiny_scanner, [folder])
    yield library
    library.close()


@pytest.fixture
def agent(library: "Library") -> Agent:
    from spscanner_rag.apps.mcp import create_server

    return Agent(create_server(library))
