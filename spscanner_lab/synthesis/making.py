"""Makes examples from documents with a language model, in a folder where the same call resumes a killed run."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from spscanner_lab.evidence.questions import Document
from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.budget import Budget, RunEndedError
from spscanner_lab.llm.reply_file import ReplyFile
from spscanner_lab.synthesis.conversation import (
    NAME,
    Conversation,
    DroppedError,
    model_of,
    prompts_digest,
    read_prompts,
)
from spscanner_lab.synthesis.strategies import Maker, document_line
from spscanner_lab.synthesis.sub_documents import (
    LanguageDetector,
    SubDocument,
    Supply,
    SynthesisSettings,
    read_sources,
    source_files,
)
from spscanner_lab.training import Notify
from spscanner_lab.training.data.decontamination import SharedTextFinder
from spscanner_rag.baselines.combined import bundled_token_counter
from spscanner_rag.baselines.dense import encoder_of
from spscanner_rag.system.folder_lock import folder_lock
from spscanner_rag.system.run_inputs import earlier_run, refuse_other_run
from spscanner_rag.system.whole_files import (
    fsync_file,
    telling_of_full_disks,
    write_whole,
)
from spscanner_rag.text.token_counts import CountTokens, resolve_counter

MOST_FAILURES = 20
"""A run ends after this many sub-documents in a row without a reply, since the
provider must be unavailable."""

PRICED_ENCODING = "o200k_base"  # counts tokens if a reply does not report them
SETTINGS, REPLIES, SUMMARY = "settings.json", "replies.jsonl", "summary.json"
FILES = {"train": "train.jsonl", "test": "test.jsonl"}

Show = Callable[
    [int, int, Budget], object
]  # takes the numbers of sub-documents and examples so far
Outcome = tuple[Mapping[str, Any] | None, str, Mapping[str, int]]
"""A line of a question file, or None and the reason; and counts of what was wrong
with replies."""


def synthesize(
    settings: SynthesisSettings,
    out: Path,
    *,
    sources: Sequence[Path] = (),  # files and folders of documents
    documents: Iterable[Document] | None = None,  # by default those of the sources
    llm: object = NAME,  # the name of a model, or a model of either framework
    against: Sequence[Path] = (),  # files of test documents
    prompts: Path | None = None,  # a folder whose prompts replace those of the package
    # for the strategy "pair"
    embedder: object = "sentence-transformers/all-MiniLM-L6-v2",
    budget: Budget | None = None,
    workers: int = 8,  # sub-documents worked on at the same time
    most: int | None = None,  # maximum number of sub-documents
    notify: Notify = lambda message: None,
    show: Show = lambda done, examples, budget: None,
) -> dict[str, Any]:
    """Write training file, test file and summary into a folder, and return the summary.

    Call it with the same documents to resume the run in a folder: prompts that have a
    reply there are not asked again, and the budget includes them. The run ends early if
    the budget is spent, or the provider has no quota or does not reply; "stopped" in
    the summary says why, and every reply is kept. ``show`` is called after each
    sub-document. `OtherRunError` if the folder holds a run with other settings,
    `FolderInUseError` if another process writes there.
    """
    wording, model = read_prompts(prompts), model_of(llm)
    run = asdict(settings) | {
        "sources": list(map(str, sources)),
        "against": list(map(str, against)),
        "model": model.name,
        "prompts": prompts_digest(wording),
        "embedder": str(embedder) if settings.strategy == "pair" else None,
    }
    with folder_lock(out):
        if (out / SETTINGS).exists():
            refuse_other_run(out, earlier_run(out / SETTINGS, "replies"), run)
        else:
            write_whole(out / SETTINGS, json.dumps(run, indent=2) + "\n")
        replies = ReplyFile(out / REPLIES)
        if len(replies):
            notify(f"found {len(replies):,} replies, which are not asked for again")
        # the budget includes what earlier runs spent
        budget = replace(
            budget or Budget(), requests=replies.attempts, usage=replies.usage
        )
        tokens_of = _price_counter(notify)
        asker = Asker(
            replies=replies,
            budget=budget,
            count_tokens=tokens_of,
            workers=workers,
            retries=6,
        )
        detector = LanguageDetector() if settings.language_probability else None
        finder = (
            SharedTextFinder(read_sources(source_files(against))) if against else None
        )
        if finder is not None:
            notify(
                f"documents are compared with {finder.held_out_documents:,} test"
                " documents"
            )
        supply = Supply(settings, bundled_token_counter(), detector, finder)
        encoder = encoder_of(embedder) if settings.strategy == "pair" else None
        maker, ask = Maker(settings, detector, encoder), partial(asker.ask, model)
        provenance = {
            "model": model.name,
            "prompts": {name: own.version for name, own in wording.items()},
        }

        def outcome(sub: SubDocument) -> Outcome:
            talk = Conversation(ask, wording, settings.tries)
            try:
                found = maker.make(sub, talk)
            except DroppedError as error:
                return None, str(error), talk.malformed
            return (
                document_line(sub, found, settings.strategy, provenance),
                "",
                talk.malformed,
            )

        if documents is None:
            documents = read_sources(source_files(sources))
        began = time.perf_counter()
        made = _made(out, asker, islice(supply.of(documents), most), outcome, show)
        summary = {
            "documents": supply.documents,
            "documents_left_out": dict(supply.left_out),
            "shared_with_test_documents": supply.contaminated,
            **made,
            "requests": budget.requests,
            "prompt_tokens": budget.usage.prompt_tokens,
            "reply_tokens": budget.usage.reply_tokens,
            "cost": round(budget.cost, 6),
            "seconds": round(time.perf_counter() - began, 1),
            "model": model.name,
        }
        write_whole(out / SUMMARY, json.dumps(summary, indent=2) + "\n")
    return summary


def _made(
    out: Path,
    asker: Asker,
    subs: Iterable[SubDocument],
    outcome: Callable[[SubDocument], Outcome],
    show: Show,
) -> dict[str, Any]:
    """Write the examples of sub-documents to files that replace the earlier ones at the end; return counts."""
    counts, dropped, malformed = Counter[str](), Counter[str](), Counter[str]()
    failures, stopped = 0, ""
    parts = {split: out / f"{name}.part" for split, name in FILES.items()}
    with ExitStack() as opened:
        files = {
            split: opened.enter_context(part.open("w", encoding="ascii"))
            for split, part in parts.items()
        }
        results = opened.enter_context(closing(asker.in_order(subs, outcome)))
        try:
            for line, reason, wrong in results:
                malformed.update(wrong)
                if line is None:
                    dropped[reason] += 1
                else:
                    counts[split := line["split"]] += 1
                    with telling_of_full_disks(parts[split]):
                        print(json.dumps(line), file=files[split], flush=True)
                failures = failures + 1 if reason.startswith("no reply") else 0
                if failures >= MOST_FAILURES:
                    raise RunEndedError(
                        f"{failures} sub-documents in a row got {reason}"
                    )
                show(counts.total() + dropped.total(), counts.total(), asker.budget)
        except RunEndedError as error:
            stopped = asker.budget.stopped or str(error)
    for split, name in FILES.items():
        if counts[split]:
            fsync_file(parts[split])
            parts[split].replace(out / name)
        else:
            parts[split].unlink()
            (out / name).unlink(missing_ok=True)
    return {
        "sub_documents": counts.total() + dropped.total(),
        "examples": counts.total(),
        "files": {name: counts[split] for split, name in FILES.items()},
        "dropped": dict(dropped.most_common()),
        "malformed_replies": dict(malformed.most_common()),
        "stopped": stopped,
    }


def _price_counter(notify: Notify) -> CountTokens:
    """A counter of tokens as providers count them, or nearly, if the file of that encoding is missing."""
    try:
        return resolve_counter(PRICED_ENCODING)
    except OSError as error:
        notify(f"tokens are counted with the bundled checkpoint's tokenizer: {error}")
        return bundled_token_counter()
