r"""Trains an in-context retriever (BlockSearch) from a Qwen3 model.

It learns from questions with known evidence.

    python examples/training/block_search.py --base QWEN3 --data train.jsonl
    --validation dev.jsonl --out DIR

The result is the retriever ``blocksearch:DIR``. The same command resumes an interrupted
run. Options select the paper's variants (section 3.3, table 6): ``--attention plain
--best-documents 10000`` has neither SSMax nor routing; ``--attention sink``;
``--auxiliary-weight 0`` is *off-policy* and, with ``--codes position`` too, *position*.
"""

import argparse
import random
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import get_args

import numpy as np
import torch

from spscanner_lab.evidence.questions import read_documents
from spscanner_lab.in_context.block_search import search
from spscanner_lab.in_context.model import Attention, BlockSearchModel
from spscanner_lab.in_context.prompt import Codes
from spscanner_lab.in_context.training import PUBLISHED, InContextObjective, batch_of
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.passages import PassageDraw
from spscanner_lab.training.loop import Trainer
from spscanner_lab.training.recipe import Recipe
from spscanner_rag.baselines.unit_kinds import segmenter_of


def main() -> None:
    """Train and save the model; print how often the right passage ranks first."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--base",
        type=Path,
        required=True,
        help="folder of a Qwen3 model or an earlier run",
    )
    parser.add_argument("--data", type=Path, action="extend", nargs="+", required=True)
    parser.add_argument(
        "--validation", type=Path, action="extend", nargs="+", help="files to test on"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--documents", type=int, default=100, help="documents of the data to train on"
    )
    parser.add_argument("--words", type=int, default=100, help="words of a passage")
    parser.add_argument(
        "--queries", type=int, default=8, help="queries in a step (published: 128)"
    )
    parser.add_argument(
        "--negatives",
        type=int,
        default=1,
        help="hard negatives of each query (published: 15)",
    )
    parser.add_argument(
        "--stratified",
        action="store_true",
        help="each step has every source by its share, as published",
    )
    parser.add_argument("--steps", type=int, default=1000, help="published: 4082")
    parser.add_argument("--learning-rate", type=float, default=PUBLISHED.learning_rate)
    parser.add_argument(
        "--auxiliary-weight",
        type=float,
        default=0.5,
        help="weight of the on-policy loss",
    )
    parser.add_argument("--attention", choices=get_args(Attention), default="ssmax")
    parser.add_argument("--codes", choices=get_args(Codes), default="random")
    parser.add_argument(
        "--best-documents",
        type=int,
        default=256,
        help="read by upper layers; 10000: all",
    )
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    model = BlockSearchModel.from_pretrained(
        options.base,
        dtype="float32",
        device=options.device,
        attention=options.attention,
        codes=options.codes,
        best_documents=options.best_documents,
    )
    recipe = replace(
        PUBLISHED,
        steps=options.steps,
        sequences_per_step=options.queries,
        learning_rate=options.learning_rate,
        final_learning_rate=options.learning_rate / 10,
        dtype="bfloat16",
    )
    passages = passages_of(options.data, options)
    objective = InContextObjective(
        passages, model.layout, recipe, options.auxiliary_weight
    )
    inputs = objective.inputs | {"reading": str(model.settings)}
    for step in Trainer(model, objective, recipe, options.out, inputs=inputs).run():
        if step.step % 20 == 0:
            line = f"loss {step.loss:.3f}  {step.tokens_per_second:,.0f} tokens/s"
            print(
                f"step {step.step:,} of {options.steps:,}  {line}",
                file=sys.stderr,
                flush=True,
            )
    model.eval().save(options.out)
    if options.validation:
        columns, firsts = passages_of(options.validation, options), list[bool]()
        for start in range(0, 400, options.queries):
            some = [columns.column(start + number) for number in range(options.queries)]
            batch = batch_of(some, random.Random(start), options.codes)
            with torch.inference_mode():
                keys = model.read_documents(batch.texts, batch.codes)
            for question, column in zip(batch.questions, batch.columns, strict=True):
                firsts.append(search(model, keys, question).order()[0] == column[0])
        print(
            f"the right one of {len(batch.texts)} passages is first for"
            f" {np.mean(firsts):.1%} of the queries"
        )


def passages_of(files: list[Path], options: argparse.Namespace) -> PassageDraw:
    """Return the questions of some files with their passages."""
    store = DocumentStore(islice(read_documents(files), options.documents))
    return PassageDraw(
        store,
        Recipe(
            rerank_negatives=options.negatives,
            sequences_per_step=options.queries,
            stratified=options.stratified,
        ),
        segmenter_of(f"chunk:{options.words}"),
    )


if __name__ == "__main__":
    main()
