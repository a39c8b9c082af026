"""Annotation: a model that knows the evidence gives it back, one that does not loses the question."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spscanner_rag.lab.evidence.questions import read_documents
from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.lab.synthesis import annotation
from spscanner_rag.lab.synthesis.annotation import AnnotationModels, Mode, annotate
from spscanner_rag.lab.synthesis.conversation import Model
from spscanner_rag.lab.synthesis.making import RunOptions
from spscanner_rag.lab.synthesis.scripted import SECTION

from .conftest import story

OPTIONS = RunOptions(sources=())


class Knowing:
    """A model that knows which sentences a question needs, and its answer if it sees them."""

    def __init__(self, knows: Callable[[str], bool] = lambda question: True, narrow: bool = True) -> None:
        self.knows, self.narrow, self.calls = knows, narrow, 0

    def __call__(self, prompt: str) -> str:
        self.calls += 1
        parts = {title: text for title, _, text in SECTION.findall(prompt)}
        if "REFERENCE ANSWER" in parts:
            return "DECISION: NO"
        year = parts["QUESTION"].split()[-1].rstrip("?")
        lines = parts["SENTENCES"].splitlines()
        found = [n for n, line in enumerate(lines) if f"In year {year} " in line] if self.knows(year) else []
        if len(lines) <= 20 and not self.narrow and "Answer the question" not in prompt:
            found = []
        if "Answer the question from these sentences alone" in prompt:
            if not found:
                return "ANSWERABLE: NO\nANSWER: none"
            return f"ANSWERABLE: YES\nANSWER: the keeper of year {year}"
        return f"RELEVANT: {'YES' if found else 'NO'}\nINDICES: {', '.join(map(str, found)) or 'NONE'}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two documents of 250 sentences with three questions each."""
    path, lines = tmp_path / "questions.jsonl", []
    for number in range(2):
        text, questions = story(number, 250), []
        for year in (7, 120, 244):
            begin = text.index(f"In year {year} ")
            end = text.index(".", begin) + 1
            questions.append(
                {
                    "qid": f"{number}-{year}",
                    "question": f"Who is told of in year {year}?",
                    "answers": [f"The keeper of year {year}"],
                    "evidence": [[begin, end]],
                }
            )
        lines.append({"doc_id": f"d{number}", "source": "s", "text": text, "questions": questions})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def run(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, object]]:
    def run(labeller: object, mode: Mode = "windows", out: str = "out", **more: object) -> dict[str, object]:
        models = {
            "label": labeller,
            "strong": more.get("stronger", labeller),
            "check": more.get("checker", Knowing()),
        }
        monkeypatch.setattr(
            annotation, "model_of", lambda name, form: Model(LanguageModel(name, models[name]), "keywords")
        )
        (tmp_path / out).mkdir(exist_ok=True)
        options = more.get("options", OPTIONS)
        return annotate(
            [data], tmp_path / out, AnnotationModels("label", "strong", "check"), options, mode=mode
        )

    return run


def evidence(path: Path) -> dict[str, object]:
    return {question.qid: question.evidence for each in read_documents([path]) for question in each.questions}


@pytest.mark.parametrize("mode", ["windows", "selection"])
def test_what_the_model_knows_is_reproduced(
    run: Callable[..., dict[str, object]], data: Path, tmp_path: Path, mode: Mode
) -> None:
    summary = run(Knowing(), mode)
    assert (summary["questions"], summary["documents"], summary["dropped"]) == (6, 2, {})
    assert evidence(tmp_path / "out" / "test.jsonl") == evidence(data)
    line = json.loads((tmp_path / "out" / "test.jsonl").read_text().splitlines()[0])
    assert line["annotation"] == {"mode": mode, "labeller": "label", "stronger": "strong", "checker": "check"}
    assert line["questions"][0]["annotation"]["sentences"] == 1


def test_the_stronger_model_sees_wider_windows(
    run: Callable[..., dict[str, object]], data: Path, tmp_path: Path
) -> None:
    stronger = Knowing()
    assert run(Knowing(narrow=False), stronger=stronger)["questions"] == 6
    assert stronger.calls == 6 * 2  # windows of 200 in 250 sentences
    assert evidence(tmp_path / "out" / "test.jsonl") == evidence(data)


@pytest.mark.parametrize("mode", ["windows", "selection"])
def test_what_the_model_does_not_know_is_discarded(
    run: Callable[..., dict[str, object]], tmp_path: Path, mode: Mode
) -> None:
    summary = run(Knowing(lambda year: year == "120"), mode)
    assert summary["questions"] == 2
    assert summary["dropped"] == {"no sentence is needed": 4}
    assert run(Knowing(lambda year: False), mode, out="none")["questions"] == 0
    assert not (tmp_path / "none" / "test.jsonl").exists()


def test_an_answer_that_is_not_reproduced(run: Callable[..., dict[str, object]]) -> None:
    summary = run(
        Knowing(),
        checker=lambda prompt: "DECISION: NO" if "REFERENCE" in prompt else "ANSWERABLE: YES\nANSWER: a dog",
    )
    assert summary["dropped"] == {"the answer was not reproduced": 6}
    assert summary["questions"] == 0


def test_a_run_that_was_stopped_goes_on(run: Callable[..., dict[str, object]], tmp_path: Path) -> None:
    model = Knowing()
    stopped = run(model, options=RunOptions(sources=(), max_requests=60))
    assert "limit of 60 requests" in str(stopped["stopped"])
    before = model.calls
    whole = run(model)
    assert (whole["questions"], whole["stopped"]) == (6, "")
    assert run(model)["requests"] == whole["requests"]
    assert before < model.calls
