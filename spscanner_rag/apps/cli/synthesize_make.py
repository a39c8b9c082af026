"""``spscanner synthesize make``: examples for training and tests from plain documents."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spscanner_rag.apps.cli.options import (
    ShowProgress,
    at_least,
    grouped,
    optional,
    optional_number,
    shows_progress,
    tell,
)
from spscanner_rag.text.escaping import one_line

if TYPE_CHECKING:
    from spscanner_rag.lab.llm.asking import Prices
    from spscanner_rag.lab.synthesis.making import RunOptions, SynthesisRun
    from spscanner_rag.lab.synthesis.settings import SynthesisSettings

RESULTS = """The folder gets train.jsonl for `spscanner train --data`, test.jsonl for `spscanner eval` (with
--test-share), summary.json, and replies.jsonl with every prompt and reply. The same command resumes a run that was
interrupted. Exit code: 0 if examples were written, 3 if the run ended early with examples, 1 if there are none, 2
for bad input.
"""

NOTHING_USABLE, ENDED_EARLY = 1, 3
"""Exit codes of runs without a result, and of runs that ended before all was asked."""

MinWords = Annotated[
    int, typer.Option(min=1, help="Sentences with fewer words do not count as shared; 1 counts all.")
]
MaxShare = Annotated[
    float,
    typer.Option(
        min=0,
        help="Share of a document's sentences that may be shared, below 1; a document with more is dropped.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class AskingOptions:
    """How a language model is asked, and what that may cost."""

    prompts: Annotated[
        Path | None,
        optional("Folder of prompts; they replace those of the package that have the same names.", "DIR"),
    ] = None
    reply_form: Annotated[
        str,
        typer.Option(
            help="Form of replies: json; keywords, lines that begin with one; auto, json where the model's "
            "framework can hold it to a schema."
        ),
    ] = "auto"
    workers: Annotated[
        int, typer.Option(min=1, help="Documents, or sub-documents, worked on at the same time.")
    ] = 8
    max_requests: Annotated[
        int | None, optional_number("Most requests, those of earlier runs in the folder included.")
    ] = None
    max_cost: Annotated[
        float | None,
        optional_number("Most that all of these may cost, in the currency of the prices.", float),
    ] = None
    price_prompt: Annotated[
        float, typer.Option(min=0, help="Price of a million prompt tokens, in your currency.")
    ] = 0.0
    price_reply: Annotated[float, typer.Option(min=0, help="Price of a million reply tokens.")] = 0.0

    def of_run(self, sources: Sequence[Path] = (), **others: Any) -> "RunOptions":  # noqa: ANN401 - of `RunOptions`
        """The options of a run on these sources, with others that only this run has."""
        from spscanner_rag.lab.llm.asking import Prices
        from spscanner_rag.lab.synthesis.making import RunOptions

        return RunOptions(
            sources=tuple(sources),
            prompts=self.prompts,
            reply_form=self.reply_form,
            prices=Prices(self.price_prompt, self.price_reply),
            max_requests=self.max_requests,
            max_cost=self.max_cost,
            **others,
        )


@grouped
def make(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Files of text, .jsonl files with a document under 'text' in each line, or folders of these.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results; a run found there resumes.")],
    *,
    llm: Annotated[
        str,
        typer.Option(
            help="Model that makes the questions: PROVIDER:MODEL, such as openai:gpt-4o-mini, through LlamaIndex "
            "or LangChain, whichever is installed; FILE.py:NAME, a model or a function of yours; or scripted, a "
            "stand-in that costs nothing, to try this out."
        ),
    ] = "scripted",
    strategy: Annotated[
        str,
        typer.Option(
            help="What a question is made from: link, two parts of a document that are far apart; chunk, 20 "
            "sentences in a row; pair, 20 sentences and the 20 most similar ones."
        ),
    ] = "link",
    sizes: Annotated[
        str,
        typer.Option(
            help="Lengths, in tokens, of the stretches of documents (sub-documents) that questions are made from. "
            "They come equally often, or by weights: 2000:1,10000:2."
        ),
    ] = "2000,5000,10000",
    positions: Annotated[
        str,
        typer.Option(
            help="For --strategy link: where in the sub-document the two parts may stand, by turns: pairs of "
            "start, middle, end and anywhere, such as start-end,middle-end. Default: anywhere.",
            show_default=False,
        ),
    ] = "",
    per_document: Annotated[int, typer.Option(min=1, help="Most sub-documents of one document.")] = 1,
    most: Annotated[int | None, at_least(1, "Most sub-documents in all; default: no limit.")] = None,
    seed: Annotated[int, typer.Option(help="Decides every random choice.")] = 0,
    language: Annotated[
        str, typer.Option(help="Language of the documents and questions, as a code of two letters.")
    ] = "en",
    language_probability: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Documents are left out if the language is less probable than this; 0 takes every document.",
        ),
    ] = 0.8,
    keep_boilerplate: Annotated[
        bool,
        typer.Option("--keep-boilerplate", help="Also make questions from licences and copyright notices."),
    ] = False,
    against: Annotated[
        list[Path] | None,
        optional("Test documents; source documents that share text with them are left out.", "FILE..."),
    ] = None,
    min_words: MinWords = 10,
    max_share: MaxShare = 0.01,
    test_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of documents for test.jsonl instead of train.jsonl.")
    ] = 0.0,
    embedder: Annotated[
        str,
        typer.Option(help="For --strategy pair: sentence-transformers model that finds similar sentences."),
    ] = "sentence-transformers/all-MiniLM-L6-v2",
    asking: AskingOptions,
    requests_per_minute: Annotated[
        float | None, optional_number("Most requests a minute; default: no limit.", float)
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Estimate requests, tokens and, with prices, the cost; ask nothing."),
    ] = False,
    write_batch: Annotated[
        Path | None,
        optional(
            "Write the requests to this file, to be sent to a provider as a batch; ask nothing.", "FILE"
        ),
    ] = None,
    batch_format: Annotated[
        str, typer.Option(help="Form of the file of --write-batch: openai or anthropic.")
    ] = "openai",
    read_batch: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="REQUESTS RESULTS",
            help="Take in the results of a batch first: the file of --write-batch, and the provider's.",
            show_default=False,
        ),
    ] = None,
    progress: ShowProgress = None,
) -> None:
    """Make a training file, and with --test-share a test file, from documents."""
    from spscanner_rag.files.folder_lock import folder_lock
    from spscanner_rag.lab.synthesis.settings import SynthesisSettings
    from spscanner_rag.lab.synthesis.sources import source_files

    numbers, weights = _sizes(sizes)
    settings = SynthesisSettings(
        strategy=strategy,  # type: ignore[arg-type]  # checked there
        seed=seed,
        sizes=numbers,
        weights=weights,
        per_document=per_document,
        positions=_positions(positions),
        language=language,
        language_probability=language_probability,
        boilerplate=not keep_boilerplate,
        min_words=min_words,
        max_share=max_share,
        test_share=test_share,
    )
    options = asking.of_run(
        sources,
        llm=llm,
        against=tuple(against or ()),
        embedder=embedder,
        requests_per_minute=requests_per_minute,
    )
    source_files(options.sources)  # what is missing is reported before any work
    source_files(options.against)
    with folder_lock(out):
        if dry_run:
            _estimate(settings, options, out, most)
            return
        from spscanner_rag.lab.synthesis.making import SynthesisRun

        with SynthesisRun(settings, options, out, asking.workers, most, tell) as run:
            if read_batch is not None:
                came, failed = run.take_batch(*read_batch)
                tell(f"took {came:,} replies of the batch; {failed:,} requests failed and are asked again")
            run.run(write_batch, batch_format, _progress(shows_progress(progress)))
            counts = run.write()
    _write_summary(run, counts, out)
    if run.pending:
        return
    if not run.outcomes.examples:
        raise typer.Exit(NOTHING_USABLE)
    if run.stopped:
        raise typer.Exit(ENDED_EARLY)


def _estimate(settings: "SynthesisSettings", options: "RunOptions", out: Path, most: int | None) -> None:
    from spscanner_rag.lab.synthesis.making import estimate_of
    from spscanner_rag.lab.synthesis.outcomes import ESTIMATE, write_json

    figures = estimate_of(settings, options, most, tell)
    write_json(out / ESTIMATE, figures)
    sys.stdout.write(
        f"{figures['sub_documents']:,} sub-documents of {figures['documents']:,} documents, "
        f"{figures['requests']:,} requests, {figures['prompt_tokens']:,} prompt tokens, "
        f"{figures['reply_tokens']:,} reply tokens{_cost(figures['cost'], options.prices)}\n"
        f"{one_line(str(out / ESTIMATE))}: the estimate; nothing was asked\n"
    )


def _cost(cost: float, prices: "Prices") -> str:
    return f", cost {cost:,.2f}" if prices.prompt or prices.reply else ", no prices given"


@contextmanager
def _progress(visible: bool) -> "Iterator[Callable[[SynthesisRun], None]]":
    from rich.progress import TextColumn

    from spscanner_rag.apps.pages.terminal import open_console, progress_bars

    made = TextColumn("{task.fields[made]}", markup=False)
    with progress_bars(open_console(sys.stderr), made, disable=not visible) as bars:
        bar = bars.add_task("sub-documents", total=None, made="")

        def show(run: "SynthesisRun") -> None:
            budget = run.budget
            made = f"{run.outcomes.examples:,} examples, {budget.requests:,} requests"
            bars.update(bar, completed=run.outcomes.done, made=f"{made}, cost {budget.cost:,.2f}")

        yield show


def _write_summary(run: "SynthesisRun", counts: dict[str, int], out: Path) -> None:
    summary = run.summary()
    lines = [f"{count:,} examples in {one_line(str(out / name))}" for name, count in counts.items() if count]
    lines.append(
        f"{summary['examples']:,} examples of {summary['sub_documents']:,} sub-documents and "
        f"{summary['documents']:,} documents; {summary['requests']:,} requests, "
        f"{summary['prompt_tokens']:,} prompt tokens, {summary['reply_tokens']:,} reply tokens, "
        f"cost {summary['cost']:,.4f}"
    )
    if run.model.language_model.name == "scripted":
        lines.append(
            "these questions are by the scripted stand-in, to try this out: give --llm for real ones"
        )
    for name in ("documents_left_out", "dropped", "malformed_replies"):
        if summary[name]:
            counted = ", ".join(f"{one_line(reason)} ({count:,})" for reason, count in summary[name].items())
            lines.append(f"{name.replace('_', ' ')}: {counted}")
    if summary["waiting_for_a_batch"]:
        lines.append(f"{summary['waiting_for_a_batch']:,} sub-documents wait for the replies of the batch")
    if summary["stopped"]:
        lines.append(f"ended early: {one_line(summary['stopped'])}; the same command goes on")
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _sizes(value: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
    try:
        pairs = [part.partition(":") for part in value.split(",")]
        return tuple(int(size) for size, _, _ in pairs), tuple(float(weight or 1) for _, _, weight in pairs)
    except ValueError:
        raise ValueError(
            f"--sizes: got {value!r:.60}; expected numbers of tokens with commas between them, each perhaps with "
            "a colon and a weight"
        ) from None


def _positions(value: str) -> tuple[tuple[str, str], ...]:
    if not value:
        return ()
    pairs = [part.strip().partition("-") for part in value.split(",")]
    return tuple((first, second) for first, _, second in pairs)
