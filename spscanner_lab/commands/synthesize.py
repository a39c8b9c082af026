"""``spscanner synthesize``: make training and test data from documents with a language model."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from spscanner_rag.apps.cli.options import PROGRESS, argument, option, tell
from spscanner_rag.text.escaping import one_line

if TYPE_CHECKING:
    from spscanner_lab.llm.budget import Budget

RESULTS = """The folder gets train.jsonl for `spscanner train --data`, test.jsonl for `spscanner eval` (with
--test-share), summary.json, and replies.jsonl with every prompt and reply. The same command resumes an
interrupted run. Exit code: 0 if examples were written, 3 if the run ended early with examples, 1 if there are
none, 2 for bad input.
"""

NOTHING_USABLE, ENDED_EARLY = 1, 3
"""Exit codes of runs without an example, and of runs that ended before all requests
were made."""


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
    per_document: int = option(1, "Most sub-documents per document.", least=1),
    most: int | None = option(
        None, "Most sub-documents in all; default: no limit.", least=1
    ),
    seed: int = option(0, "Seed for every random choice."),
    language: str = option(
        "en", "Language of the documents and questions, as a two-letter code."
    ),
    language_probability: float = option(
        0.8, "Least probability of --language; 0: all.", least=0, most=1
    ),
    keep_boilerplate: bool = option(
        False, "Also make questions from licences and copyright notices."
    ),
    against: list[Path] | None = option(
        None, "Leave out sources that share text with these.", "FILE..."
    ),
    test_share: float = option(
        0.0, "Share of documents that go to test.jsonl.", least=0, most=1
    ),
    embedder: str = option(
        "sentence-transformers/all-MiniLM-L6-v2",
        "For --strategy pair: sentence-transformers model that finds similar"
        " sentences.",
    ),
    prompts: Path | None = option(
        None, "Folder of prompts, which replace the package's by name.", "DIR"
    ),
    workers: int = option(8, "Sub-documents processed at the same time.", least=1),
    max_requests: int | None = option(
        None, "Most requests, including the folder's earlier runs.", least=0
    ),
    max_cost: float | None = option(
        None, "Most that requests may cost, by --price-*.", least=0
    ),
    price_prompt: float = option(
        0.0, "Price of a million prompt tokens, in your currency.", least=0
    ),
    price_reply: float = option(0.0, "Price of a million reply tokens.", least=0),
    requests_per_minute: float | None = option(
        None, "Most requests per minute; default: no limit.", least=1
    ),
    progress: bool = PROGRESS,
) -> None:
    """Make a training file, and with --test-share a test file, from documents."""
    from spscanner_lab.llm.budget import Budget, Prices
    from spscanner_lab.synthesis import making
    from spscanner_lab.synthesis.sub_documents import SynthesisSettings, source_files

    numbers, weights = _sizes(sizes)
    settings = SynthesisSettings(
        strategy=strategy,  # type: ignore[arg-type]  # checked there
        seed=seed,
        sizes=numbers,
        weights=weights,
        per_document=per_document,
        chunk_units=chunk_units,
        unit_tokens=unit_tokens,
        positions=tuple(_places(positions)),
        language=language,
        language_probability=language_probability,
        boilerplate=not keep_boilerplate,
        test_share=test_share,
    )
    prices = Prices(price_prompt, price_reply)
    budget = Budget(
        prices=prices,
        max_requests=max_requests,
        max_cost=max_cost,
        per_minute=requests_per_minute,
    )
    source_files(
        [*sources, *(against or ())]
    )  # what is missing is reported before any work
    with _progress(progress) as show:
        summary = making.synthesize(
            settings,
            out,
            sources=sources,
            llm=llm,
            against=against or (),
            prompts=prompts,
            embedder=embedder,
            budget=budget,
            workers=workers,
            most=most,
            notify=tell,
            show=show,
        )
    _write_summary(summary, out)
    if not summary["examples"]:
        raise typer.Exit(NOTHING_USABLE)
    if summary["stopped"]:
        raise typer.Exit(ENDED_EARLY)


@contextmanager
def _progress(visible: bool) -> "Iterator[Callable[[int, int, Budget], None]]":
    from rich.progress import TextColumn

    from spscanner_rag.apps.pages.terminal import progress_bars

    made = TextColumn("{task.fields[made]}", markup=False)
    with progress_bars(visible, made) as bars:
        bar = bars.add_task("sub-documents", total=None, made="")

        def show(done: int, examples: int, budget: "Budget") -> None:
            made = (
                f"{examples:,} examples, {budget.requests:,} requests, cost"
                f" {budget.cost:,.2f}"
            )
            bars.update(bar, completed=done, made=made)

        yield show


def _write_summary(summary: dict[str, Any], out: Path) -> None:
    lines = [
        f"{count:,} examples in {one_line(str(out / name))}"
        for name, count in summary["files"].items()
        if count
    ]
    lines.append(
        f"{summary['examples']:,} examples of {summary['sub_documents']:,}"
        f" sub-documents and {summary['documents']:,} documents;"
        f" {summary['requests']:,} requests, {summary['prompt_tokens']:,} prompt"
        f" tokens, {summary['reply_tokens']:,} reply tokens, cost"
        f" {summary['cost']:,.4f}"
    )
    if summary["model"] == "scripted":
        lines.append(
            "these questions are from the scripted stand-in, for trying this out: give"
            " --llm for real ones"
        )
    for name in ("documents_left_out", "dropped", "malformed_replies"):
        if summary[name]:
            counted = ", ".join(
                f"{one_line(reason)} ({count:,})"
                for reason, count in summary[name].items()
            )
            lines.append(f"{name.replace('_', ' ')}: {counted}")
    if summary["stopped"]:
        lines.append(
            f"ended early: {one_line(summary['stopped'])}; the same command resumes"
        )
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _places(positions: str) -> Iterator[tuple[str, str]]:
    """The pairs of places in ``--positions``, such as ("start", "end")."""
    for pair in positions.split(","):
        if pair:
            # `SynthesisSettings` refuses what is not a pair, and says what it got
            yield tuple(pair.strip().split("-"))  # type: ignore[misc]


def _sizes(value: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
    try:
        pairs = [part.partition(":") for part in value.split(",")]
        return tuple(int(size) for size, _, _ in pairs), tuple(
            float(weight or 1) for _, _, weight in pairs
        )
    except ValueError:
        raise ValueError(
            f"--sizes: got {value!r:.60}; expected numbers of tokens separated by"
            " commas, each optionally followed by a colon and a weight"
        ) from None


def from_released(
    files: list[Path] = argument(
        "Released files: training files, .jsonl, or test files, .json.", "FILE..."
    ),
    out: Path = option(..., "Question file to write, .jsonl."),
    tokenizer: Path | None = option(
        None, "tokenizer.json of EleutherAI/gpt-neox-20b, for training files."
    ),
) -> None:
    """Convert files that the paper's authors released into question files, for people who have them."""
    from spscanner_lab.synthesis.released import read_released, read_released_tests
    from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer
    from spscanner_rag.system.whole_files import whole_file

    training = [path for path in files if path.suffix != ".json"]
    if training and tokenizer is None:
        raise ValueError(
            f"got {training[0]}, a training file, without --tokenizer; expected both"
        )
    tokens = (
        []
        if tokenizer is None
        else [read_released(training, read_tokenizer(tokenizer))]
    )
    lines = chain(
        *tokens,
        *(read_released_tests(path) for path in files if path.suffix == ".json"),
    )
    with (
        whole_file(out) as unfinished,
        unfinished.open("w", encoding="ascii") as target,
    ):
        count = 0
        for line in lines:
            target.write(json.dumps(line) + "\n")
            count += 1
        if not count:
            raise ValueError(f"{files[0]}: no record; expected released data")
    sys.stdout.write(f"{count:,} questions in {one_line(str(out))}\n")
