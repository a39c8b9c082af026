"""``spscanner synthesize``: make training and test data with a language model."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spscanner_lab.commands import run_report
from spscanner_lab.commands.spending_options import SpendingOptions
from spscanner_rag.apps.cli.declaring import argument, grouped, option
from spscanner_rag.apps.cli.messages import tell
from spscanner_rag.apps.cli.shared_options import PROGRESS

RESULTS = """\
The folder gets train.jsonl for `spscanner train --data`, test.jsonl for
`spscanner eval` (with --test-share), summary.json, and replies.jsonl with every prompt
and reply. The same command resumes an interrupted run. Exit code: 0 if examples were
written, 3 if the run ended early with examples, 1 if there are none, 2 for bad input.
"""


@grouped
def synthesize(
    sources: list[Path] = argument(
        "Text files, .jsonl files with a 'text' in each line, or folders of these.",
        "FILE...",
    ),
    out: Path = option(..., "Folder for the results; a run found there resumes."),
    *,
    llm: str = option(
        "scripted",
        "Model that makes the questions: PROVIDER:MODEL, such as openai:gpt-4o-mini,"
        " through LlamaIndex or LangChain, whichever is installed; FILE.py:NAME, your"
        " own model or function; or scripted, a stand-in that costs nothing, to try"
        " this out.",
    ),
    strategy: str = option(
        "link",
        "What a question is made from: link, two distant parts of a document; chunk, 20"
        " consecutive sentences; pair, 20 sentences and the 20 most similar ones.",
    ),
    sizes: str = option(
        "2000,5000,10000",
        "Lengths, in tokens, of the sub-documents (parts of documents) that questions"
        " are made from. All are equally frequent, unless weights are given:"
        " 2000:1,10000:2.",
    ),
    positions: str = option(
        "",
        "For --strategy link: where in the sub-document the two parts may lie, used in"
        " turn: pairs of start, middle, end and anywhere, such as start-end,middle-end."
        " Default: anywhere.",
    ),
    chunk_units: int = option(
        5, "For --strategy link: units of the first part; 20 sentences in the paper."
    ),
    unit_tokens: int = option(
        20, "For --strategy link: fewest tokens in a unit; 1 for sentences."
    ),
    question_from: str = option(
        "parts",
        "For --strategy link: what the question is written from, parts (both, and their"
        " connection) or connection (alone, as in the paper).",
    ),
    reasons: bool = option(
        False, "Replies begin with a reason, as in the paper; they cost more."
    ),
    per_document: int = option(1, "Most sub-documents per document.", lowest=1),
    most: int | None = option(
        None, "Most sub-documents in all; default: no limit.", lowest=1
    ),
    seed: int = option(0, "Seed for every random choice."),
    language: str = option(
        "en", "Language of the documents and questions, as a two-letter code."
    ),
    language_probability: float = option(
        0.8, "Least probability of --language; 0: all.", lowest=0, highest=1
    ),
    keep_boilerplate: bool = option(
        False,
        "Also make questions from licences and copyright notices.",
        names=["--keep-boilerplate/--no-keep-boilerplate"],
    ),
    against: list[Path] | None = option(
        None, "Leave out sources that share text with these.", "FILE..."
    ),
    test_share: float = option(
        0.0, "Share of documents that go to test.jsonl.", lowest=0, highest=1
    ),
    embedder: str = option(
        "sentence-transformers/all-MiniLM-L6-v2",
        "For --strategy pair: sentence-transformers model that finds similar"
        " sentences.",
    ),
    workers: int = option(8, "Sub-documents processed at the same time.", lowest=1),
    spending: SpendingOptions,
    progress: bool | None = PROGRESS,
) -> None:
    """Make a training file, and with --test-share a test file, from documents."""
    from spscanner_lab.synthesis import making
    from spscanner_lab.synthesis.settings import SynthesisSettings
    from spscanner_lab.synthesis.sources import source_files

    token_counts, weights = _sizes(sizes)
    settings = SynthesisSettings(
        strategy=strategy,  # type: ignore[arg-type]  # checked there
        seed=seed,
        sizes=token_counts,
        weights=weights,
        per_document=per_document,
        chunk_units=chunk_units,
        unit_tokens=unit_tokens,
        positions=tuple(_pairs_of_places(positions)),
        question_from=question_from,  # type: ignore[arg-type]  # checked there
        reasons=reasons,
        language=language,
        language_probability=language_probability,
        boilerplate=not keep_boilerplate,
        test_share=test_share,
    )
    # what is missing is reported before any work
    source_files([*sources, *(against or ())])
    with run_report.run_progress(progress, "sub-documents") as show:
        summary = making.synthesize(
            settings,
            out,
            sources=sources,
            llm=llm,
            against=against or (),
            prompts=spending.prompts,
            embedder=embedder,
            budget=spending.budget(),
            workers=workers,
            sub_document_limit=most,
            notify=tell,
            show=show,
        )
    run_report.end_run(_summary_lines(summary, out), summary)


def _summary_lines(summary: Mapping[str, Any], out: Path) -> list[str]:
    lines = run_report.files_with_lines(summary, out, "examples")
    lines.append(
        f"{summary['examples']:,} examples of {summary['sub_documents']:,}"
        f" sub-documents and {summary['documents']:,} documents;"
        f" {run_report.spending(summary)}"
    )
    if summary["model"] == "scripted":
        lines.append(
            "these questions are from the scripted stand-in, for trying this out: give"
            " --llm for real ones"
        )
    for name in ("documents_left_out", "dropped", "malformed_replies"):
        lines += run_report.reasons(summary, name)
    return lines


def _pairs_of_places(positions: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of places in ``--positions``, such as ("start", "end")."""
    for pair in positions.split(","):
        if pair:
            # `SynthesisSettings` refuses what is not a pair, and says what it got
            yield tuple(pair.strip().split("-"))  # type: ignore[misc]


def _sizes(value: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the numbers of tokens in ``--sizes``, and the weight of each."""
    sizes = []
    weights = []
    try:
        for part in value.split(","):
            size, _, weight = part.partition(":")
            sizes.append(int(size))
            weights.append(float(weight or 1))
    except ValueError:
        raise ValueError(
            f"--sizes: got {value!r:.60}; expected numbers of tokens separated by"
            " commas, each optionally followed by a colon and a weight"
        ) from None
    return tuple(sizes), tuple(weights)
