"""``spscanner serve`` and ``spscanner mcp``.

A scanner as an HTTP service, and a document search for agents.
"""

import gc
import ipaddress
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spscanner_rag.apps.cache import user_cache
from spscanner_rag.apps.cli.declaring import argument, grouped, option
from spscanner_rag.apps.cli.model_options import ScannerOptions
from spscanner_rag.apps.cli.shared_options import CACHE, MODEL
from spscanner_rag.files.reading import read_bytes
from spscanner_rag.system.install_hints import install_line

if TYPE_CHECKING:
    from spscanner_rag.apps.mcp.plain_server import PlainServer
    from spscanner_rag.scanner import Scanner

TOKEN_VARIABLE = "SPSCANNER_TOKEN"


@grouped
def serve(
    *,
    model: str | None = MODEL,
    host: str = option(
        "127.0.0.1",
        "Address to listen at; one that other machines can reach needs a token.",
    ),
    port: int = option(8000, "Port; 0 picks a free one.", lowest=0, highest=65535),
    token_file: Path | None = option(
        None,
        f"File with the clients' token; default: the variable {TOKEN_VARIABLE}, if"
        " set.",
    ),
    max_seconds: float = option(120, "Most seconds to answer a request."),
    max_body_mb: int = option(16, "Largest request, in MiB."),
    max_documents: int = option(2000, "Most texts in a request."),
    max_waiting: int = option(256, "Most requests that may wait."),
    computes: ScannerOptions,
) -> None:
    """Answer HTTP requests for rankings and scans.

    Rankings have the formats of Cohere's and TEI's clients.

    Forward passes are shared by the requests of all clients. SIGTERM and Ctrl-C let
    running requests finish. Each request is logged to standard error as one line of
    JSON, without texts.
    """
    try:
        import uvicorn

        from spscanner_rag.apps.serving.access import access_log
        from spscanner_rag.apps.serving.app import create_app
        from spscanner_rag.apps.serving.connections import config_of
        from spscanner_rag.apps.serving.limits import Limits
    except ImportError as error:
        raise ImportError(
            f"serving needs {error.name}: {install_line('serve')}"
        ) from error
    limits = Limits(
        seconds=max_seconds,
        body_bytes=max_body_mb * 2**20,
        documents=max_documents,
        waiting_requests=max_waiting,
    )
    if token_file is None:
        token = os.environ.get(TOKEN_VARIABLE)
    else:
        token = token_file.expanduser().read_text(encoding="utf-8").strip()
    if token is None and not _is_local(host):
        raise ValueError(
            f"--host: got {host!r} without a token, so anyone could use the scanner;"
            f" set {TOKEN_VARIABLE}, give --token-file, or listen at 127.0.0.1"
        )
    app = create_app(_ready(computes.scanner(model)), token=token, limits=limits)
    # Otherwise Python's garbage collector would traverse the libraries' objects
    # repeatedly, 100 ms each time.
    gc.collect()
    gc.freeze()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    access_log.addHandler(handler)
    access_log.setLevel(logging.INFO)
    access_log.propagate = False
    uvicorn.Server(config_of(app, host, port, grace=int(limits.seconds) + 1)).run()


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@grouped
def mcp(
    folders: list[Path] = argument(
        "Folders whose files may be read; nothing outside is read.", "FOLDER..."
    ),
    *,
    port: int | None = option(
        None,
        "Serve streamable HTTP at http://127.0.0.1:PORT/mcp instead of standard input;"
        " 0 picks a free port.",
        lowest=0,
        highest=65535,
    ),
    model: str | None = MODEL,
    computes: ScannerOptions,
    cache: bool = CACHE,
) -> None:
    """Let an agent search the documents in folders.

    It is a server of the Model Context Protocol.

    Its tools are search_document, search_folder and read_passage; they only read. It
    talks to the host that started it over standard input and output.
    """
    if missing := [folder for folder in folders if not folder.is_dir()]:
        raise ValueError(
            f"{missing[0]}: no such folder; expected folders whose files may be read"
        )
    try:
        import uvicorn

        from spscanner_rag.apps.mcp import Library, create_server
        from spscanner_rag.apps.serving.connections import config_of
    except ImportError as error:
        raise ImportError(
            f"an MCP server needs {error.name}: {install_line('mcp')}"
        ) from error
    read_cache = user_cache() if cache else None
    scanner = _ready(computes.scanner(model, cache=read_cache))
    read_content = read_cache.read_bytes if read_cache else read_bytes
    server = create_server(Library(scanner, folders, read_content))
    if port is None:
        _run_over_streams(server)
    else:
        app = server.streamable_http_app(
            stateless_http=True, max_request_body_size=16 * 2**20
        )
        uvicorn.Server(config_of(app, port=port, grace=5)).run()


def _run_over_streams(server: "PlainServer") -> None:
    """Serve over standard input and output until the host ends.

    ``BrokenPipeError`` if it ends while an answer is written.
    """
    has_left = False
    try:
        server.run()
    except* BrokenPipeError:
        has_left = True
    if has_left:
        raise BrokenPipeError


def _ready(scanner: "Scanner") -> "Scanner":
    """Let a scanner answer once, so that its kernels are compiled.

    The first client then need not wait for that.
    """
    scanner.scan("Is it ready?", "Kernels are compiled when they first run.")
    return scanner
