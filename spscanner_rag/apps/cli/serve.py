"""``spscanner serve``: a scanner as an HTTP service."""

import gc
import ipaddress
import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from spscanner_rag.apps.cli.options import Model, ScannerOptions, grouped, optional, optional_number

TOKEN_VARIABLE = "SPSCANNER_TOKEN"


@grouped
def serve(
    *,
    model: Model = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at; another than this machine's own needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    token_file: Annotated[
        Path | None,
        optional(
            f"File with the token that clients must send; default the variable {TOKEN_VARIABLE}, if set."
        ),
    ] = None,
    max_seconds: Annotated[
        float | None, optional_number("Time to answer a request; default 120.", float)
    ] = None,
    max_body_mb: Annotated[int | None, optional_number("Size of a request in MiB; default 16.")] = None,
    max_documents: Annotated[int | None, optional_number("Texts of a request; default 2000.")] = None,
    max_waiting: Annotated[int | None, optional_number("Requests that may wait; default 256.")] = None,
    computes: ScannerOptions,
) -> None:
    """Answer HTTP requests: rerank as Cohere's and TEI's clients ask, and scan.

    Requests of all clients are packed into shared forward passes. SIGTERM and Ctrl-C let running requests end.
    One line of JSON per request goes to standard error, without texts.
    """
    from spscanner_rag.apps.serving.limits import Limits

    given = {
        "seconds": max_seconds,
        "body_bytes": None if max_body_mb is None else max_body_mb * 2**20,
        "documents": max_documents,
        "waiting_requests": max_waiting,
    }
    limits = Limits(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    token = _token(token_file)
    if token is None and not _is_local(host):
        raise ValueError(
            f"--host: got {host!r} without a token, so anyone could use the scanner; set {TOKEN_VARIABLE}, give "
            "--token-file, or listen at 127.0.0.1"
        )
    try:
        import uvicorn

        from spscanner_rag.apps.serving.app import create_app
    except ImportError as error:
        raise ImportError(f'serving needs {error.name}: pip install "spscanner-rag[serve]"') from error
    from spscanner_rag.apps.serving.access import access_log

    scanner = computes.scanner(model)
    scanner.scan(
        "Is it ready?", "Kernels are compiled when they first run."
    )  # and not in the first client's time
    app = create_app(scanner, token=token, limits=limits)
    # Python's garbage collector would look at the libraries' objects again and again, for 100 ms each time.
    gc.collect()
    gc.freeze()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    access_log.addHandler(handler)
    access_log.setLevel(logging.INFO)
    access_log.propagate = False
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        access_log=False,
        log_level="info",
        server_header=False,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
        limit_concurrency=limits.waiting_requests + 512,
    )
    uvicorn.Server(config).run()


def _token(file: Path | None) -> str | None:
    if file is not None:
        return file.expanduser().read_text(encoding="utf-8").strip()
    return os.environ.get(TOKEN_VARIABLE)


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
