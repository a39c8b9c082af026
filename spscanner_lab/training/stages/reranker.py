"""The stages that rank passages.

They train a Mamba reranker, a transformer's classifier, and an embedding model.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_lab.evidence.metrics import best_first, ranking_metrics
from spscanner_lab.evidence.questions import Document, Question, QuestionOnDocument
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.passages import PassageColumn, PassageDraw, bm25_scores
from spscanner_lab.training.loop import Objective
from spscanner_lab.training.model_card import write_model_card
from spscanner_lab.training.recipe import Recipe
from spscanner_lab.training.stages.evidence import EvidenceStage, passes, unit_states
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.baselines.model_loading import load, no_progress_bars
from spscanner_rag.baselines.pair_reader import END_TOKENS, PairReader
from spscanner_rag.baselines.unit_kinds import UnitKind, segmenter_of
from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, locate, new_model
from spscanner_rag.checkpoint.bounded_files import read_json
from spscanner_rag.checkpoint.file_names import CONFIG
from spscanner_rag.checkpoint.location import current_files
from spscanner_rag.lexical.words import index_words
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.units import Segmenter


class RerankerObjective(PassageDraw):
    """Softmax cross-entropy over a column of passages.

    As in Xu et al. 2024, "State Space Models are Strong Text Rerankers".

    L = -log(exp(s_0) / sum_i exp(s_i)), where s_0 is the logit of the passage with the
    answer, and the other s_i are those of the negatives. A pair is read as by a Mamba
    reranker: the passage, the question and the end token, at which the logit is read.
    """

    splits = True

    def __init__(
        self,
        documents: DocumentStore,
        recipe: Recipe,
        segmenter: Segmenter,
        reader: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(documents, recipe, segmenter)
        self.reader = reader  # a `PairReader`, or transformers' tokenizer

    def pair(self, question: str, passage: str, length: int) -> Any:  # noqa: ANN401
        """The tokens of a pair, in ``input_ids``.

        The passage is cut after ``length`` tokens.
        """
        return self.reader.sequence(question, passage, length)

    def pass_logits(
        self,
        model: Any,  # noqa: ANN401
        pairs: Sequence[Any],
        dtype: str,
    ) -> Tensor:
        """Logits of pairs read in one pass, (pairs,).

        ``dtype`` is that of matrix products.
        """
        logits: Tensor = model.score(torch.cat(unit_states(model, pairs, dtype)))
        return logits

    def logits(self, model: nn.Module, pairs: Sequence[Any], dtype: str) -> Tensor:
        """Logits of pairs, (pairs,), read in as many passes as needed."""
        packs = isinstance(model, ScannerModel) and model.kernels.packs
        lengths = [len(pair.input_ids) for pair in pairs]
        logits_by_number: dict[int, Tensor] = {}
        for numbers in passes(lengths, self.recipe.tokens_per_pass, packs):
            members = [pairs[number] for number in numbers]
            logits = self.pass_logits(model, members, dtype)
            logits_by_number.update(zip(numbers, logits.unbind(), strict=True))
        return torch.stack([logits_by_number[number] for number in range(len(pairs))])

    def example(self, number: int, length: int) -> Sequence[Any]:
        """The pairs of column ``number``, the right one first.

        Passages are cut after ``length`` tokens.
        """
        column = self.column(number)
        pairs = []
        for passage in column.passages:
            pairs.append(self.pair(column.question, passage, length))
        return pairs

    def tokens(self, example: Sequence[Any]) -> int:
        """The number of tokens in all pairs."""
        return sum(len(pair.input_ids) for pair in example)

    def losses(
        self,
        model: nn.Module,
        examples: Sequence[Sequence[Any]],
        numbers: Sequence[int],
    ) -> Iterator[Tensor]:
        """The parts of a step's loss, each with the losses of full columns."""
        lengths = [self.tokens(examples[number]) for number in numbers]
        for indices in passes(lengths, self.recipe.tokens_per_pass, packs=True):
            members = [numbers[index] for index in indices]
            pairs: list[Any] = []
            sizes = []
            for number in members:
                pairs.extend(examples[number])
                sizes.append(len(examples[number]))
            logits = self.logits(model, pairs, self.recipe.dtype)
            # the first one
            right = torch.zeros((), dtype=torch.int64, device=logits.device)
            columns = torch.split(logits, sizes)
            losses = [F.cross_entropy(column, right) for column in columns]
            yield torch.stack(losses).sum() / len(examples)

    def score(
        self,
        model: Any,  # noqa: ANN401
        question: str,
        texts: Sequence[str],
    ) -> NDArray[np.float32]:
        """The logits of texts, (texts,), by which a validation ranks them."""
        length = max(self.recipe.sequence_tokens)
        pairs = [self.pair(question, text, length) for text in texts]
        return self.logits(model, pairs, "float32").cpu().numpy()


class TransformerObjective(RerankerObjective):
    """The same loss for a sequence classifier of transformers.

    It reads a pair as two texts, the longer one cut.
    """

    most_tokens = sys.maxsize

    def pair(self, question: str, passage: str, length: int) -> Any:  # noqa: ANN401
        """The tokens of a pair, at most ``length`` in all."""
        return self.reader(
            replace_surrogates(question),
            replace_surrogates(passage),
            truncation=True,
            max_length=min(length, self.most_tokens),
        )

    def pass_logits(
        self,
        model: Any,  # noqa: ANN401
        pairs: Sequence[Any],
        dtype: str,
    ) -> Tensor:
        """Logits of pairs in one padded batch: (pairs,)."""
        inputs = self.reader.pad(list(pairs), return_tensors="pt").to(model.device)
        with torch.autocast(
            model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"
        ):
            logits: Tensor = model(**inputs).logits
        return logits[:, 0].float()


class EmbedderObjective(PassageDraw):
    """NT-Xent between questions and passages.

    As in Chen et al. 2020, "A Simple Framework for Contrastive Learning".

    The cross-entropy of the right passage among all passages of a step, and of the
    right question among all its questions; cosines are divided by 0.05. The library
    caches gradients: ``tokens_per_pass`` bounds the memory.
    """

    splits = False

    def __init__(
        self,
        documents: DocumentStore,
        recipe: Recipe,
        segmenter: Segmenter,
        model: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(documents, recipe, segmenter)
        losses = import_extra(
            "sentence_transformers.sentence_transformer.losses",
            "an embedder",
            "baselines",
        )
        self._to_device = import_extra(
            "sentence_transformers.util", "an embedder", "baselines"
        ).batch_to_device
        scale = 20.0 if model.similarity_fn_name == "cosine" else 1.0
        text_tokens = model.max_seq_length or 512
        self._loss = losses.CachedMultipleNegativesRankingLoss(
            model,
            scale=scale,
            similarity_fct=model.similarity,
            mini_batch_size=max(1, recipe.tokens_per_pass // text_tokens),
            directions=("query_to_doc", "doc_to_query"),
            partition_mode="per_direction",
        )

    def example(self, number: int, length: int) -> PassageColumn:
        """Column ``number``, whose texts the model cuts at its own maximum length."""
        return self.column(number)

    def tokens(self, example: PassageColumn) -> int:
        """The number of tokens of the question and its passages."""
        features = self._features((example.question, *example.passages))
        return int(features["attention_mask"].sum())

    def losses(
        self,
        model: nn.Module,
        examples: Sequence[PassageColumn],
        numbers: Sequence[int],
    ) -> Iterator[Tensor]:
        """The loss of a step.

        Columns that repeat a question or a right passage are dropped.
        """
        by_question = {column.question: column for column in examples}
        by_passage = {column.passages[0]: column for column in by_question.values()}
        questions = []
        passages = []
        for column in by_passage.values():
            questions.append(column.question)
            passages.append(column.passages)
        # as many as the shortest has
        texts = [questions, *zip(*passages, strict=False)]
        kind = self._loss.model.device.type
        # autocast stays on until the gradients are computed, since that repeats the
        # passes
        with torch.autocast(
            kind, torch.bfloat16, enabled=self.recipe.dtype == "bfloat16"
        ):
            yield self._loss(list(map(self._features, texts)), None)

    def score(
        self,
        model: Any,  # noqa: ANN401
        question: str,
        texts: Sequence[str],
    ) -> NDArray[np.float32]:
        """The similarities of texts by the model's own function: (texts,)."""
        inputs = list(map(replace_surrogates, (question, *texts)))
        vectors = model.encode(inputs, convert_to_tensor=True, show_progress_bar=False)
        similarity = model.similarity(vectors[:1], vectors[1:])[0]
        similarities: NDArray[np.float32] = similarity.cpu().numpy()
        return similarities

    def _features(self, texts: Sequence[str]) -> dict[str, Any]:
        model = self._loss.model
        inputs = model.preprocess(list(map(replace_surrogates, texts)))
        features: dict[str, Any] = self._to_device(inputs, model.device)
        return features


Passages = TypeVar("Passages", bound=PassageDraw)

RERANKED = 50
"""A validation reranks this many passages of the question's document: those that
BM25 ranks highest."""


class RerankerStage(EvidenceStage):
    """Trains a reranker, without a lexical channel, on the questions of ``--data``."""

    measured = "validation_ranking"
    title = "ranking"
    mark = ""
    names = ("mrr@10", "recall@1", "recall@10")
    choice = "mrr@10"
    passages: Any  # the objective

    def start(self) -> Checkpoint:
        """The reranker to train."""
        return as_reranker(super().start(), self._recipe.seed)

    def objective(self, start: Checkpoint) -> Objective:
        """The objective: find the passage with the answer among hard negatives."""
        return self._of(RerankerObjective, PairReader(start.tokenizer))

    def _of(
        self,
        kind: Callable[..., Passages],
        reader: Any,  # noqa: ANN401
    ) -> Passages:
        segmenter = segmenter_of(cast(UnitKind, self._recipe.rerank_unit))
        objective = kind(self._documents, self._recipe, segmenter, reader)
        self.drawn = objective
        self.passages = objective
        return objective

    def measure(
        self, checkpoint: Checkpoint, questions: Sequence[QuestionOnDocument]
    ) -> list[dict[str, float]]:
        """MRR and recall of the passages that hold evidence."""
        score = partial(self.passages.score, checkpoint.model)
        segmenter = self.passages.segmenter
        rows = []
        with torch.inference_mode():
            for document, question in questions:
                row = ranking(score, segmenter, document, question, self.names)
                rows.append(row)
        return rows


# a question and texts -> scores, (texts,)
Score = Callable[[str, Sequence[str]], NDArray[np.float32]]


def ranking(
    score: Score,
    segmenter: Segmenter,
    document: Document,
    question: Question,
    names: Sequence[str],
) -> dict[str, float]:
    """Measures of a question's ranking.

    Evidence that is not among BM25's best `RERANKED` is not found.
    """
    text = document.text
    units = segmenter.segment(text)
    spans = Spans.of(units)
    relevant = relevant_units(spans.starts, spans.ends, question.evidence)
    if not relevant.any():
        return dict.fromkeys(names, 0.0)
    words = index_words([unit.model_text for unit in units])
    best = best_first(bm25_scores(words, question.text))[:RERANKED]
    passages = []
    for number in best:
        unit = units[number]
        passages.append(text[unit.start : unit.end])
    scores = np.full(len(units), -np.inf)
    scores[best] = score(question.text.strip(), passages)
    return ranking_metrics(scores, relevant, (1, 10))


def as_reranker(start: Checkpoint, seed: int) -> Checkpoint:
    """A copy of a checkpoint that reads pairs of query and document.

    The copy has no lexical channel.

    A tokenizer without an end token gains one, and the embedding gains a row for it,
    drawn with ``seed``.
    """
    tokenizer = start.tokenizer
    config = start.model.config
    if all(tokenizer.token_to_id(name) is None for name in END_TOKENS):
        tokenizer = Tokenizer.from_str(tokenizer.to_str())
        tokenizer.add_special_tokens([END_TOKENS[0]])
        vocab_size = max(config.vocab_size, tokenizer.get_vocab_size())
        config = replace(config, vocab_size=vocab_size)
    settings = ScannerSettings()
    torch.manual_seed(seed)
    model = new_model(config, settings).to(start.model.device)
    weights = start.model.state_dict()
    with torch.no_grad():
        for name, target in model.state_dict().items():
            source = weights[name]
            target[: len(source)] = source  # a larger vocabulary has more rows
    return replace(
        start, model=model, settings=settings, tokenizer=tokenizer, word_vectors=None
    )


class TransformerStage(RerankerStage):
    """Trains a transformer for `crossencoder:FOLDER`.

    The data, loss and schedule are those of a Mamba reranker.
    """

    def start(self) -> Checkpoint:
        """The model to train."""
        base = self._files.base
        assert base is not None
        torch.manual_seed(self._recipe.seed)  # for a new head
        model = self._loaded(base).float().to(self._device)
        before = getattr(_network(model).config, "spscanner", {}).get("training", {})
        settings = ScannerSettings(training=before)
        tokenizer = self._tokenizer.backend_tokenizer
        return Checkpoint(
            model, settings, tokenizer, base, locate(base), published=False
        )

    def _loaded(self, base: str) -> Any:  # noqa: ANN401 - transformers' own
        """The classifier, with a new head if the model has none of one logit."""
        library = import_extra("transformers", "a transformer as --base", "baselines")
        self._tokenizer = load(library.AutoTokenizer.from_pretrained, base)
        options = {
            "num_labels": 1,
            "ignore_mismatched_sizes": True,
            "dtype": torch.float32,
        }
        kind = library.AutoModelForSequenceClassification
        model = load(lambda path: kind.from_pretrained(path, **options), base)
        # a decoder finds its last token by this
        model.config.pad_token_id = self._tokenizer.pad_token_id
        return model

    def objective(self, start: Checkpoint) -> Objective:
        """The objective: find the passage with the answer among hard negatives."""
        objective = self._of(TransformerObjective, self._tokenizer)
        positions = getattr(start.model.config, "max_position_embeddings", None)
        tokenizer_tokens = self._tokenizer.model_max_length
        objective.most_tokens = min(positions or sys.maxsize, tokenizer_tokens)
        return objective

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the model in its library's layout, and the model card."""
        model: Any = checkpoint.model
        _network(model).config.spscanner = {"training": checkpoint.settings.training}
        with no_progress_bars():
            model.save_pretrained(str(self._files.out))
        self._tokenizer.save_pretrained(self._files.out)
        write_model_card(self._files.out, _network(model), checkpoint.settings)


class EmbedderStage(TransformerStage):
    """Trains a sentence-transformers model for `dense:FOLDER`.

    It learns from the passages of a reranker.
    """

    def _loaded(self, base: str) -> Any:  # noqa: ANN401 - sentence-transformers' own
        model = Dense(base, device=str(self._device)).sentence_transformer
        self._tokenizer = model.tokenizer
        return model

    def objective(self, start: Checkpoint) -> Objective:
        """The objective: find the passage with the answer among all of a step."""
        return self._of(EmbedderObjective, start.model)


def is_transformer(base: str | None) -> bool:
    """True for the folder or Hub id of a transformers model that is not a Mamba."""
    if base is None:
        return False
    config = read_json(current_files(locate(base)) / CONFIG)
    if "ssm_cfg" in config:
        return False
    return config.get("model_type", "mamba") not in ("mamba", "mamba2")


def _network(model: Any) -> Any:  # noqa: ANN401
    """The transformers model, which is in the first module of an embedding model."""
    return model[0].auto_model if isinstance(model, torch.nn.Sequential) else model
