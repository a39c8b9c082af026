"""The stages that rank passages: a Mamba reranker, a transformer's classifier, and an embedding model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.baselines.base import UnitKind, load, no_progress_bars, segmenter_of
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.baselines.rerankers import END_TOKENS, PairReader
from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, locate, new_model
from spscanner_rag.checkpoint.file_access import CONFIG, read_json
from spscanner_rag.checkpoint.whole_file import current_files
from spscanner_rag.lab.evidence.metrics import best_first, ranking_metrics
from spscanner_rag.lab.evidence.questions import Asked, Document, Question
from spscanner_rag.lab.training.data.examples import PassageColumn, PassageDraw, bm25_scores
from spscanner_rag.lab.training.loop import Objective
from spscanner_rag.lab.training.model_card import write_model_card
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.evidence import EvidenceStage, passes, unit_states
from spscanner_rag.lexical.words import index_words
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.text.extras import needed
from spscanner_rag.text.units import Segmenter, readable

Column = Sequence[Any]
"""Pairs of one question, the right one first, as `MambaPairs` or `TransformerPairs` lay them out."""


class MambaPairs:
    """Pairs as a Mamba reranker reads them: the passage, the question and the end token, whose logit counts."""

    def __init__(self, reader: PairReader) -> None:
        self._reader = reader

    def pair(self, question: str, passage: str, length: int) -> Any:  # noqa: ANN401 - its ``input_ids`` are read
        """The tokens of a pair, whose passage is cut after ``length``."""
        return self._reader.sequence(question, passage, length)

    def logits(self, model: Any, pairs: Sequence[Any], dtype: str) -> Tensor:  # noqa: ANN401
        """Logits of pairs read in one pass, (pairs,); ``dtype`` is that of matrix products."""
        logits: Tensor = model.score(torch.cat(unit_states(model, pairs, dtype)))
        return logits


class TransformerPairs(MambaPairs):
    """Pairs as a sequence classifier of transformers reads them: two texts, of which the longer one is cut."""

    def __init__(self, tokenizer: Any, most_tokens: int) -> None:  # noqa: ANN401 - transformers' own
        self._tokenizer, self._most_tokens = tokenizer, most_tokens

    def pair(self, question: str, passage: str, length: int) -> Any:  # noqa: ANN401
        """The tokens of a pair, at most ``length`` in all."""
        most = min(length, self._most_tokens)
        return self._tokenizer(readable(question), readable(passage), truncation=True, max_length=most)

    def logits(self, model: Any, pairs: Sequence[Any], dtype: str) -> Tensor:  # noqa: ANN401
        """Logits of pairs in one padded batch: (pairs,)."""
        inputs = self._tokenizer.pad(list(pairs), return_tensors="pt").to(model.device)
        with torch.autocast(model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
            logits: Tensor = model(**inputs).logits
        return logits[:, 0].float()


class RerankerObjective:
    """Softmax cross-entropy over the column (Xu et al. 2024, "State Space Models are Strong Text Rerankers").

    L = -log(exp(s_0) / sum_i exp(s_i)), where s_0 is the logit of the passage with the answer and the others are
    those of the negatives, whatever kind of model reads the pairs.
    """

    def __init__(self, passages: PassageDraw, pairs: MambaPairs, recipe: Recipe) -> None:
        self._passages, self._pairs, self._recipe = passages, pairs, recipe

    def example(self, number: int, length: int) -> Column:
        """Column ``number``, of pairs whose passages are cut after ``length`` tokens."""
        column = self._passages.column(number)
        return [self._pairs.pair(column.question, passage, length) for passage in column.passages]

    def tokens(self, example: Column) -> int:
        """The number of tokens in all pairs."""
        return sum(len(pair.input_ids) for pair in example)

    def losses(self, model: nn.Module, examples: Sequence[Column]) -> Iterator[Tensor]:
        """The parts of a step's loss; a column is not divided."""
        recipe = self._recipe
        for members in passes(list(map(self.tokens, examples)), recipe.tokens_per_pass, packs=True):
            pairs = [pair for number in members for pair in examples[number]]
            logits = pair_logits(self._pairs, model, pairs, recipe.tokens_per_pass, recipe.dtype)
            right = torch.zeros((), dtype=torch.int64, device=logits.device)  # the first one
            columns = torch.split(logits, [len(examples[number]) for number in members])
            yield torch.stack([F.cross_entropy(column, right) for column in columns]).sum() / len(examples)


class EmbedderObjective:
    """NT-Xent (Chen et al. 2020, "A Simple Framework for Contrastive Learning") between questions and passages.

    The cross-entropy of the right passage among all passages of a step, and of the right question among all its
    questions, at temperature 0.05. The library caches gradients, so that memory is that of ``tokens_per_pass``.
    """

    def __init__(self, passages: PassageDraw, model: Any, recipe: Recipe) -> None:  # noqa: ANN401
        losses = needed("sentence_transformers.sentence_transformer.losses", "an embedder", "baselines")
        self._passages, self._recipe = passages, recipe
        self._to_device = needed("sentence_transformers.util", "an embedder", "baselines").batch_to_device
        self._loss = losses.CachedMultipleNegativesRankingLoss(
            model,
            scale=20.0 if model.similarity_fn_name == "cosine" else 1.0,
            similarity_fct=model.similarity,
            mini_batch_size=max(1, recipe.tokens_per_pass // (model.max_seq_length or 512)),
            directions=("query_to_doc", "doc_to_query"),
            partition_mode="per_direction",
        )

    def example(self, number: int, length: int) -> PassageColumn:
        """Column ``number``, of texts that the model cuts at its own length."""
        return self._passages.column(number)

    def tokens(self, example: PassageColumn) -> int:
        """The number of tokens of question and passages."""
        return int(self._features((example.question, *example.passages))["attention_mask"].sum())

    def losses(self, model: nn.Module, examples: Sequence[PassageColumn]) -> Iterator[Tensor]:
        """The loss of a step, in which each question and each right passage has a place once."""
        by_question = {column.question: column for column in examples}
        columns = {column.passages[0]: column for column in by_question.values()}.values()
        passages = zip(*(column.passages for column in columns), strict=False)  # as many as the shortest has
        texts = [[column.question for column in columns], *passages]
        kind = self._loss.model.device.type
        # entered until the gradients are computed, since the passes are repeated for them
        with torch.autocast(kind, torch.bfloat16, enabled=self._recipe.dtype == "bfloat16"):
            yield self._loss([self._features(column) for column in texts], None)

    def _features(self, texts: Sequence[str]) -> dict[str, Any]:
        model = self._loss.model
        read = model.preprocess([readable(text) for text in texts])
        features: dict[str, Any] = self._to_device(read, model.device)
        return features


def pair_logits(
    kind: MambaPairs, model: nn.Module, pairs: Sequence[Any], most_tokens: int, dtype: str
) -> Tensor:
    """Logits of pairs, (pairs,), read in passes of ``most_tokens``."""
    packs = isinstance(model, ScannerModel) and model.kernels.packs
    found: dict[int, Tensor] = {}
    for together in passes([len(pair.input_ids) for pair in pairs], most_tokens, packs):
        logits = kind.logits(model, [pairs[number] for number in together], dtype)
        found.update(zip(together, logits.unbind(), strict=True))
    return torch.stack([found[number] for number in range(len(pairs))])


RERANKED = 50
"""A validation ranks so many passages of the question's document anew: those that BM25 takes for the best."""

ScoreTexts = Callable[[str, Sequence[str]], NDArray[np.float32]]
"""From a question and texts to their logits: (texts,)."""


class RerankerStage(EvidenceStage):
    """Trains a reranker on questions of ``--data``; it has no lexical channel."""

    measured = "validation_ranking"
    title, mark = "ranking", ""
    names = ("mrr@10", "recall@1", "recall@10")
    choice = "mrr@10"

    def start(self) -> Checkpoint:
        """The reranker to train."""
        checkpoint = as_reranker(super().start(), self._recipe.seed)
        self._pairs = MambaPairs(PairReader(checkpoint.tokenizer))
        return checkpoint

    def objective(self, start: Checkpoint) -> Objective:
        """The passage with the answer among hard negatives."""
        return RerankerObjective(self.passages(), self._pairs, self._recipe)

    def passages(self) -> PassageDraw:
        """The supply of questions with passages."""
        self._segmenter = segmenter_of(cast(UnitKind, self._recipe.rerank_unit))
        self._drawn = passages = PassageDraw(self._documents, self._recipe, self._segmenter)
        return passages

    def measure(self, checkpoint: Checkpoint, asked: Sequence[Asked]) -> list[dict[str, float]]:
        """MRR and recall of the passages that hold evidence."""
        with torch.inference_mode():
            return [
                ranking(partial(self.score, checkpoint.model), self._segmenter, *one, self.names)
                for one in asked
            ]

    def score(self, model: Any, question: str, texts: Sequence[str]) -> NDArray[np.float32]:  # noqa: ANN401
        """The logits of texts, (texts,), by which a validation ranks them."""
        recipe = self._recipe
        pairs = [self._pairs.pair(question, text, max(recipe.sequence_tokens)) for text in texts]
        return pair_logits(self._pairs, model, pairs, recipe.tokens_per_pass, "float32").cpu().numpy()


def ranking(
    score: ScoreTexts, segmenter: Segmenter, document: Document, question: Question, names: Sequence[str]
) -> dict[str, float]:
    """Measures of a question's ranking; evidence beyond the `RERANKED` best of BM25 is not found."""
    text = document.text
    units = segmenter.segment(text)
    spans = Spans.of(units)
    relevant = relevant_units(spans.starts, spans.ends, question.evidence)
    if not relevant.any():
        return dict.fromkeys(names, 0.0)
    first = bm25_scores(index_words([unit.model_text for unit in units]), question.text)
    best = best_first(first)[:RERANKED]
    scores = np.full(len(units), -np.inf)
    scores[best] = score(question.text.strip(), [text[units[n].start : units[n].end] for n in best])
    return ranking_metrics(scores, relevant, (1, 10))


def as_reranker(start: Checkpoint, seed: int) -> Checkpoint:
    """A copy of a checkpoint that reads pairs of query and document, without the lexical channel.

    A tokenizer without an end token gains one, and the embedding a row for it, which ``seed`` determines.
    """
    tokenizer, config = start.tokenizer, start.model.config
    if all(tokenizer.token_to_id(name) is None for name in END_TOKENS):
        tokenizer = Tokenizer.from_str(tokenizer.to_str())
        tokenizer.add_special_tokens([END_TOKENS[0]])
        config = replace(config, vocab_size=max(config.vocab_size, tokenizer.get_vocab_size()))
    settings = ScannerSettings()
    torch.manual_seed(seed)
    model = new_model(config, settings).to(start.model.device)
    own = start.model.state_dict()
    with torch.no_grad():
        for name, target in model.state_dict().items():
            target[: len(own[name])] = own[name]  # a larger vocabulary has further rows
    return replace(start, model=model, settings=settings, tokenizer=tokenizer, word_vectors=None)


class TransformerStage(RerankerStage):
    """Trains a transformer with the data, loss and schedule of a Mamba reranker, for `crossencoder:FOLDER`."""

    def start(self) -> Checkpoint:
        """The model to train."""
        base = self._files.base
        assert base is not None
        torch.manual_seed(self._recipe.seed)  # for a new head
        model = self._loaded(base).float().to(self._device)
        before = getattr(_network(model).config, "spscanner", {}).get("training", {})
        settings, tokenizer = ScannerSettings(training=before), self._tokenizer.backend_tokenizer
        return Checkpoint(model, settings, tokenizer, base, locate(base), published=False)

    def _loaded(self, base: str) -> Any:  # noqa: ANN401 - transformers' own
        """The classifier; a model without a head of one logit gets a new one."""
        library = needed("transformers", "a transformer as --base", "baselines")
        self._tokenizer = load(library.AutoTokenizer.from_pretrained, base)
        options = {"num_labels": 1, "ignore_mismatched_sizes": True, "dtype": torch.float32}
        kind = library.AutoModelForSequenceClassification
        model = load(lambda path: kind.from_pretrained(path, **options), base)
        model.config.pad_token_id = self._tokenizer.pad_token_id  # which a decoder finds its last token by
        room = getattr(model.config, "max_position_embeddings", None) or self._tokenizer.model_max_length
        self._pairs = TransformerPairs(self._tokenizer, min(room, self._tokenizer.model_max_length))
        return model

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the model in its library's layout, and the model card."""
        model: Any = checkpoint.model
        _network(model).config.spscanner = {"training": checkpoint.settings.training}
        with no_progress_bars():
            model.save_pretrained(str(self._files.out))
        self._tokenizer.save_pretrained(self._files.out)
        write_model_card(self._files.out, _network(model), checkpoint.settings)


class EmbedderStage(TransformerStage):
    """Trains a sentence-transformers model on the passages of a reranker, for `dense:FOLDER`."""

    def _loaded(self, base: str) -> Any:  # noqa: ANN401 - sentence-transformers' own
        model = Dense(base, device=str(self._device)).sentence_transformer
        self._tokenizer = model.tokenizer
        return model

    def objective(self, start: Checkpoint) -> Objective:
        """The passage with the answer among all of a step."""
        return EmbedderObjective(self.passages(), start.model, self._recipe)

    def score(self, model: Any, question: str, texts: Sequence[str]) -> NDArray[np.float32]:  # noqa: ANN401
        """The model's own similarities: (texts,)."""
        read = [readable(text) for text in (question, *texts)]
        vectors = model.encode(read, convert_to_tensor=True, show_progress_bar=False)
        similarities: NDArray[np.float32] = model.similarity(vectors[:1], vectors[1:])[0].cpu().numpy()
        return similarities


def is_transformer(base: str | None) -> bool:
    """True for the folder or Hub id of a model of transformers that is no Mamba."""
    if base is None:
        return False
    config = read_json(current_files(locate(base)) / CONFIG)
    return "ssm_cfg" not in config and config.get("model_type", "mamba") not in ("mamba", "mamba2")


def _network(model: Any) -> Any:  # noqa: ANN401
    """The model of transformers, which is the first module of an embedding model."""
    return model[0].auto_model if isinstance(model, torch.nn.Sequential) else model
