"""``spscanner mcp``: documents for agents, by the Model Context Protocol."""

from pathlib import Path

from spscanner_rag.apps.cache import ReadCache, cache_folder
from spscanner_rag.apps.cli.options import CACHE, MODEL, ScannerOptions, argument, grouped, option
from spscanner_rag.files.reading import read
from spscanner_rag.text.extras import install_line


@grouped
def mcp(
    folders: list[Path] = argument("Folders whose files may be read; nothing outside them is.", "FOLDER..."),
    *,
    port: int | None = option(
        None,
        "Answer streamable HTTP at http://127.0.0.1:PORT/mcp instead of standard input; 0 takes a free port.",
        least=0,
        most=65535,
    ),
    model: str | None = MODEL,
    computes: ScannerOptions,
    cache: bool = CACHE,
) -> None:
    """Let an agent ask the documents below folders questions, as a server of the Model Context Protocol.

    Its tools are search_document, search_folder and read_passage; they only read. The host that starts it speaks
    to it by standard input and output.
    """
    if missing := [folder for folder in folders if not folder.is_dir()]:
        raise ValueError(f"{missing[0]}: no such folder; expected folders whose files may be read")
    try:
        import uvicorn

        from spscanner_rag.apps.mcp import Library, create_server
        from spscanner_rag.apps.serving.access import config_of
    except ImportError as error:
        raise ImportError(f"an MCP server needs {error.name}: {install_line('mcp')}") from error
    kept = ReadCache(cache_folder()) if cache else None
    scanner = computes.scanner(model)
    if scanner.meaning is not None:
        scanner.meaning.store = kept
    # not in the first question's time
    scanner.scan("Is it ready?", "Kernels are compiled when they first run.")
    server = create_server(Library(scanner, folders, kept.read if kept else read))
    if port is None:
        server.run()
    else:
        app = server.streamable_http_app(stateless_http=True, max_request_body_size=16 * 2**20)
        uvicorn.Server(config_of(app, port=port, grace=5)).run()
