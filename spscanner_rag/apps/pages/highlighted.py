"""A copy of a scanned PDF with its selected sentences highlighted on the pages."""

import math
from collections.abc import Sequence

from spscanner_rag.apps.pages.scanned_document import ScannedDocument
from spscanner_rag.files.documents import TextFile, name_of
from spscanner_rag.files.readers.pdf_passages import Mark, marked_copy
from spscanner_rag.files.reading import bytes_of


def check_is_pdf(documents: Sequence[TextFile]) -> None:
    """Raise ``ValueError`` unless there is one document, a PDF that can be read again."""
    if len(documents) != 1:
        raise ValueError(f"--out: got {len(documents)} documents for a PDF; expected one PDF: name it alone")
    name = name_of(documents[0].path)
    if documents[0].words is None or name != documents[0].path:
        raise ValueError(
            f"--out: got {name} for a PDF; expected the file of a PDF; write --out page.html instead"
        )


def highlighted(query: str, scanned: ScannedDocument) -> tuple[bytes, tuple[str, ...]]:
    """The copy, with question, rank and score as a note of each pick; and what has to be said about it."""
    document, ranks = scanned.document, scanned.ranks
    marks = [
        Mark(
            document.boxes(pick.start, pick.end),
            f"{query}\n{ranks[pick.start]} of {len(scanned.picks)}, score {pick.score:.3f}",
            math.sqrt(pick.score),
        )
        for pick in scanned.picks
    ]
    return marked_copy(document.path, bytes_of(document.path), marks)
