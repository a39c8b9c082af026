"""How a document's score comes from its passages, by the names of the literature.

The forms are those of Dai and Callan (2019) and of surveys of long-document retrieval.
A passage is a unit: a scanner's are sentences, other retrievers' as ``--unit`` says.
``FirstP-512`` and ``LongP-1536`` are the settings of Xu et al. (2024).
"""

from typing import NamedTuple

from spscanner_rag.results.document_scores import Aggregation, check_aggregation


class DocumentForm(NamedTuple):
    """How the scores of a document's units become its score.

    ``unit`` is what a document is cut into, or None for the units of the command.
    """

    aggregation: Aggregation
    unit: str | None = None


DOCUMENT_FORMS = {
    "FirstP": DocumentForm("first"),
    "FirstP-512": DocumentForm("long", "document:512"),
    "LongP": DocumentForm("long", "document"),
    "LongP-1536": DocumentForm("long", "document:1536"),
    "MaxP": DocumentForm("max"),
    "SumP": DocumentForm("sum"),
}
"""The forms by their names: the score of the first passage, of as much of the document
from its beginning as the retriever's model holds, of the best passage, and the sum. A
number is the tokens that are read from the beginning, as one unit."""


def document_form(name: str) -> DocumentForm:
    """The form of a name of `DOCUMENT_FORMS`, or of an `Aggregation`.

    ``ValueError`` for an unknown name.

    Examples
    --------
    >>> from spscanner_lab.evaluation.aggregation import document_form
    >>> document_form("LongP")
    DocumentForm(aggregation='long', unit='document')
    >>> document_form("mean")
    DocumentForm(aggregation='mean', unit=None)
    """
    if name in DOCUMENT_FORMS:
        return DOCUMENT_FORMS[name]
    try:
        check_aggregation(name)
    except ValueError as error:
        raise ValueError(f"{error}, {', '.join(DOCUMENT_FORMS)}") from None
    return DocumentForm(name)  # type: ignore[arg-type]  # it is checked
