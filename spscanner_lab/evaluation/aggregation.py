"""How a document's score comes from its passages, by the names of the literature.

The forms are those of Dai and Callan (2019) and of surveys of long-document retrieval.
A passage is a unit: a scanner's are sentences, other retrievers' as ``--unit`` says.
"""

from typing import NamedTuple

from spscanner_rag.results.document_scores import Aggregation, check_aggregation


class DocumentForm(NamedTuple):
    """How the scores of a document's units become its score.

    With ``reads_whole``, a document is read as one unit, from its beginning.
    """

    aggregation: Aggregation
    reads_whole: bool = False


DOCUMENT_FORMS = {
    "FirstP": DocumentForm("first"),
    "LongP": DocumentForm("long", reads_whole=True),
    "MaxP": DocumentForm("max"),
    "SumP": DocumentForm("sum"),
}
"""The forms by their names: the score of the first passage, of as much of the document
from its beginning as the retriever's model holds, of the best passage, and the sum."""


def document_form(name: str) -> DocumentForm:
    """The form of a name of `DOCUMENT_FORMS`, or of an `Aggregation`.

    ``ValueError`` for an unknown name.

    Examples
    --------
    >>> from spscanner_lab.evaluation.aggregation import document_form
    >>> document_form("LongP")
    DocumentForm(aggregation='long', reads_whole=True)
    >>> document_form("mean")
    DocumentForm(aggregation='mean', reads_whole=False)
    """
    if name in DOCUMENT_FORMS:
        return DOCUMENT_FORMS[name]
    try:
        check_aggregation(name)
    except ValueError as error:
        raise ValueError(f"{error}, {', '.join(DOCUMENT_FORMS)}") from None
    return DocumentForm(name)  # type: ignore[arg-type]  # it is checked
