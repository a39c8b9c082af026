r"""Measures attention dilution: how much a query attends to its gold document.

It follows section 4 of Gollapudi et al. 2026.

    python examples/training/attention_dilution.py --model DIR --corpus BEIR-FOLDER
        --sizes 500 1000 2500 5000 \ --plot dilution.svg

``--model`` is the folder of a Qwen3 model or the output of `block_search.py`,
``--corpus`` a folder in BEIR's layout. The script prints a Markdown table with, for
corpora of N documents: recall@1 of the decoded codes; first digit, how often the
model's head, applied after the layer, predicts a gold document's first digit (figure
2); routing@B, how often a gold document is among the B that upper layers read; R_any
and R_sum, how often a head, or all heads together, rank a gold document first (figure
3); GoldShare, the gold document's part of the output a of the layer, and |a|, its
length (table 1); gold score, the largest score of a gold token, noise gap, by which
logsumexp of all other scores exceeds that of the gold ones, and gold mass, the weight
of gold tokens in the softmax, each averaged over queries, of the median head (table 9).
``--plot`` draws the shares over N. The paper uses 400 queries and layer 19 of 28; with
24 negatives for each query it has 10,000 documents. Its tables 1 and 9 are of a model
with ``--attention plain``.

A corpus of N documents is the first N of a list: the gold documents of all queries, and
then, with ``--fill nearest``, each query's nearest negative, each query's second, ...
The paper (section 3.3) fills it at random from all 10,000: ``--fill random``. We find
negatives by BM25, the paper by an embedding model.
"""

import argparse
import random
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from spscanner_lab.evaluation.corpus_units import CorpusUnits
from spscanner_lab.evaluation.judged import JudgedCorpus, read_beir
from spscanner_lab.in_context.block_search import read_corpus, search
from spscanner_lab.in_context.dilution import Dilution, dilution
from spscanner_lab.in_context.model import (
    Attention,
    BlockSearchModel,
    DocumentKeys,
)
from spscanner_rag.baselines.unit_kinds import segmenter_of

SHARES = ("recall@1", "first digit", "routing@B", "R_any", "R_sum", "GoldShare")
SIGNALS = ("gold score", "noise gap", "gold mass")
COLUMNS = (*SHARES, "|a|", *SIGNALS)
FORMATS = (".png", ".svg", ".pdf")


def main() -> None:
    """Print the table; draw it with ``--plot``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument(
        "--split", default="test", help="split of the judgements: qrels/SPLIT.tsv"
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[500, 1000, 2500, 5000, 10_000],
        metavar="N",
    )
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument(
        "--negatives", type=int, default=24, help="negatives of each query"
    )
    parser.add_argument(
        "--fill",
        choices=("nearest", "random"),
        default="nearest",
        help="which negatives a smaller corpus has; the paper: random",
    )
    parser.add_argument("--seed", type=int, default=0, help="for --fill random")
    parser.add_argument(
        "--layer", type=int, help="counted from 0; default: 19 of 28, or the same share"
    )
    parser.add_argument(
        "--attention", choices=get_args(Attention), help="default: the model's own"
    )
    parser.add_argument(
        "--best-documents",
        type=int,
        help="read by upper layers; default: the model's own",
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help=f"draw the table: {', '.join(FORMATS)}",
    )
    options = parser.parse_args()
    if options.plot is not None and options.plot.suffix.lower() not in FORMATS:
        parser.error(
            f"--plot {options.plot}: expected a name that ends with"
            f" {', '.join(FORMATS)}"
        )
    if options.plot is not None and find_spec("matplotlib") is None:
        parser.error("--plot draws with matplotlib: pip install matplotlib")
    changes: dict[str, Any] = {}
    if options.attention is not None:
        changes["attention"] = options.attention
    if options.best_documents is not None:
        changes["best_documents"] = options.best_documents
    model = BlockSearchModel.from_pretrained(
        options.model, dtype=options.dtype, device=options.device, **changes
    )
    layers = len(model.scalars)
    layer = round(layers * 19 / 28) if options.layer is None else options.layer
    if not 0 <= layer < layers:
        parser.error(f"--layer {layer}: expected 0 to {layers - 1}")
    judged = read_beir(options.corpus, options.split)
    queries = list(islice(judged.queries, options.queries))
    numbers, gold = hard_corpus(judged, queries, options.negatives)
    least = len({number for own in gold.values() for number in own})
    if options.fill == "random":
        numbers = filled_at_random(numbers, least, options.seed)
    if min(options.sizes) < least:
        parser.error(
            f"--sizes {min(options.sizes)}: expected at least {least}, the gold"
            " documents of the queries"
        )
    names = " | ".join(name.replace("|", "\\|") for name in COLUMNS)
    line = "|---" * (len(COLUMNS) + 1)
    print(f"| documents, layer {layer} | {names} |\n{line}|", flush=True)
    measured = {}
    for size in sorted({min(size, len(numbers)) for size in options.sizes}):
        measured[size] = row(model, judged, numbers[:size], gold, layer)
        print(
            f"| {size:,} | {' | '.join(f'{mean:.3f}' for mean in measured[size])} |",
            flush=True,
        )
    if options.plot is not None:
        draw(options.plot, measured, f"layer {layer}, {len(queries):,} queries")


def hard_corpus(
    judged: JudgedCorpus, queries: list[str], negatives: int
) -> tuple[list[int], dict[str, set[int]]]:
    """Return the documents' numbers, gold ones first, then negatives by rank.

    And each query's gold documents.
    """
    place = {
        document.doc_id: number for number, document in enumerate(judged.documents)
    }
    gold = {
        query: {place[name] for name, grade in judged.qrels[query].items() if grade > 0}
        for query in queries
    }
    units = CorpusUnits(judged.documents, segmenter_of("document"))
    index = units.index(units.every)
    ranked = []
    for query in queries:
        near = index.best_texts(
            judged.queries[query], negatives + len(judged.qrels[query])
        )
        ranked.append(
            [int(key) for key, _ in near if int(key) not in gold[query]][:negatives]
        )
    found = dict.fromkeys(number for own in gold.values() for number in sorted(own))
    for rank in range(negatives):
        found |= dict.fromkeys(own[rank] for own in ranked if rank < len(own))
    return list(found), gold


def filled_at_random(numbers: list[int], gold: int, seed: int) -> list[int]:
    """Return the documents with the ``gold`` ones first and the others shuffled.

    So every corpus has the documents of the smaller ones, and more from all of them.
    """
    others = numbers[gold:]
    random.Random(seed).shuffle(others)
    return numbers[:gold] + others


def row(
    model: BlockSearchModel,
    judged: JudgedCorpus,
    numbers: list[int],
    gold: dict[str, set[int]],
    layer: int,
) -> list[float]:
    """Return the numbers of `COLUMNS` for a corpus, averaged over queries."""
    documents = read_corpus(
        model, [judged.documents[number].text for number in numbers]
    )
    measured = []
    signals = []
    for query, right in gold.items():
        places = {place for place, number in enumerate(numbers) if number in right}
        text = judged.queries[query]
        attention = dilution(model, documents, text, places)
        measured.append(columns_of(model, documents, text, places, attention, layer))
        signals.append([of_heads.tolist() for of_heads in attention.signals[layer]])
    means: list[float] = np.mean(measured, 0).tolist()
    medians: list[float] = np.median(np.mean(signals, 0), -1).tolist()
    return means + medians


def columns_of(
    model: BlockSearchModel,
    documents: DocumentKeys,
    query: str,
    gold: set[int],
    attention: Dilution,
    layer: int,
) -> tuple[float, ...]:
    """Return the first numbers of `COLUMNS` for a query, up to `SIGNALS`."""
    with torch.inference_mode():
        result = search(model, documents, query)
    by_routing = np.argsort(-result.routing, kind="stable")
    routed = set(by_routing[: model.settings.best_documents].tolist())
    return (
        int(result.order()[0]) in gold,
        attention.first_digit[layer],
        bool(routed & gold),
        attention.any_head[layer],
        attention.all_heads[layer],
        attention.gold_share[layer],
        attention.output_norm[layer],
    )


def draw(path: Path, measured: Mapping[int, Sequence[float]], title: str) -> None:
    """Draw each of `SHARES` as a line over the number of documents."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.subplots()
    columns = list(zip(*measured.values(), strict=True))
    for name, values in zip(SHARES, columns, strict=False):
        axes.plot(list(measured), values, marker="o", label=name, gid=name)
    axes.set(title=title, xlabel="documents", xscale="log")
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()
