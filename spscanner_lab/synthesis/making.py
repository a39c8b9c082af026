"""Makes examples from documents with a language model.

The same call resumes a killed run in its folder.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from spscanner_lab.evidence.questions import Document
from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.budget import Budget
from spscanner_lab.llm.language_models import LanguageModel
from spscanner_lab.synthesis.conversation import Conversation, DroppedError
from spscanner_lab.synthesis.language_detection import LanguageDetector
from spscanner_lab.synthesis.made_question import document_line
from spscanner_lab.synthesis.outcomes import Outcome, Show, write_outcomes
from spscanner_lab.synthesis.prompt_files import Prompt, prompts_digest, read_prompts
from spscanner_lab.synthesis.run_folder import (
    asker_in,
    note_settings,
    refuse_folder_of_inputs,
    spent,
    write_summary,
)
from spscanner_lab.synthesis.scripted import NAME, model_of
from spscanner_lab.synthesis.settings import SynthesisSettings
from spscanner_lab.synthesis.sources import read_sources, source_files
from spscanner_lab.synthesis.strategies import Maker
from spscanner_lab.synthesis.sub_documents import SubDocument
from spscanner_lab.synthesis.supply import Supply
from spscanner_lab.training import Notify
from spscanner_lab.training.data.decontamination import SharedTextFinder
from spscanner_rag.baselines.bundled_token_counter import bundled_token_counter
from spscanner_rag.baselines.embedding_models import encoder_of
from spscanner_rag.system.folder_lock import folder_lock


def synthesize(  # noqa: PLR0913 - options of what users call
    settings: SynthesisSettings,
    out: Path,
    *,
    sources: Sequence[Path] = (),
    documents: Iterable[Document] | None = None,
    llm: object = NAME,
    against: Sequence[Path] = (),
    prompts: Path | None = None,
    embedder: object = "sentence-transformers/all-MiniLM-L6-v2",
    budget: Budget | None = None,
    workers: int = 8,
    sub_document_limit: int | None = None,
    notify: Notify = lambda message: None,
    show: Show = lambda done, examples, budget: None,
) -> dict[str, Any]:
    """Write training file, test file and summary, which is returned, into a folder.

    Call it with the same documents to resume the run in a folder: prompts that have a
    reply there are not asked again, and the budget includes them. The run ends early if
    the budget is spent, or the provider has no quota or does not reply; "stopped" in
    the summary says why, and every reply is stored.

    Parameters
    ----------
    settings : SynthesisSettings
        The strategy, and what sub-documents are cut.
    out : Path
        The folder.
    sources : sequence of Path
        Files and folders of documents.
    documents : iterable of Document, optional
        Documents instead of ``sources``.
    llm : str or object, default "scripted"
        The name of a model, or a model of either framework.
    against : sequence of Path
        Files of test documents; documents that share text with them are left out.
    prompts : Path, optional
        A folder whose prompts replace those of the package.
    embedder : str or object
        Finds similar sentences for the strategy "pair".
    budget : Budget, optional
        Limits of requests and cost.
    workers : int, default 8
        Sub-documents worked on at the same time.
    sub_document_limit : int, optional
        Most sub-documents.
    notify : callable
        Takes messages.
    show : callable
        Is called after each sub-document.

    Raises
    ------
    OtherRunError
        If the folder holds a run with other settings.
    FolderInUseError
        If another process writes there.
    """
    refuse_folder_of_inputs(out, source_files([*sources, *against]))
    wording = read_prompts(prompts)
    model = model_of(llm)
    needs_embedder = settings.strategy == "pair"
    run_settings = asdict(settings) | {
        "sources": list(map(str, sources)),
        "against": list(map(str, against)),
        "model": model.name,
        "prompts": prompts_digest(wording),
        "embedder": str(embedder) if needs_embedder else None,
    }
    with folder_lock(out):
        note_settings(out, run_settings)
        asker = asker_in(out, budget, workers, notify)
        detector = LanguageDetector() if settings.language_probability else None
        finder = _finder_of(against, notify)
        supply = Supply(settings, bundled_token_counter(), detector, finder)
        encoder = encoder_of(embedder) if needs_embedder else None
        maker = Maker(settings, detector, encoder)
        work = _Work(maker, asker, model, wording)
        if documents is None:
            documents = read_sources(source_files(sources))
        sub_documents = islice(supply.of(documents), sub_document_limit)
        start = time.perf_counter()
        counts = write_outcomes(
            out, asker, sub_documents, work.outcome_of, show, "sub-documents"
        )
        summary = {
            "documents": supply.documents,
            "documents_left_out": dict(supply.left_out),
            "shared_with_test_documents": supply.contaminated,
            "sub_documents": counts.items,
            **counts.as_json(),
            **spent(asker.budget),
            "seconds": round(time.perf_counter() - start, 1),
            "model": model.name,
        }
        write_summary(out, summary)
    return summary


def _finder_of(against: Sequence[Path], notify: Notify) -> SharedTextFinder | None:
    """Return what finds text of these test documents in others."""
    if not against:
        return None
    finder = SharedTextFinder(read_sources(source_files(against)))
    notify(f"documents are compared with {finder.held_out_documents:,} test documents")
    return finder


@dataclass(frozen=True, slots=True)
class _Work:
    """Makes the line of a question file for a sub-document."""

    maker: Maker
    asker: Asker
    model: LanguageModel
    wording: Mapping[str, Prompt]

    def outcome_of(self, sub_document: SubDocument) -> Outcome:
        settings = self.maker.settings
        ask = partial(self.asker.ask, self.model)
        conversation = Conversation(
            ask, self.wording, settings.tries, reasons=settings.reasons
        )
        try:
            question = self.maker.make(sub_document, conversation)
        except DroppedError as error:
            return Outcome(None, {str(error): 1}, conversation.malformed)
        versions = {name: prompt.version for name, prompt in self.wording.items()}
        provenance = {"model": self.model.name, "prompts": versions}
        line = document_line(sub_document, question, settings.strategy, provenance)
        return Outcome(line, {}, conversation.malformed)
