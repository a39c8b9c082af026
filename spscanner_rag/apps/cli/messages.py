"""Messages on standard error."""

import sys

from spscanner_rag.text.escaping import encodable, one_line


def tell(message: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(
        encodable(f"spscanner: {one_line(message)}\n", sys.stderr.encoding or "utf-8")
    )
