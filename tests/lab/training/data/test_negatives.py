import pytest

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.negatives import has_answer, labels_of, related


def test_pieces_of_a_text_and_documents_of_one_title_are_related() -> None:
    documents = [
        Document("novel-1.1", "novels", "", "", ()),
        Document("novel-1.2", "novels", "", "", ()),
        Document("novel-2.1", "novels", "", "", ()),
        Document("a", "novels", "The House", "", ()),
        Document("b", "novels", "the  house!", "", ()),
        Document("c", "novels", "The Horse", "", ()),
    ]
    found = {
        (i, j)
        for i in range(6)
        for j in range(6)
        if related(documents[i], documents[j])
    }
    assert found == {(i, i) for i in range(6)} | {(0, 1), (1, 0), (3, 4), (4, 3)}


@pytest.mark.parametrize(
    ("answers", "text", "found"),
    [
        (("2008",), "It happened in 2008.", True),
        (("2008",), "It happened in 12008.", False),
        (("the sun",), "Was it THE SUN?", True),
        (("$5 (each)",), "They cost $5 (each).", True),
        (("", " "), "Anything.", False),
        ((), "Anything.", False),
    ],
)
def test_an_answer_is_found_in_whole_words(
    answers: tuple[str, ...], text: str, found: bool
) -> None:
    assert has_answer(text, "news", Question("q", "?", (), answers=answers)) == found


def test_an_answer_to_questions_about_many_documents_is_a_label() -> None:
    def asked(number: int, source: str) -> Document:
        answers = (
            ("Increased.", f"by {number} %") if number < 6 else (f"by {number} %",)
        )
        return Document(
            f"{source}-{number}",
            source,
            "",
            "",
            (Question("q", "?", (), answers=answers),),
        )

    labels = labels_of(
        DocumentStore([asked(n, "trials") for n in range(100)] + [asked(0, "news")])
    )
    question = Question("q", "?", (), answers=("increased", "by 3 %"))
    assert not has_answer("It increased.", "trials", question, labels)
    assert has_answer("It increased.", "news", question, labels)
    assert has_answer("It increased by 3 %, they say.", "trials", question, labels)
