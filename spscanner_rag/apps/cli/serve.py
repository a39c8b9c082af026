"""``spscanner serve``: a scanner as an HTTP service."""

import gc
import ipaddress
import logging
import os
import sys
from pathlib import Path

from spscanner_rag.apps.cli.options import MODEL, ScannerOptions, grouped, option
from spscanner_rag.text.extras import install_line

TOKEN_VARIABLE = "SPSCANNER_TOKEN"


@grouped
def serve(
    *,
    model: str | None = MODEL,
    host: str = option("127.0.0.1", "Address to listen at; another than this machine's own needs a token."),
    port: int = option(8000, "Port; 0 takes a free one.", least=0, most=65535),
    token_file: Path | None = option(
        None, f"File with the token that clients must send; default the variable {TOKEN_VARIABLE}, if set."
    ),
    max_seconds: float = option(120, "Time to answer a request."),
    max_body_mb: int = option(16, "Size of a request in MiB."),
    max_documents: int = option(2000, "Texts of a request."),
    max_waiting: int = option(256, "Requests that may wait."),
    computes: ScannerOptions,
) -> None:
    """Answer HTTP requests: rerank as Cohere's and TEI's clients ask, and scan.

    Requests of all clients are packed into shared forward passes. SIGTERM and Ctrl-C let running requests end.
    One line of JSON per request goes to standard error, without texts.
    """
    try:
        import uvicorn

        from spscanner_rag.apps.serving.access import Limits, access_log, config_of
        from spscanner_rag.apps.serving.app import create_app
    except ImportError as error:
        raise ImportError(f"serving needs {error.name}: {install_line('serve')}") from error
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
            f"--host: got {host!r} without a token, so anyone could use the scanner; set {TOKEN_VARIABLE}, give "
            "--token-file, or listen at 127.0.0.1"
        )
    scanner = computes.scanner(model)
    # not in the first client's time
    scanner.scan("Is it ready?", "Kernels are compiled when they first run.")
    app = create_app(scanner, token=token, limits=limits)
    # Python's garbage collector would look at the libraries' objects again and again, for 100 ms each time.
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
