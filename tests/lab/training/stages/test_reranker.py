import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch.nn import functional as F

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.recipe import Recipe
from spscanner_lab.training.stages.pair_objectives import RerankerObjective
from spscanner_lab.training.stages.passage_ranking import ranking
from spscanner_lab.training.stages.reranker import RerankerStage, as_reranker
from spscanner_lab.training.start import RunFiles, train_tokenizer
from spscanner_lab.training.training_run import TrainingRun
from spscanner_rag.baselines.cross_encoder import CrossEncoder
from spscanner_rag.baselines.mamba_reranker import MambaReranker
from spscanner_rag.baselines.pair_reader import END_TOKENS, TEMPLATE, PairReader
from spscanner_rag.baselines.unit_kinds import segmenter_of
from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, new_model
from spscanner_rag.mamba2.config import Mamba2Config

BIRDS = ("heron", "plover", "curlew", "swift", "wren", "robin", "linnet", "osprey")
RECIPE = Recipe(
    stage="reranker",
    rerank_negatives=3,
    sequence_tokens=(64,),
    sequences_per_step=4,
    dtype="float32",
)


def reeds_of(number: int, place: int) -> str:
    """An answer that no other question has."""
    return f"{100 * (number + 1) + place} reeds"


def bird_document(number: int) -> Document:
    """A paragraph for each bird, and one that repeats the first answer.

    The last one is outside the spans of evidence.
    """
    paragraphs = [
        f"The {bird} of lake {number} nests in {reeds_of(number, place)}."
        for place, bird in enumerate(BIRDS)
    ]
    again = f"The heron of lake {number} left {reeds_of(number, 0)}."
    text = "\n\n".join([*paragraphs, again])
    questions = tuple(
        Question(
            f"{number}-{bird}",
            f"How does the {bird} of lake {number} nest?",
            ((text.index(paragraph), text.index(paragraph) + len(paragraph)),),
            answers=(reeds_of(number, place),),
        )
        for place, (bird, paragraph) in enumerate(zip(BIRDS, paragraphs, strict=True))
    )
    return Document(str(number), "lakes", f"Lake {number}", text, questions)


def marked_document(number: int) -> Document:
    """One paragraph has a different verb.

    Even a tiny model learns to recognize it in a few steps.
    """
    builder = BIRDS[number % len(BIRDS)]
    paragraphs = [
        f"The {bird} of lake {number} {'builds' if bird == builder else 'sleeps'}."
        for bird in BIRDS
    ]
    text = "\n\n".join(paragraphs)
    start = text.index(f"The {builder}")
    question = Question(
        str(number),
        "Who builds?",
        ((start, start + len(paragraphs[number % len(BIRDS)])),),
    )
    return Document(str(number), "lakes", f"Lake {number}", text, (question,))


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return [bird_document(number) for number in range(12)]


@pytest.fixture(scope="module")
def start(documents: list[Document]) -> Checkpoint:
    torch.manual_seed(0)
    tokenizer = train_tokenizer((document.text for document in documents), 300)
    config = Mamba2Config(
        d_model=32,
        n_layer=1,
        vocab_size=tokenizer.get_vocab_size(),
        d_state=16,
        headdim=16,
        pad_vocab_size_multiple=1,
    )
    settings = ScannerSettings(match=True, prior=True)
    return Checkpoint(
        model=new_model(config, settings),
        settings=settings,
        tokenizer=tokenizer,
        source="tiny",
        folder=Path("."),
        published=False,
    )


def columns_of(
    documents: list[Document], reader: PairReader, recipe: Recipe
) -> RerankerObjective:
    return RerankerObjective(
        DocumentStore(documents), recipe, segmenter_of("passage"), reader
    )


@pytest.fixture
def columns(documents: list[Document], start: Checkpoint) -> RerankerObjective:
    reader = PairReader(as_reranker(start, 0).tokenizer)
    return columns_of(documents, reader, RECIPE)


def test_a_base_gains_an_end_token_and_loses_its_lexical_channel(
    start: Checkpoint,
) -> None:
    made = as_reranker(start, 0)
    assert start.tokenizer.token_to_id(END_TOKENS[0]) is None  # the base is unchanged
    assert made.tokenizer.token_to_id(END_TOKENS[0]) == start.model.config.vocab_size
    assert made.settings == ScannerSettings()
    own, found = start.model.state_dict(), made.model.state_dict()
    assert set(own) - set(found) == {"match_embedding.weight", "lexical_prior.weight"}
    for name, value in found.items():
        torch.testing.assert_close(value[: len(own[name])], own[name], rtol=0, atol=0)
    again = as_reranker(made, 1)  # it has an end token now
    assert again.model.config == made.model.config
    for name, value in again.model.state_dict().items():
        torch.testing.assert_close(value, found[name], rtol=0, atol=0)


def read(
    columns: RerankerObjective, tokenizer: Tokenizer, number: int
) -> list[tuple[str, str, bool]]:
    """Document, question and label of each pair in a column."""
    found = []
    for place, pair in enumerate(columns.example(number, 64)):
        assert pair.input_ids[-1] == tokenizer.token_to_id(END_TOKENS[0])
        assert pair.positions.tolist() == [len(pair.input_ids) - 1]
        text = tokenizer.decode(pair.input_ids.tolist())
        document, _, query = text.removeprefix("document: ").partition("; query: ")
        assert TEMPLATE.format(document=document, query=query.removesuffix(";")) == text
        found.append((document, query.removesuffix(";"), place == 0))
    return found


def test_a_column_has_the_answer_first_and_near_passages_without_it(
    columns: RerankerObjective, start: Checkpoint
) -> None:
    tokenizer = as_reranker(start, 0).tokenizer
    near = 0
    for number in range(30):
        pairs = read(columns, tokenizer, number)
        assert [label for _, _, label in pairs] == [True, False, False, False]
        assert len({document for document, _, _ in pairs}) == 4
        (query,) = {query for _, query, _ in pairs}
        bird, lake = (
            query.removeprefix("How does the ")
            .removesuffix(" nest?")
            .split(" of lake ")
        )
        right, *wrong = (document for document, _, _ in pairs)
        reeds = reeds_of(int(lake), BIRDS.index(bird))
        assert right == f"The {bird} of lake {lake} nests in {reeds}."
        # these would be false negatives
        assert not any(reeds in document for document in wrong)
        near += sum(f"of lake {lake} " in document for document in wrong)
        assert pairs == read(columns, tokenizer, number)
    assert near > 60  # one random passage in 12 is of the same lake
    assert read(columns, tokenizer, 0) != read(columns, tokenizer, 1)
    for long, short in zip(columns.example(0, 64), columns.example(0, 4), strict=True):
        assert len(short.input_ids) < len(long.input_ids), "only the beginning is read"


def test_random_negatives_stand_beside_near_ones(
    documents: list[Document], start: Checkpoint
) -> None:
    reader = PairReader(as_reranker(start, 0).tokenizer)

    def near(random: int) -> float:
        """How many of three negatives are about the question's lake, on average."""
        columns = columns_of(documents, reader, replace(RECIPE, rerank_random=random))
        same = 0
        for number in range(60):
            (_, query, _), *wrong = read(columns, reader.tokenizer, number)
            lake = query.removesuffix(" nest?").partition(" of ")[2]
            assert len({document for document, _, _ in wrong}) == 3
            same += sum(f"of {lake} " in document for document, _, _ in wrong)
        return same / 60

    few, some, none = near(3), near(2), near(0)
    assert few < 0.6  # one of twelve lakes
    assert none > 1.5
    assert few < some < none


def test_the_loss_is_the_cross_entropy_of_the_column(
    columns: RerankerObjective, start: Checkpoint
) -> None:
    made = as_reranker(start, 0)
    model = made.model
    examples = [columns.example(number, 64) for number in range(3)]
    expected = []
    for example in examples:
        logits = []
        for pair in example:
            hidden, _ = model(torch.from_numpy(pair.input_ids)[None].long())
            logits.append(model.score(hidden[0, -1:])[0])
        expected.append(F.cross_entropy(torch.stack(logits)[None], torch.tensor([0])))
    parts = list(columns.losses(model, examples, range(len(examples))))
    loss = torch.stack(parts).sum()
    torch.testing.assert_close(loss, torch.stack(expected).mean(), rtol=1e-5, atol=1e-5)


def written(documents: list[Document], path: Path) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for document in documents:
            file.write(json.dumps(record_of(document)) + "\n")
    return path


def record_of(document: Document) -> dict[str, object]:
    questions = [
        {
            "qid": question.qid,
            "question": question.text,
            "evidence": question.evidence,
            "answers": question.answers,
        }
        for question in document.questions
    ]
    return {
        "doc_id": document.doc_id,
        "source": document.source,
        "title": document.title,
        "text": document.text,
        "questions": questions,
    }


def scores(run: TrainingRun, question: str, texts: list[str]) -> NDArray[np.float32]:
    """The scores that a stage's trained model gives texts."""
    assert isinstance(run.stage, RerankerStage)
    with torch.no_grad():
        return run.stage.passages.score(run.trainer.model.eval(), question, texts)


def shape_of(layer: dict[str, object]) -> dict[str, object]:
    return {"d_model": 32, "n_layer": 2, "ssm_cfg": layer}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    folder = tmp_path_factory.mktemp("reranker")
    shape = shape_of({"layer": "Mamba2", "d_state": 16, "headdim": 16})
    (folder / "shape.json").write_text(json.dumps(shape))
    data = written([marked_document(n) for n in range(24)], folder / "train.jsonl")
    held_out = [marked_document(n) for n in range(100, 108)]
    validation = written(held_out, folder / "dev.jsonl")
    return RunFiles([data], [validation], folder / "out", None, folder / "shape.json")


@pytest.mark.slow
def test_a_run_gives_a_reranker_that_ranks_better_than_before(files: RunFiles) -> None:
    recipe = replace(
        RECIPE,
        steps=80,
        learning_rate=5e-3,
        sequences_per_step=8,
        vocab_size=300,
        validate_every=100,
        final_validation_questions=16,
        save_every=100,
    )
    run = TrainingRun(files, recipe, torch.device("cpu"))
    before = run.stage.validate(
        replace(run.start, model=run.start.model.eval()), final=True
    )
    losses: list[float] = []
    after = run.train(
        lambda report: losses.append(report.loss), lambda step, validation: None
    )
    assert before is not None
    assert after is not None
    # the loss of a model that knows nothing yet
    assert losses[0] == pytest.approx(np.log(4), abs=0.2)
    assert np.mean(losses[-10:]) < 0.9
    assert after.choice > before.choice + 0.2
    assert after.measures["lakes"].keys() == {"mrr@10", "recall@1", "recall@10"}
    card = (files.out / "README.md").read_text()
    assert "| lakes | " in card
    assert "MambaReranker(" in card
    loaded = MambaReranker(files.out, "passage", device="cpu", dtype="float32")
    texts = marked_document(203).text.split("\n\n")
    ours, saved = (
        scores(run, "Who builds?", texts),
        loaded.score_texts("Who builds?", texts),
    )
    assert np.ptp(ours) > 0.1
    np.testing.assert_allclose(saved, ours, atol=0.05)  # saved in bfloat16


def test_columns_need_passages_without_the_answer(start: Checkpoint) -> None:
    text = "The heron nests."
    single = Document(
        "d", "s", "", text, (Question("q", "Who nests?", ((0, len(text)),)),)
    )
    with pytest.raises(ValueError, match="has a passage without its answer"):
        columns_of(
            [single], PairReader(as_reranker(start, 0).tokenizer), RECIPE
        ).example(0, 64)


def test_validation_counts_what_bm25_did_not_find_as_not_found() -> None:
    paragraphs = [f"The robin sang {n}." for n in range(60)] + ["Nothing."]
    text = "\n\n".join(paragraphs)
    at = text.index("Nothing")
    question = Question("q", "Who is the robin?", ((at, at + 7),))
    document = Document("d", "s", "", text, (question,))
    names = RerankerStage.names
    found = ranking(
        lambda _, texts: np.zeros(len(texts), np.float32),
        segmenter_of("passage"),
        document,
        question,
        names,
    )
    assert [found[name] for name in names] == [0.0, 0.0, 0.0]


def test_mamba_1_is_trained_saved_and_read(files: RunFiles, tmp_path: Path) -> None:
    (tmp_path / "shape.json").write_text(json.dumps(shape_of({"dt_rank": 3})))
    own = replace(
        files, config=tmp_path / "shape.json", out=tmp_path / "out", validation=[]
    )
    recipe = replace(RECIPE, steps=2, vocab_size=300, schedule="linear")
    run = TrainingRun(own, recipe, torch.device("cpu"))
    run.train(lambda report: None, lambda step, validation: None)
    assert "| Architecture | Mamba-1, 2 layers" in (own.out / "README.md").read_text()
    texts = ["The wren builds.", "The wren of lake 3 sleeps. " * 2]
    loaded = MambaReranker(own.out, "passage", device="cpu", dtype="float32")
    # saved in bfloat16
    np.testing.assert_allclose(
        loaded.score_texts("Who builds?", texts),
        scores(run, "Who builds?", texts),
        atol=0.05,
    )
    further = replace(own, config=None, base=str(own.out), out=tmp_path / "further")
    assert (
        TrainingRun(further, recipe, torch.device("cpu")).start.model.config.mixer
        is not None
    )
    with pytest.raises(ValueError, match="Mamba-1 is not supported; expected Mamba2"):
        TrainingRun(further, replace(recipe, stage="evidence"), torch.device("cpu"))


# a reranker, an encoder, and a classifier of something else
@pytest.mark.parametrize("labels", [1, None, 3])
def test_a_transformer_is_trained_as_a_reranker_is(
    labels: int | None,
    files: RunFiles,
    save_bert: Callable[[Path, int | None], Path],
    tmp_path: Path,
) -> None:
    pytest.importorskip("sentence_transformers")
    base = save_bert(tmp_path / "bert", labels)
    own = replace(files, base=str(base), config=None, out=tmp_path / "out")
    recipe = replace(
        RECIPE,
        steps=12,
        learning_rate=3e-3,
        warmup_share=0.1,
        schedule="linear",
        tokens_per_pass=100,
        final_validation_questions=2,
        validate_every=100,
    )
    losses: list[float] = []
    run = TrainingRun(own, recipe, torch.device("cpu"))
    after = run.train(
        lambda report: losses.append(report.loss), lambda step, validation: None
    )
    assert np.mean(losses[-4:]) < np.mean(losses[:4])
    assert after is not None
    assert after.measures["lakes"].keys() == {"mrr@10", "recall@1", "recall@10"}
    card = (own.out / "README.md").read_text()
    assert "| Architecture | BertForSequenceClassification, 1 layers" in card
    assert "import CrossEncoder" in card
    texts = ["He signed the treaty.", "The captain left. " * 20, "\ud800"]
    loaded = CrossEncoder(own.out, "passage", device="cpu")
    found = loaded.score_texts("Who signed?", texts)
    assert np.ptp(found) > 1e-3
    np.testing.assert_allclose(found, scores(run, "Who signed?", texts), atol=1e-5)
    further = replace(own, base=str(own.out), out=tmp_path / "further")
    record = TrainingRun(further, recipe, torch.device("cpu")).start.settings.training
    assert record["steps"] == 12
