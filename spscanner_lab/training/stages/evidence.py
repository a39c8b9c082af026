"""The evidence stage, which trains a scanner on questions with known evidence."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from spscanner_lab.evidence.calibration import fit_platt
from spscanner_lab.evidence.metrics import CUTOFFS, ranking_metrics
from spscanner_lab.evidence.questions import (
    Document,
    QuestionOnDocument,
    read_documents,
    refuse_names_of_means,
)
from spscanner_lab.evidence.sampling import by_document, is_held_out, sample_questions
from spscanner_lab.training import Notify
from spscanner_lab.training.data.decontamination import find_shared
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.examples import Example, ExampleSource
from spscanner_lab.training.data.question_draw import QuestionDraw
from spscanner_lab.training.loop import Objective
from spscanner_lab.training.model_card import write_model_card
from spscanner_lab.training.recipe import Recipe
from spscanner_lab.training.start import RunFiles, start_checkpoint
from spscanner_rag.checkpoint import Checkpoint
from spscanner_rag.checkpoint.load import in_torch
from spscanner_rag.checkpoint.save import save_checkpoint
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import read_logits
from spscanner_rag.mamba2.token_sequences import (
    SequenceBatch,
    TokenSequence,
    group_by_length,
)
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.results.ranking import sigmoid
from spscanner_rag.scanner import Scanner


def labelled_logits(
    scanner: Scanner, sample: Iterable[QuestionOnDocument]
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.bool_]]]:
    """Logits of a whole document for each question with evidence in units.

    With each, which units are relevant: both are (units,).
    """
    for document, questions in by_document(sample):
        pairs = [(question.text, document.text) for question in questions]
        results = scanner.scan_many(pairs)
        for question, result in zip(questions, results, strict=True):
            relevant = relevant_units(result.starts, result.ends, question.evidence)
            if relevant.any():
                yield result.logits, relevant


def calibrate(
    scanner: Scanner, sample: Iterable[QuestionOnDocument]
) -> tuple[float, float] | None:
    """Scale and shift a scanner's logits by Platt scaling, in place, in its head.

    No rank changes.

    Training reads short stretches, most with evidence, and weights relevant sentences
    more, so without this the probabilities of a whole document come out too high.
    Returns scale and shift, or None, changing nothing, if there is too little to learn
    from or relevant sentences do not score higher.
    """
    labelled = list(labelled_logits(scanner, sample))
    try:
        logits, relevant = map(np.concatenate, zip(*labelled, strict=True))
        scale, shift = fit_platt(logits, relevant)
    except ValueError:  # no sentences, one kind only, or perfectly separable
        return None
    if scale <= 0:
        return None
    model = in_torch(scanner.checkpoint).model
    assert model.binary_head is not None
    with torch.no_grad():
        parts = (
            model.binary_head,
            model.lexical_prior,
            model.surroundings,
            model.soft_prior,
        )
        for part in filter(None, parts):
            for parameter in part.parameters():
                parameter.mul_(scale)
        model.binary_head.bias.add_(shift)
    return scale, shift


def fitted_shift(
    logits: NDArray[np.floating], relevant: NDArray[np.bool_], positive_weight: float
) -> float:
    """The b with the least weighted log loss of ``sigmoid(logits + b)``, (sentences,).

    0 if all are of one kind.

    A calibrated base's logits are too low for the training loss by this constant. The
    loss adds it; otherwise the first steps would only raise all logits and damage the
    base.
    """
    if relevant.all() or not relevant.any() or not positive_weight > 0:
        return 0.0
    x = logits.astype(np.float64)
    weights = np.where(relevant, positive_weight, 1.0)
    # the loss is convex in b, and its slope is negative at the lower end and positive
    # at the upper
    reach = (
        abs(x).max()
        + abs(np.log(weights[relevant].sum() / weights[~relevant].sum()))
        + 1.0
    )
    low = -reach
    high = reach
    for _ in range(60):
        middle = (low + high) / 2
        if (weights * (sigmoid(x + middle) - relevant)).sum() < 0:
            low = middle
        else:
            high = middle
    return float((low + high) / 2)


class EvidenceObjective(ExampleSource):
    """Learns the relevance of sentences from labels.

    The binary loss adds ``shift`` to the logits.
    """

    splits = True
    shift = 0.0

    def tokens(self, example: Example) -> int:
        """The number of tokens in the sequence."""
        return len(example.sequence.input_ids)

    def losses(
        self,
        model: ScannerModel,
        examples: Sequence[Example],
        numbers: Sequence[int],
    ) -> Iterator[Tensor]:
        """The parts of a step's loss, one for each pass over examples with numbers."""
        lengths = [self.tokens(examples[number]) for number in numbers]
        most_tokens = self.recipe.tokens_per_pass
        for indices in passes(lengths, most_tokens, model.kernels.packs):
            members = [numbers[index] for index in indices]
            yield evidence_loss(model, examples, members, self.recipe, self.shift)


def evidence_loss(
    model: ScannerModel,
    examples: Sequence[Example],
    members: Sequence[int],
    recipe: Recipe,
    shift: float = 0.0,
) -> Tensor:
    """Binary and ranking loss of the ``members`` of a step's examples, in one pass."""
    units = sum(len(example.relevant) for example in examples)
    weight = torch.tensor(recipe.positive_weight, device=model.device)
    loss = torch.zeros((), device=model.device)
    pass_examples = [examples[number] for number in members]
    sequences = [example.sequence for example in pass_examples]
    ends = unit_states(model, sequences, recipe.dtype)
    for example, states in zip(pass_examples, ends, strict=True):
        prior = _on_device(model, example.sequence.prior)
        logits = model.score(states, prior)  # (units,)
        labels = example.relevant.astype(np.float32)
        relevant = torch.from_numpy(labels).to(model.device)  # (units,)
        # the ranking loss is without the shift
        binary = F.binary_cross_entropy_with_logits(
            logits + shift, relevant, pos_weight=weight, reduction="sum"
        )
        loss = loss + binary / units
        # without evidence there is no ranking to learn
        if recipe.ranking_weight and example.relevant.any():
            ranking = -(logits.log_softmax(0) * relevant).sum() / relevant.sum()
            loss = loss + recipe.ranking_weight * ranking / len(examples)
    return loss


def passes(lengths: Sequence[int], most_tokens: int, packs: bool) -> list[list[int]]:
    """Divide sequences into passes.

    A pass has one sequence, or up to ``most_tokens`` with padding (none if the kernel
    packs).
    """
    if not packs:
        return group_by_length(lengths, most_tokens)
    numbers_by_pass: list[list[int]] = []
    total = 0
    for number, tokens in enumerate(lengths):
        total += tokens
        if not numbers_by_pass or total > most_tokens:
            numbers_by_pass.append([])
            total = tokens
        numbers_by_pass[-1].append(number)
    return numbers_by_pass


def unit_states(
    model: ScannerModel, sequences: Sequence[TokenSequence], dtype: str
) -> list[Tensor]:
    """Hidden states at the unit ends of sequences read in one pass.

    (units, d_model) each, float32.

    ``dtype`` is that of matrix products. Sequences are packed into one row if the
    kernels support it, else padded.
    """
    batch = SequenceBatch.of(sequences, packed=model.kernels.packs)
    numbers = _on_device(model, batch.numbers)
    if numbers is not None:
        numbers = numbers[None]
    with torch.autocast(model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
        hidden, _ = model(
            _on_device(model, batch.input_ids),
            None,
            _on_device(model, batch.match_classes),
            match_features=_on_device(model, batch.match_features),
            sequence_index=numbers,
            at=(
                _on_device(model, batch.unit_rows),
                _on_device(model, batch.unit_tokens),
            ),
        )
    units = [len(sequence.positions) for sequence in sequences]
    return list(hidden.float().split(units))


def _on_device(
    model: ScannerModel, values: NDArray[np.generic] | None
) -> Tensor | None:
    """Numbers as a tensor on the model's device, or None for None."""
    if values is None:
        return None
    return torch.from_numpy(values).to(model.device)


# steps whose examples determine the shift that the loss adds to a base's logits
_SHIFT_STEPS = 3


class Validation(NamedTuple):
    """Measures of a model on documents that it is not trained on."""

    choice: float  # the number by which weights are chosen: higher is better
    measures: dict[str, dict[str, float]]  # by source and name
    lines: tuple[str, ...]  # the measures as text for people to read


class EvidenceStage:
    """Trains a scanner on the questions of ``--data``."""

    # the key of the validation's measures in the checkpoint's training record
    measured = "validation_recall"
    # for the lines that show the measures
    title = "recall"
    mark = "@"
    names = tuple(map(str, CUTOFFS))
    choice = "10"  # weights are chosen by the mean of this measure over sources

    def __init__(
        self, files: RunFiles, recipe: Recipe, device: torch.device, notify: Notify
    ) -> None:
        self._files = files
        self._recipe = recipe
        self._device = device
        self._notify = notify
        _check_files(files)
        self.held_out: list[Document] = []
        training = set_aside(
            read_documents(files.data), recipe.held_out_sources, self.held_out
        )
        self._documents = DocumentStore(training, files.out)
        self.held_out += read_documents(files.validation)
        refuse_names_of_means(
            (document.source for document in self.held_out), "validation"
        )
        self.shared = find_shared(self._documents, self.held_out, notify)
        self._documents.leave_out(self.shared)
        self.drawn: QuestionDraw  # the objective

    def start(self) -> Checkpoint:
        """The scanner to train, in float32, on the device to train on."""
        return start_checkpoint(
            self._files, self._recipe, self._documents, self._device
        )

    def objective(self, start: Checkpoint) -> Objective:
        """The objective: learn the relevance of sentences."""
        recipe = self._recipe
        self.drawn = objective = EvidenceObjective(
            self._documents, Scanner(start).reading, recipe
        )
        if self._files.base is not None and start.has_head:
            numbers = range(_SHIFT_STEPS * recipe.sequences_per_step)
            length = min(recipe.sequence_tokens)
            examples = [objective.example(number, length) for number in numbers]
            sequences = [example.sequence for example in examples]
            logits = read_logits(start.model, sequences, recipe.tokens_per_pass)
            relevant = np.concatenate([example.relevant for example in examples])
            objective.shift = fitted_shift(
                np.concatenate(logits), relevant, recipe.positive_weight
            )
        return objective

    def finish(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint to save.

        It is calibrated if the recipe has ``calibration_questions``.
        """
        limit = self._recipe.calibration_questions
        if limit and self._recipe.stage == "evidence":
            fitted = calibrate(Scanner(checkpoint), self._labelled(limit))
            if fitted is None:
                self._notify(
                    "not calibrated: too few questions, or their evidence scores no"
                    " higher than the rest"
                )
            else:
                scale, shift = fitted
                self._notify(f"calibrated: logits times {scale:.2f} {shift:+.2f}")
        return checkpoint

    def _labelled(self, limit: int) -> Iterator[QuestionOnDocument]:
        """At most ``limit`` training questions per source, with their documents."""
        documents = []
        numbers = {}
        for number in range(len(self._documents)):
            document = self._documents.without_text(number)
            documents.append(document)
            numbers[id(document)] = number
        sample = sample_questions(documents, limit, self._recipe.seed)
        for document, questions in by_document(chain.from_iterable(sample.values())):
            with_text = self._documents.document(numbers[id(document)])
            for question in questions:
                yield with_text, question

    def validate(self, checkpoint: Checkpoint, final: bool) -> Validation | None:
        """Mean measures by source, and their mean over sources under "macro".

        None without questions.
        """
        recipe = self._recipe
        limit = recipe.validation_questions
        if final:
            limit = recipe.final_validation_questions
        sample = sample_questions(self.held_out, limit, recipe.seed)
        if not sample:
            return None
        measures = {}
        for source, questions in sample.items():
            rows = self.measure(checkpoint, questions)
            measures[source] = mean_measures(rows, self.names)
        measures["macro"] = mean_measures(measures.values(), self.names)
        lines = tuple(self._line(source, means) for source, means in measures.items())
        return Validation(measures["macro"][self.choice], measures, lines)

    def _line(self, source: str, means: Mapping[str, float]) -> str:
        """The measures of a source as text for people to read."""
        columns = [
            f"{self.mark}{name} {100 * mean:5.1f}" for name, mean in means.items()
        ]
        return f"{self.title}  {'  '.join(columns)}  {source}"

    def measure(
        self, checkpoint: Checkpoint, questions: Sequence[QuestionOnDocument]
    ) -> list[dict[str, float]]:
        """Recall of each question's evidence sentences."""
        rows = []
        for logits, relevant in labelled_logits(Scanner(checkpoint), questions):
            metrics = ranking_metrics(logits, relevant)
            rows.append({name: metrics[f"recall@{name}"] for name in self.names})
        return rows

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint and its model card."""
        folder = self._files.out
        model = checkpoint.model
        settings = checkpoint.settings
        save_checkpoint(
            folder,
            model,
            settings,
            checkpoint.tokenizer,
            torch.bfloat16,
            word_vectors=checkpoint.word_vectors,
            encoder=checkpoint.encoder_file,
        )
        write_model_card(folder, model, settings, checkpoint.word_vectors)


def mean_measures(
    values: Collection[Mapping[str, float]], names: Sequence[str]
) -> dict[str, float]:
    """The mean of each measure, which is 0 without values."""
    if not values:
        return dict.fromkeys(names, 0.0)
    means = {}
    for name in names:
        means[name] = float(np.mean([row[name] for row in values]))
    return means


def set_aside(
    documents: Iterable[Document], sources: Collection[str], held_out: list[Document]
) -> Iterator[Document]:
    """Yield the documents to train on.

    A tenth of those of ``sources`` go into ``held_out`` instead.
    """
    for document in documents:
        if document.source in sources and is_held_out(document.doc_id):
            held_out.append(document)
        else:
            yield document


def _check_files(files: RunFiles) -> None:
    if not files.data:
        raise ValueError("got nothing to train on; expected --data with questions")
    for path in chain(files.data, files.validation):
        if not path.is_file():
            raise ValueError(
                f"{path}: no such file; expected questions in JSONL, see"
                " docs/training.md"
            )
        if path.name.endswith((".txt", ".txt.gz", ".txt.xz")):
            raise ValueError(
                f"{path}: got plain text; expected questions, which `spscanner"
                " synthesize` makes"
            )
