"""Fit weights for a scanner's logits, an encoder's cosines and a cross-reader's logits.

Save the checkpoint.
"""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import softplus

from spscanner_lab.evidence.calibration import fit_platt
from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.evidence.sampling import by_document, sample_questions
from spscanner_lab.training import Notify
from spscanner_lab.training.cross_reader import CrossTraining
from spscanner_lab.training.encoder import EncoderTraining
from spscanner_lab.training.encoder_data import read_sources
from spscanner_lab.training.finetuning import Finetuning
from spscanner_lab.training.model_card import write_model_card
from spscanner_rag.checkpoint.encoder_file import find_encoder
from spscanner_rag.checkpoint.save import quantized, save_checkpoint
from spscanner_rag.encoder.answer_evidence import answer_evidence
from spscanner_rag.encoder.bert import restored
from spscanner_rag.encoder.cross_reader import CrossReader
from spscanner_rag.encoder.meaning import LOWEST, Meaning
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.unrelated import unrelated_cosines
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.scanner import Scanner
from spscanner_rag.text.folding import fold_units, folded

FIT_STEPS = 150
FIT_RATE = 0.05
_FEATURES = ("scanner", "sentence", "near", "wide")


@dataclass(frozen=True, slots=True)
class EncoderNumbers:
    """The numbers of an encoder's training and weighting.

    With 0 ``steps`` the encoder is taken as it is, and with 0 ``cross_steps`` as well,
    so is its cross-reader, if any.
    """

    steps: int = 600
    cross_steps: int = 0
    documents: int = 100  # at most, of each source, to train on
    questions: int = 8  # at most, of each source, to weigh on
    seed: int = 0


class Fitted(NamedTuple):
    """A question's sentences, their scores and whether they are relevant."""

    source: str
    scanner: NDArray[np.float32]
    cosines: NDArray[np.float32]
    relevant: NDArray[np.bool_]
    query: str = ""
    sentences: Sequence[str] = ()


def read_for_fit(
    scanner: Scanner, meaning: Meaning, documents: Sequence[Document], per_source: int
) -> tuple[list[Fitted], list[Fitted]]:
    """Score the sentences of held-out questions with a scanner and an encoder.

    Up to ``per_source`` questions of a source are read, answered or not. Then ask each
    document a question about a document of another source, which it does not answer.
    """
    read = list[Fitted]()
    elsewhere = list[Fitted]()
    samples = {
        kind: sample_questions(documents, per_source, answerable=kind)
        for kind in (True, False)
    }
    for answerable, sample in samples.items():
        for document, questions in by_document(chain.from_iterable(sample.values())):
            found = _read(scanner, meaning, document, questions, answerable)
            read += [one for one in found if one.relevant.any() or not answerable]
    asked = [
        (document, some[0])
        for own in samples[True].values()
        for document, some in by_document(own)
    ]
    for number, (document, _) in enumerate(asked):
        other, question = asked[(number + len(asked) // 2) % len(asked)]
        if other.source != document.source:
            elsewhere += _read(scanner, meaning, document, [question], answered=False)
    return read, elsewhere


def _read(
    scanner: Scanner,
    meaning: Meaning,
    document: Document,
    questions: Sequence[Question],
    answered: bool,
) -> Iterator[Fitted]:
    units = fold_units(scanner.units_of(document.text))
    spans = Spans.of(units)
    sentences = [unit.model_text for unit in units]
    vectors = meaning.vectors(sentences)
    requests = [(question.text, document.text, units) for question in questions]
    for question, scores in zip(
        questions, scanner.score_units_many(requests), strict=True
    ):
        relevant = relevant_units(
            spans.starts, spans.ends, question.evidence if answered else ()
        )
        cosines = meaning.cosines(question.text, vectors)
        yield Fitted(
            document.source, scores.logits, cosines, relevant, question.text, sentences
        )


def fitted_weights(
    read: Sequence[Fitted],
    start: MeaningWeights,
    elsewhere: Sequence[Fitted] = (),
    cross: CrossReader | None = None,
) -> MeaningWeights:
    """Fit the weights of an encoder's cosines beside a scanner's logits.

    If there is a cross-reader, its logits are weighed as well. The weights minimize the
    softmax loss of the relevant sentences, with equal weight for every source. They are
    then scaled and shifted so that the sigmoid of a logit is the share of relevant
    sentences (Platt scaling). Raises ``ValueError`` if no sentence is relevant.
    """
    answered = [one for one in read if one.relevant.any()]
    if not answered:
        raise ValueError(
            "got no question with evidence to fit the weights on; expected held-out"
            " documents with some"
        )
    relevant = np.concatenate([one.relevant for one in read])
    parts = [MeaningWeights(**{"scanner": 0.0} | {name: 1.0}) for name in _FEATURES]
    scores = [
        [part.logits(one.scanner, one.cosines) for part in parts] for one in answered
    ]
    found = _least_loss(
        [np.stack(own, axis=1) for own in scores], answered, (0.3, 20.0, 0.0, 0.0)
    )
    weights = replace(
        start, **dict(zip(_FEATURES, found, strict=True)), bias=0.0, cross=0.0
    )

    def logits(one: Fitted) -> NDArray[np.float32]:
        return weights.logits(one.scanner, one.cosines)

    # Calibrated first without the cross-reader, which reads what these logits select,
    # and then with it.
    weights = _scaled(
        weights, *fit_platt(np.concatenate([logits(one) for one in read]), relevant)
    )
    everything = [*read, *elsewhere]
    added = dict[int, NDArray[np.float32]]()
    final = {id(one): logits(one) for one in everything}
    if cross is not None:
        added = {
            id(one): cross.logits(folded(one.query), one.sentences, final[id(one)])
            for one in everything
        }
        clipped = {
            number: np.asarray(np.maximum(own, LOWEST), np.float32)
            for number, own in added.items()
        }
        columns = [
            np.stack([final[id(one)], clipped[id(one)]], axis=1) for one in answered
        ]
        own, beside = _least_loss(columns, answered, (1.0, 1.0))
        both = [own * final[id(one)] + beside * clipped[id(one)] for one in read]
        scale, shift = fit_platt(np.concatenate(both), relevant)
        weights = replace(_scaled(weights, scale * own, shift), cross=scale * beside)
    return replace(weights, **_answer_weights(everything, added))


def _scaled(weights: MeaningWeights, scale: float, shift: float) -> MeaningWeights:
    scaled = {name: scale * getattr(weights, name) for name in (*_FEATURES, "bias")}
    return replace(weights, **scaled | {"bias": scaled["bias"] + shift})


def _least_loss(
    columns: Sequence[NDArray[np.float32]],
    answered: Sequence[Fitted],
    start: Sequence[float],
) -> list[float]:
    """The factors for columns of scores that give the least softmax loss.

    ``columns`` are (sentences, k) for each question, and the result has k factors.
    """
    unit = torch.tensor([max(1.0, abs(value)) for value in start])
    weights = (torch.tensor(start) / unit).requires_grad_()
    optimizer = torch.optim.Adam([weights], FIT_RATE)
    counts = Counter(one.source for one in answered)
    read = [
        (torch.from_numpy(own), torch.from_numpy(one.relevant), counts[one.source])
        for own, one in zip(columns, answered, strict=True)
    ]
    for _ in range(FIT_STEPS):
        losses = []
        for scores, relevant, count in read:
            logits = scores @ (weights * unit)
            losses.append(
                softplus(logits[~relevant].logsumexp(0) - logits[relevant]).mean()
                / count
            )
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return [float(value) for value in weights.detach() * unit]


def _answer_weights(
    read: Iterable[Fitted], added: dict[int, NDArray[np.float32]]
) -> dict[str, float]:
    """The weights that turn `answer_evidence` into the probability that a text answers.

    ``added`` has the cross-reader's logits. Texts that answer are compared with those
    that do not and, since these are few, with themselves without the answer. Empty if
    there are too few, or if the score does not tell.
    """
    scores = list[float]()
    answers = list[bool]()
    for one in read:
        again = added.get(id(one))
        whole = np.ones_like(one.relevant)
        rest = ~one.relevant
        # twice, so that about half of all answer
        kinds = [(whole, True)] * 2 if one.relevant.any() else []
        for some, answer in [*kinds, (rest, False)] if rest.any() else kinds:
            scores.append(
                answer_evidence(
                    one.cosines[some], None if again is None else again[some]
                )
            )
            answers.append(answer)
    try:
        scale, shift = fit_platt(np.array(scores), answers)
    except ValueError:  # one kind only, or perfectly separable
        return {}
    return {"answer_scale": scale, "answer_bias": shift} if scale > 0 else {}


def put_into_checkpoint(
    model: str | Path,
    base: str | None,
    documents: Sequence[Document],
    out: Path,
    numbers: EncoderNumbers,
    notify: Notify,
) -> None:
    """Train an encoder and a cross-reader, and put them into a checkpoint.

    They are weighed beside a scanner and saved with it to the checkpoint ``out``.
    An interrupted training resumes from the states in
    ``out``, which are removed at the end. Errors in model, base and documents are
    raised before anything is written.
    """
    scanner = Scanner.from_pretrained(base, dtype="float32", device="cpu", encoder=None)
    file, digest = find_encoder(model)
    notify("cutting and tokenizing the documents")
    sources, aside = read_sources(
        documents,
        file.loaded(digest, "cpu", torch.float32),
        numbers.documents,
        numbers.seed,
    )
    out.mkdir(parents=True, exist_ok=True)

    def run(training: Finetuning, state: Path, steps: int) -> int:
        losses = list[float]()
        trainer = training.trainer(state, steps)
        for report in trainer.run():
            losses.append(report.loss)
            if report.step % 20 == 0:
                notify(
                    f"step {report.step:,} of {steps:,}  loss"
                    f" {np.mean(losses[-20:]):.3f}"
                )
        return trainer.step  # more than ``steps`` if a saved state had more

    states = out / "encoder_training", out / "cross_training"
    steps = numbers.steps
    if steps:
        training = EncoderTraining(file, sources, numbers.seed)
        steps = run(training, states[0], steps)
        file = file._replace(weights=training.trained(), cross=None)
    cross_steps = numbers.cross_steps
    if cross_steps:
        second = CrossTraining(file, sources, numbers.seed)
        cross_steps = run(second, states[1], cross_steps)
        file = file._replace(cross=second.cross())
    # as it will be stored
    file = file._replace(weights=quantized(restored(file.weights)))
    if file.cross is not None:
        file = file._replace(cross=quantized(restored(file.cross)))
    encoder = file.loaded("", "cpu", torch.float32)
    cross = file.loaded_cross("cpu", torch.float32)
    mean, deviation = unrelated_cosines(encoder)
    start = MeaningWeights(mean=mean, deviation=deviation)
    notify(f"reading up to {numbers.questions} held-out questions of each source")
    read, elsewhere = read_for_fit(
        scanner, Meaning(encoder, start), aside, numbers.questions
    )
    weights = fitted_weights(read, start, elsewhere, cross)
    record = {
        "started_from": Path(model).name if Path(model).is_dir() else str(model),
        "steps": steps,
        "cross_steps": cross_steps,
        "seed": numbers.seed,
        "documents_by_source": {name: len(source) for name, source in sources.items()},
        "weighed_on": dict(Counter(one.source for one in read)),
    }
    checkpoint = scanner.checkpoint
    trained = checkpoint.settings.training | {"encoder": record}
    settings = replace(checkpoint.settings, meaning=weights, training=trained)
    words = checkpoint.word_vectors
    save_checkpoint(
        out,
        checkpoint.model,
        settings,
        checkpoint.tokenizer,
        torch.bfloat16,
        word_vectors=words,
        encoder=file,
    )
    if "stage" in trained:
        write_model_card(out, checkpoint.model, settings, words)
    for state in states:
        shutil.rmtree(state, ignore_errors=True)
    notify(f"{out}: weights {weights}")
