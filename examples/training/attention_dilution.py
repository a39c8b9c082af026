r"""Measures attention dilution (Gollapudi et al. 2026, section 4): what a query reads of its gold document.

    python examples/training/attention_dilution.py --model DIR --corpus BEIR-FOLDER --sizes 500 1000 2500 5000

``--model`` is a folder of a Qwen3 model or of `block_search.py`, ``--corpus`` one in BEIR's layout. A table in
Markdown has, for corpora of N documents: recall@1 of the decoded codes; R_any and R_sum, how often a head, or all
heads together, rank a gold document first (figure 3); GoldShare, the gold document's part of the layer's output
(table 1). The paper has 400 queries and layer 19 of 28; 24 negatives of each query make its 10,000 documents.

A corpus of N documents, in our reading, is the first N of: the gold documents of all queries, then each query's
nearest negative, then each one's second, ... Nearest is by BM25; the paper's nearest are an embedding model's.
"""

import argparse
from itertools import islice
from pathlib import Path
from typing import get_args

import numpy as np
import torch

from spscanner_rag.baselines.units import segmenter_of
from spscanner_rag.lab.evaluation.corpora import CorpusUnits
from spscanner_rag.lab.evaluation.judged import JudgedCorpus, read_beir
from spscanner_rag.lab.in_context.block_search import read_corpus, search
from spscanner_rag.lab.in_context.dilution import dilution
from spscanner_rag.lab.in_context.model import Attention, BlockSearchModel


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--split", default="test", help="of the judgements: qrels/SPLIT.tsv")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2500, 5000, 10_000], metavar="N")
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--negatives", type=int, default=24, help="of each query")
    parser.add_argument("--layer", type=int, help="counted from 0; default: 19 of 28, or the same share")
    parser.add_argument("--attention", choices=get_args(Attention), help="default: the model's own")
    parser.add_argument("--best-documents", type=int, help="that upper layers read; default: the model's own")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="auto")
    given = parser.parse_args()
    own = {"attention": given.attention, "best_documents": given.best_documents}
    model = BlockSearchModel.from_pretrained(
        given.model, dtype=given.dtype, device=given.device,
        **{name: value for name, value in own.items() if value is not None},
    )  # fmt: skip
    layers = len(model.scalars)
    layer = round(layers * 19 / 28) if given.layer is None else given.layer
    if not 0 <= layer < layers:
        parser.error(f"--layer {layer}: expected 0 to {layers - 1}")
    judged = read_beir(given.corpus, given.split)
    queries = list(islice(judged.queries, given.queries))
    numbers, gold = hard_corpus(judged, queries, given.negatives)
    least = len({number for own in gold.values() for number in own})
    print(
        f"| documents | recall@1 | R_any, layer {layer} | R_sum | GoldShare |\n|---|---|---|---|---|",
        flush=True,
    )
    for size in sorted({min(size, len(numbers)) for size in given.sizes}):
        if size < least:
            parser.error(f"--sizes {size}: expected at least {least}, the gold documents of the queries")
        print(f"| {size:,} | {' | '.join(row(model, judged, numbers[:size], gold, layer))} |", flush=True)


def hard_corpus(
    judged: JudgedCorpus, queries: list[str], negatives: int
) -> tuple[list[int], dict[str, set[int]]]:
    """The documents by number, gold ones first and then the negatives by their rank; gold ones by query."""
    place = {document.doc_id: number for number, document in enumerate(judged.documents)}
    gold = {
        query: {place[name] for name, grade in judged.qrels[query].items() if grade > 0} for query in queries
    }
    units = CorpusUnits(judged.documents, segmenter_of("document"))
    index = units.index(units.every)
    ranked = []
    for query in queries:
        near = index.best_texts(judged.queries[query], negatives + len(judged.qrels[query]))
        ranked.append([int(key) for key, _ in near if int(key) not in gold[query]][:negatives])
    found = dict.fromkeys(number for own in gold.values() for number in sorted(own))
    for rank in range(negatives):
        found |= dict.fromkeys(own[rank] for own in ranked if rank < len(own))
    return list(found), gold


def row(
    model: BlockSearchModel, judged: JudgedCorpus, numbers: list[int], gold: dict[str, set[int]], layer: int
) -> list[str]:
    """Recall@1, R_any, R_sum and GoldShare of a layer, averaged over the queries."""
    documents = read_corpus(model, [judged.documents[number].text for number in numbers])
    measured = []
    for query, right in gold.items():
        places = {place for place, number in enumerate(numbers) if number in right}
        with torch.inference_mode():
            first = int(search(model, documents, judged.queries[query]).order()[0])
        read = dilution(model, documents, judged.queries[query], places)
        measured.append(
            (first in places, read.any_head[layer], read.all_heads[layer], read.gold_share[layer])
        )
    return [f"{mean:.3f}" for mean in np.mean(measured, 0)]


if __name__ == "__main__":
    main()
