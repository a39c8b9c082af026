from dataclasses import replace
from pathlib import Path

import pytest

from spscanner_rag.evidence.questions import read_documents
from spscanner_rag.training.pseudo.pseudo_file import pseudo_question_file
from spscanner_rag.training.recipe import Recipe

STORY = "In {0} Captain {1} signed the treaty of {1} with the council, and it rained in {1} all day. " * 10


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    paths = []
    for name, town in (("a", "Ayr"), ("b", "Oban")):
        paths.append(tmp_path / f"{name}.txt")
        paths[-1].write_text("\n\x1e\n".join(STORY.format(year, town) for year in (1901, 1902)))
    return paths


def test_the_file_is_a_question_file_made_once(tmp_path: Path, texts: list[Path]) -> None:
    messages: list[str] = []
    path = pseudo_question_file(texts, Recipe(), tmp_path / "made", messages.append)
    documents = list(read_documents([path]))
    assert [document.doc_id for document in documents] == ["a-1.1", "a-2.1", "b-1.1", "b-2.1"]
    assert {document.source for document in documents} == {"a", "b"}
    assert all(document.questions for document in documents)
    assert len(messages) == 2
    for recipe in (Recipe(), Recipe(learning_rate=1.0, pseudo_weight=0.5)):
        assert pseudo_question_file(texts, recipe, tmp_path / "made", messages.append) == path
    assert len(messages) == 2
    for recipe in (Recipe(seed=1), replace(Recipe(), pseudo_masked=1)):
        assert pseudo_question_file(texts, recipe, tmp_path / "made") != path


def test_a_killed_run_makes_it_again(tmp_path: Path, texts: list[Path]) -> None:
    def killed(message: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pseudo_question_file(texts, Recipe(), tmp_path / "made", killed)
    path = pseudo_question_file(texts, Recipe(), tmp_path / "made")
    assert path.read_bytes() == pseudo_question_file(texts, Recipe(), tmp_path / "other").read_bytes()


def test_texts_that_give_no_question_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Too short.")
    with pytest.raises(ValueError, match=r"a\.txt: no pseudo-question could be made"):
        pseudo_question_file([tmp_path / "a.txt"], Recipe(), tmp_path / "made")
    assert list((tmp_path / "made").iterdir()) == []
