r"""Trains a small in-context retriever (BlockSearch) on questions with known evidence, on a processor.

    python examples/training/block_search.py --data train.jsonl --validation dev.jsonl --out DIR --words 6 \
        --word-queries 5 --best-documents 2 --auxiliary-weight 0 --routing-weight 3 --copying-weight 1 --steps 2500
    python examples/training/block_search.py --data train.jsonl --out DIR2 --base DIR --words 20 --steps 1000

It starts from nothing but the bundled checkpoint's tokenizer and token embedding, or from ``--base``: a folder of
an earlier run, or of a Qwen3 model. The result is the retriever ``blocksearch:DIR``.
"""

import argparse
import math
import random
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import nn

from spscanner_rag.baselines.units import ChunkSegmenter
from spscanner_rag.checkpoint import load_checkpoint
from spscanner_rag.lab.evaluation.statistics import Sample, paired_test
from spscanner_rag.lab.evidence.questions import read_documents
from spscanner_rag.lab.in_context.model import BlockSearchModel, ReadingSettings
from spscanner_rag.lab.in_context.training import (
    InContextRecipe,
    Place,
    batch_of,
    places_of_right_documents,
    train,
)
from spscanner_rag.lab.training.data.columns import PassageColumn, PassageDraw
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.recipe import Recipe

ROUTING_LAYER = 3
SHAPE = {
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "tie_word_embeddings": True,
    "rope_theta": 1_000_000.0,
}


def new_model(seed: int, best_documents: int) -> BlockSearchModel:
    """Six layers, as wide as the bundled checkpoint, whose token embedding they start from; routing at layer 3."""
    base = load_checkpoint()
    tokenizer = Tokenizer.from_str(base.tokenizer.to_str())
    tokenizer.add_special_tokens(["<|begin|>", "<|end|>"])
    width = base.model.config.d_model
    ends = {
        "bos_token_id": tokenizer.token_to_id("<|begin|>"),
        "eos_token_id": tokenizer.token_to_id("<|end|>"),
    }
    shape = SHAPE | ends | {"hidden_size": width, "intermediate_size": 3 * width}
    model = BlockSearchModel.new(tokenizer, shape, ReadingSettings(ROUTING_LAYER, best_documents), seed)
    learnt = base.model.backbone.embedding.weight.float()
    rows = min(len(learnt), base.tokenizer.get_vocab_size())
    with torch.no_grad():
        weight = model.decoder.model.embed_tokens.weight
        weight[:rows] = learnt[:rows] * (weight.std() / learnt.std())
        for number, layer in enumerate(model.decoder.model.layers):
            start_attention(layer.self_attn, gathers=number < ROUTING_LAYER)
    return model


class WordQueries:
    """Columns whose query is some words of the right passage, in any order: easier than questions."""

    def __init__(self, passages: PassageDraw, words: int, seed: int) -> None:
        self._passages, self._words, self._seed = passages, words, seed

    def column(self, number: int) -> PassageColumn:
        """Column ``number`` of the passages, asked otherwise."""
        column = self._passages.column(number)
        words = [word.strip(".,;:!?\"'()[]") for word in column.passages[0].split()]
        long = list(dict.fromkeys(word for word in words if len(word) > 3)) or words
        draw = random.Random(f"{self._seed}-{number}")
        return replace(column, question=" ".join(draw.sample(long, min(self._words, len(long)))))


def start_attention(attention: nn.Module, *, gathers: bool) -> None:
    """Start a layer near what it has to learn: mimetic initialization, arXiv 2305.09828.

    What a layer attends to is added as it is, so a digit that is attended to is a digit that is answered. Equal
    tokens attend to each other from the routing layer on; below it weights are nearly equal, so that the last
    token of a query gathers the words of the query.
    """
    query, key = attention.q_proj.weight, attention.k_proj.weight
    value, output = attention.v_proj.weight, attention.o_proj.weight
    for weight in (query, key, value):
        nn.init.orthogonal_(weight)
    output.copy_(value.T)
    if gathers:
        attention.q_norm.weight.mul_(0.3)
    else:
        key.copy_(query)


def main() -> None:
    """Train, and save the model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, action="extend", nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--base", type=Path)
    parser.add_argument("--documents", type=int, default=100, help="documents of the data to train on")
    parser.add_argument("--validation", type=Path, action="extend", nargs="+", help="files to test on")
    parser.add_argument("--validation-queries", type=int, default=400)
    parser.add_argument("--words", type=int, default=100, help="words of a passage")
    parser.add_argument(
        "--word-queries",
        type=int,
        default=0,
        help="ask with so many words of the passage instead of a question",
    )
    parser.add_argument("--queries", type=int, default=8, help="queries of a step")
    parser.add_argument("--negatives", type=int, default=1, help="hard negatives of each query")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--warmup-steps", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--auxiliary-weight", type=float, default=0.5)
    parser.add_argument("--routing-weight", type=float, default=0.0)
    parser.add_argument("--copying-weight", type=float, default=0.0)
    parser.add_argument(
        "--best-documents", type=int, default=256, help="that are read above layer 3, of a new model"
    )
    parser.add_argument("--dtype", default="bfloat16", help="of matrix products: bfloat16 or float32")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    model = (
        BlockSearchModel.from_pretrained(given.base, dtype="float32")
        if given.base
        else new_model(given.seed, given.best_documents)
    )
    passages = passages_of(given.data, given, model, given.seed)
    recipe = InContextRecipe(
        steps=given.steps,
        queries=given.queries,
        learning_rate=given.learning_rate,
        warmup_steps=given.warmup_steps,
        auxiliary_weight=given.auxiliary_weight,
        routing_weight=given.routing_weight,
        copying_weight=given.copying_weight,
        dtype=given.dtype,
        seed=given.seed,
    )
    means = [math.log(10), 0.0, math.log(given.queries * (1 + given.negatives)), math.log(10)]
    for step in train(model, passages, recipe, given.out):
        losses = (step.loss, step.auxiliary, step.routing, step.copying)
        means = [0.95 * mean + 0.05 * loss for mean, loss in zip(means, losses, strict=True)]
        if step.step % 20 == 0:
            names = ("loss", "auxiliary", "routing", "copying")
            line = "  ".join(f"{name} {mean:.3f}" for name, mean in zip(names, means, strict=True))
            counts = f"{step.tokens} tokens  {step.seconds:.2f} s"
            print(f"step {step.step:,} of {given.steps:,}  {line}  {counts}", file=sys.stderr, flush=True)
    model.save(given.out)
    if given.validation:
        columns = passages_of(given.validation, given, model, given.seed)
        some = range(0, given.validation_queries, given.queries)
        batches = [
            batch_of([columns.column(n + k) for k in range(given.queries)], random.Random(n)) for n in some
        ]
        print(against_chance(places_of_right_documents(model, batches)))


def against_chance(places: list[Place]) -> str:
    """A line about where the right documents stand; the test flips signs by right documents."""
    right = [place.right for place in places]
    above = Sample([place.above for place in places], right)
    test = paired_test({"": above}, {"": Sample([0.5] * len(right), right)})
    first = sum(place.place == 0 for place in places) / len(places)
    chance = sum(1 / place.documents for place in places) / len(places)
    return (
        f"{len(places)} queries of {places[0].documents} documents each. The right one is first for {first:.1%} "
        f"(by chance {chance:.1%}); {above.values.mean():.1%} of the others are above it (by chance 50.0%, "
        f"p = {test.p_value:.4f})"
    )


def passages_of(
    files: list[Path], given: argparse.Namespace, model: BlockSearchModel, seed: int
) -> PassageDraw | WordQueries:
    """Questions of some files with their passages, or words of the passages instead of the questions."""
    store = DocumentStore(islice(read_documents(files), given.documents))
    draw = Recipe(rerank_negatives=given.negatives, seed=seed)
    passages = PassageDraw(store, draw, ChunkSegmenter(given.words))
    return WordQueries(passages, given.word_queries, seed) if given.word_queries else passages


if __name__ == "__main__":
    main()
