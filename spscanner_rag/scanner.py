"""`Scanner`, which reads a question and a whole text, and scores every sentence."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.checkpoint.config import CHECKPOINT_DEFAULT, CheckpointDefault
from spscanner_rag.checkpoint.loaded import LoadedCheckpoint
from spscanner_rag.checkpoint.location import local_folder
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import ScanResult
from spscanner_rag.results.document_scores import Aggregation, check_aggregation
from spscanner_rag.results.ranked_documents import RankedDocument, rank_results
from spscanner_rag.scan.computing import Computing
from spscanner_rag.scan.computing_choice import (
    check_names,
    choose_computing,
    computes_in_numpy,
)
from spscanner_rag.scan.meter import Meter
from spscanner_rag.scan.options import check_options
from spscanner_rag.scan.pipeline import Pipeline, check_text, warn_of_path
from spscanner_rag.scan.prepared_arrays import (
    indexed_from_arrays,
    preparation_of,
    prepared_to_arrays,
)
from spscanner_rag.scan.prepared_document import Document, PreparedDocument
from spscanner_rag.scan.reading import Reading
from spscanner_rag.scan.requests import ScanRequest
from spscanner_rag.scan.segment_tokens import default_segment_tokens
from spscanner_rag.scorers import (
    Cancelled,
    PreparedText,
    Progress,
    Read,
    ScanCancelled,
    Scorer,
    UnitScores,
    check_read,
    refuse_share,
    unit_name_of,
)
from spscanner_rag.system.threads import use_threads
from spscanner_rag.text.blocks import Block, StructuredText
from spscanner_rag.text.encoding import token_counter
from spscanner_rag.text.keep_scale import KeepScale
from spscanner_rag.text.segmentation import reference_segmenter
from spscanner_rag.text.units import Segmenter, Unit

if TYPE_CHECKING:
    import torch

__all__ = ["CHECKPOINT_DEFAULT", "ScanCancelled", "Scanner"]


class _Preparing:
    """What scanners share that prepare texts alike."""


class Scanner(Scorer):
    """Scores every sentence of a text for a question, in one pass over the text.

    One scanner may be used from several threads at once.

    Parameters
    ----------
    checkpoint : LoadedCheckpoint
        From `spscanner_rag.checkpoint.load_checkpoint`. Most callers want
        `from_pretrained`.
    window_tokens : int or None, optional
        Read the text in windows of this many tokens, half overlapping, and average
        their logits; None reads any length in one pass. Default: the checkpoint's
        setting.
    segment_tokens : int, optional
        Tokens per forward pass. Bounds memory; changes only rounding. Default: by
        device, and on a CPU also by the model's width. Never more than the backend's
        kernels can index.
    segmenter : Segmenter or str, optional
        Anything with a ``segment(text)`` method, or "sentence" or "reference". Default:
        the checkpoint's.
    read : "auto", "all" or float, default "auto"
        What is read of a text unless `scan` is told otherwise.
    computing : Computing, optional
        Why device, dtype and kernels are what they are, for `spscanner info`.
    local_files_only : bool, default False
        Never download NLTK's sentence model, which the reference segmenter needs.

    Raises
    ------
    ValueError
        For an unknown segmenter, a number of tokens below 1, or a share to read if the
        checkpoint has no sentence scan.
    """

    def __init__(
        self,
        checkpoint: LoadedCheckpoint,
        *,
        window_tokens: int | CheckpointDefault | None = CHECKPOINT_DEFAULT,
        segment_tokens: int | None = None,
        segmenter: Segmenter | str | None = None,
        read: Read = "auto",
        computing: Computing | None = None,
        local_files_only: bool = False,
    ) -> None:
        check_options(window_tokens, segment_tokens, segmenter)
        self.checkpoint = checkpoint
        token_reader = checkpoint.token_reader
        settings = checkpoint.settings
        self.device = token_reader.device
        self.dtype = token_reader.dtype
        self.device_reason = "where the model was loaded"
        self.dtype_reason = "as the model was loaded"
        self.backend = token_reader.backend
        self.backend_reason = "as the model was loaded"
        if computing is not None:
            self.device_reason = computing.device_reason
            self.dtype_reason = computing.dtype_reason
            self.backend_reason = computing.backend_reason
        if isinstance(window_tokens, CheckpointDefault):
            window_tokens = settings.window_tokens
        self.window_tokens: int | None = window_tokens
        self.segment_tokens = min(
            segment_tokens
            or default_segment_tokens(self.device.type, token_reader.config),
            token_reader.most_tokens,
        )
        if segmenter is None:
            segmenter = settings.segmenter
        if segmenter == "reference":
            segmenter = reference_segmenter(self.count_tokens, local_files_only)
        self.reading = Reading.of(checkpoint, segmenter)
        self.read = self._checked_read(read)
        self._prepares_for = _Preparing()
        self.pipeline = Pipeline(
            token_reader, self.reading, self.window_tokens, self.segment_tokens
        )

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path | None = None,
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "auto",
        backend: Literal["auto", "torch", "numba", "mamba-ssm", "numpy"] = "auto",
        window_tokens: int | CheckpointDefault | None = CHECKPOINT_DEFAULT,
        segment_tokens: int | None = None,
        segmenter: Segmenter | str | None = None,
        read: Read = "auto",
        tokenizer: Tokenizer | str | Path | None = None,
        encoder: str | Path | object | None = "default",
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        threads: int | None = None,
    ) -> Scanner:
        """Load a scanner.

        Parameters
        ----------
        model : str or Path, optional
            A local folder or a Hub id such as "MambaRetriever/SPScanner-130m". Default:
            the bundled checkpoint.
        device : str or torch.device, default "auto"
            "auto" takes CUDA, then MPS, then the CPU.
        dtype : str or torch.dtype, default "auto"
            "float32" or "bfloat16"; "auto" takes bfloat16 where the hardware multiplies
            it natively and faster.
        backend : "auto", "torch", "numba", "mamba-ssm" or "numpy", default "auto"
            What computes the layers: plain torch, kernels that numba compiles for the
            CPU, mamba-ssm's Triton kernels, or numpy without torch, which reads the
            bundled checkpoint and others of its kind in float32. "auto" takes numba on
            a CPU and mamba-ssm on an NVIDIA GPU if they are installed, else torch, and
            numpy where torch is not installed.
        window_tokens, segment_tokens, segmenter, read
            As for `Scanner`.
        tokenizer : tokenizers.Tokenizer, str or Path, optional
            Replaces the checkpoint's own: a tokenizer, its file or folder, or a Hub id.
        encoder : str, Path or object, default "default"
            What makes the vectors of sentences, which match a question asked in other
            words. "default": the checkpoint's own, if it has one; or the file, folder
            or Hub id of a BERT-like sentence-transformers model, or an embedding object
            of LangChain, LlamaIndex or sentence-transformers. None: no encoder.
        revision : str, optional
            Branch, tag or commit on the Hub.
        token : str or bool, optional
            Access token for the Hub; True for the one stored on this machine.
        cache_dir : str or Path, optional
            Folder for downloads. Default: huggingface_hub's cache.
        local_files_only : bool, default False
            Never use the network.
        threads : int, optional
            Threads that compute on the CPU; they are set for the whole process.
            Default: torch's number, at most one for each physical core that the process
            may use.

        Raises
        ------
        CheckpointError
            If the checkpoint is missing or broken.
        ValueError
            For an argument that is out of range, a missing device, or a backend that
            does not run on it.
        ImportError
            If numba or mamba-ssm was asked for by name and cannot be loaded, or what
            was asked for needs torch, which is not installed; the message says what to
            install.
        """
        # before anything is loaded
        check_options(window_tokens, segment_tokens, segmenter)
        check_read(read)
        # before dtypes are measured with them
        use_threads(threads, in_numpy=computes_in_numpy(backend))
        computing = choose_computing(backend, device, dtype)
        checkpoint = computing.load(
            model,
            tokenizer=tokenizer,
            encoder=encoder,
            revision=revision,
            token=token,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
        )
        return cls(
            checkpoint,
            window_tokens=window_tokens,
            segment_tokens=segment_tokens,
            segmenter=segmenter,
            read=read,
            computing=computing,
            local_files_only=local_files_only,
        )

    @staticmethod
    def check_names(
        model: str | Path | None = None,
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "auto",
        backend: str = "auto",
    ) -> None:
        """Raise the errors of `from_pretrained` that are found without loading.

        Neither network nor devices are used: any possible Hub id passes, and so does
        "cuda" on any machine.
        """
        check_names(backend, device, dtype)
        local_folder(model)

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return (
            f"Scanner({self.checkpoint.source!r}, device={str(self.device)!r},"
            f" dtype={dtype!r})"
        )

    def prepare(
        self,
        text: str | StructuredText,
        *,
        units: Sequence[Unit] | None = None,
        progress: Progress | None = None,
        cancelled: Cancelled | None = None,
    ) -> PreparedDocument:
        """Prepare a text for several questions.

        It is cut, tokenized and indexed, and its sentences are encoded if the
        checkpoint has an encoder. `scan`, `scan_many` and `rank` take the prepared
        document in place of the text, and give the same results in less time.

        Parameters
        ----------
        text : str or document
            As for `scan`.
        units : sequence of Unit, optional
            What gets a score, instead of the segmenter's sentences.
        progress, cancelled : callable, optional
            As for `scan`, for the encoder.

        Returns
        -------
        PreparedDocument
            For this scanner alone. It keeps the text in memory, and says in ``nbytes``
            how much it takes.

        Raises
        ------
        TypeError
            If the text is neither a string nor a document.
        ScanCancelled
            If ``cancelled`` returned True.

        Examples
        --------
        >>> from spscanner_rag import Scanner
        >>> scanner = Scanner.from_pretrained(device="cpu", dtype="float32")
        >>> harbour = scanner.prepare("Ann signed the treaty. The bell rang at noon.")
        >>> for query in ("Who signed?", "When did the bell ring?"):
        ...     print(scanner.scan(query, harbour).select(top_k=1)[0].text)
        Ann signed the treaty.
        The bell rang at noon.
        """
        if not isinstance(text, StructuredText):
            warn_of_path(check_text(text))
        return self.reading.prepare(text, units, Meter(progress, cancelled))

    def scan(
        self,
        query: str,
        text: Document,
        *,
        read: Read | None = None,
        progress: Progress | None = None,
        cancelled: Cancelled | None = None,
    ) -> ScanResult:
        """Score every sentence of a text.

        Parameters
        ----------
        query : str
            The question; not empty.
        text : str, document or PreparedDocument
            The whole document, of any length. A document from
            `spscanner_rag.files.read` is cut into sentences with regard to its
            headings, fences and tables. What `prepare` returned takes less time.
        read : "auto", "all" or float, optional
            What the token reader reads: the whole text, or a share of its tokens from
            0 to 1, around the sentences that the checkpoint's sentence scan finds
            likeliest. The others get the scan's logits. "auto" reads all of a text of
            up to 4,096 tokens, of a checkpoint without a sentence scan, and with
            ``window_tokens``; else a share of 0.2. Default: the scanner's own option.
        progress : callable, optional
            Called with (tokens done, tokens prepared so far) after every forward pass.
        cancelled : callable, optional
            Called before and while a text is prepared and after every forward pass;
            True stops the scan.

        Returns
        -------
        ScanResult
            Without sentences if the text is empty or white space.

        Raises
        ------
        ValueError
            If the query is blank, longer than a window, or longer than both
            `LONGEST_QUESTION` and the text, which means that the two were probably
            swapped. If ``read`` is none of its values, or a share for a checkpoint
            without a sentence scan.
        TypeError
            If query or text is neither a string nor such a document.
        ScanCancelled
            If ``cancelled`` returned True.

        Examples
        --------
        >>> from spscanner_rag import Scanner
        >>> scanner = Scanner.from_pretrained(device="cpu", dtype="float32")
        >>> text = "Ships came every week. Ann signed the treaty in May."
        >>> result = scanner.scan("Who signed the treaty?", text)
        >>> [sentence.text for sentence in result.sentences]
        ['Ships came every week.', 'Ann signed the treaty in May.']
        >>> result.select(top_k=1)[0].text
        'Ann signed the treaty in May.'
        """
        (result,) = self.scan_many(
            [(query, text)], read=read, progress=progress, cancelled=cancelled
        )
        return result

    def scan_many(
        self,
        pairs: Iterable[tuple[str, Document] | ScanRequest],
        *,
        together: bool = False,
        collection: CollectionIndex | None = None,
        read: Read | None = None,
        progress: Progress | None = None,
        cancelled: Cancelled | None = None,
    ) -> list[ScanResult]:
        """Scan several pairs of question and text.

        Pairs of similar length share a forward pass.

        All pairs are checked before any is read; the errors are those of `scan`. Each
        text is read on its own. Logits of different texts are comparable only if their
        words were counted together, with ``together`` or ``collection``, or if the
        checkpoint has no lexical channel, like the published ones.

        Parameters
        ----------
        pairs : iterable of (query, text)
            The results have the same order. A text is cut and tokenized once for
            consecutive pairs with it; `prepare` it for later calls too.
        together : bool, default False
            Whether the texts are one collection: how rare a word is, and how much a
            sentence stands out, is then measured over all of them. A collection of one
            text changes nothing.
        collection : CollectionIndex, optional
            The words of a larger collection that the texts belong to, instead of
            ``together``.
        read : "auto", "all" or float, optional
            As for `scan`. Texts of a collection share what is read for a question.
        progress, cancelled : callable, optional
            As for `scan`.

        Examples
        --------
        >>> from spscanner_rag import Scanner
        >>> scanner = Scanner.from_pretrained(device="cpu", dtype="float32")
        >>> texts = ["Rain fell. It was cold.", "Ann signed the treaty in May."]
        >>> pairs = [("Who signed the treaty?", text) for text in texts]
        >>> results = scanner.scan_many(pairs, together=True)
        >>> [len(result.sentences) for result in results]
        [2, 1]
        """
        requests = [self.pipeline.request_of(pair) for pair in pairs]
        return self._results(
            requests, Meter(progress, cancelled), read, collection, together
        )

    def _results(
        self,
        requests: Sequence[ScanRequest],
        meter: Meter,
        read: Read | None,
        collection: CollectionIndex | None = None,
        together: bool = False,
    ) -> list[ScanResult]:
        # from the tokenizer, so that results do not keep the model in memory
        counter = token_counter(self.checkpoint.tokenizer)
        read = self.read if read is None else self._checked_read(read)
        scored_texts = self.pipeline.run(requests, meter, collection, together, read)
        keep_scale = self.keep_scale
        return [scored.result(counter, keep_scale) for scored in scored_texts]

    def rank(
        self,
        query: str,
        documents: Iterable[Document],
        top_k: int | None = None,
        *,
        aggregation: Aggregation = "max",
        read: Read | None = None,
        progress: Progress | None = None,
        cancelled: Cancelled | None = None,
    ) -> list[RankedDocument]:
        """Rank whole documents for a question, the best first, as one collection.

        Parameters
        ----------
        query, progress, cancelled
            As for `scan`, with its errors.
        documents : iterable of str, document or PreparedDocument
            Each as for `scan`. They are one collection, as with `scan_many`.
        top_k : int, optional
            Number of documents to return, at least 1. Default: all.
        aggregation : str, default "max"
            How a document's score is computed from its sentences' logits; see
            `ScanResult.document_score`.
        read : "auto", "all" or float, optional
            As for `scan_many`.

        Examples
        --------
        >>> from spscanner_rag import Scanner
        >>> scanner = Scanner.from_pretrained(device="cpu", dtype="float32")
        >>> texts = ["Rain fell. It was cold.", "Ann signed the treaty in May."]
        >>> best = scanner.rank("Who signed the treaty?", texts, top_k=1)[0]
        >>> best.text
        'Ann signed the treaty in May.'
        """
        if isinstance(documents, str | StructuredText | PreparedDocument):
            kind = "string" if isinstance(documents, str) else "document"
            raise TypeError(
                f"documents: got one {kind}; expected several texts, such as [text]"
            )
        if top_k is not None and (type(top_k) is not int or top_k < 1):
            raise ValueError(
                f"top_k: got {top_k!r}; expected an integer of at least 1, or None"
                " for all"
            )
        check_aggregation(aggregation)
        requests = [self.pipeline.request_on(query, text) for text in documents]
        results = self._results(
            requests, Meter(progress, cancelled), read, None, together=True
        )
        return rank_results(results, aggregation)[:top_k]

    def units_of(self, text: str, blocks: Sequence[Block] = ()) -> list[Unit]:
        """Cut a text, with its blocks if any, into the units that `scan` scores."""
        if blocks:
            return list(self.reading.cut_blocks(text, blocks))
        return list(self.reading.cut(text))

    @property
    def unit_name(self) -> str | None:
        """The name of its segmenter.

        "sentence" also for a published scanner's.
        """
        return unit_name_of(self.reading.segmenter)

    @property
    def segmenter(self) -> Segmenter:
        """What cuts texts into sentences as the checkpoint was trained to read them."""
        return self.reading.segmenter

    def score_units(
        self,
        query: str,
        text: str,
        units: Sequence[Unit],
        *,
        progress: Progress | None = None,
        cancelled: Cancelled | None = None,
    ) -> NDArray[np.float32]:
        """Score units of a text that were cut before: logits, (units,).

        Other arguments and errors are those of `scan`.
        """
        return self.score_units_many(
            [(query, text, units)], progress=progress, cancelled=cancelled
        )[0].logits

    def score_units_many(
        self,
        requests: Iterable[tuple[str, str, Sequence[Unit]]],
        *,
        together: bool = False,
        collection: CollectionIndex | None = None,
        progress: Progress | None = None,
        cancelled: Cancelled | None = None,
    ) -> list[UnitScores]:
        """Do as `scan_many`, but read the ``model_text`` of units cut before."""
        checked = [
            self.pipeline.request(query, text, units) for query, text, units in requests
        ]
        meter = Meter(progress, cancelled)
        return self._unit_scores(checked, meter, collection, together)

    def score_prepared(
        self,
        query: str,
        texts: Sequence[PreparedText],
        *,
        collection: CollectionIndex | None = None,
        cancelled: Cancelled | None = None,
    ) -> list[UnitScores]:
        """Score the units of documents that `prepare` or `restore` returned.

        Errors are those of `scan`.
        """
        requests = [self.pipeline.request_on(query, text) for text in texts]
        return self._unit_scores(requests, Meter(None, cancelled), collection)

    def _unit_scores(
        self,
        requests: Sequence[ScanRequest],
        meter: Meter,
        collection: CollectionIndex | None,
        together: bool = False,
    ) -> list[UnitScores]:
        scored_texts = self.pipeline.run(
            requests, meter, collection, together, self.read
        )
        return [UnitScores(text.logits, text.answerable) for text in scored_texts]

    def with_read(self, read: Read) -> Scanner:
        """Return a scanner of the same model, for which units are scored with ``read``.

        `scan`, `scan_many` and `rank` have the option themselves.

        Parameters
        ----------
        read : "auto", "all" or float
            As for `scan`, with its errors.
        """
        scanner = copy.copy(self)
        scanner.read = self._checked_read(read)
        return scanner

    def _checked_read(self, read: Read) -> Read:
        checked = check_read(read)
        if self.reading.sentence_scan is None:
            refuse_share(checked, self.checkpoint.source)
        return checked

    @property
    def keeps_texts(self) -> bool:
        """True: what `prepare` returned takes less time, above all with an encoder."""
        return True

    @property
    def prepares_for(self) -> object:
        """What this scanner shares with those that `with_read` returns."""
        return self._prepares_for

    @cached_property
    def preparation(self) -> str | None:
        """A digest of everything that decides what `prepare` makes of a text.

        None with a segmenter of the caller's, which may cut as it likes.
        """
        return preparation_of(self.reading)

    def arrays_of(self, prepared: PreparedText) -> dict[str, NDArray[Any]]:
        """Return what a folder keeps of a prepared document, for `restore`."""
        if not isinstance(prepared, PreparedDocument):
            raise TypeError(
                f"prepared is {type(prepared).__name__}; expected what this scanner's"
                " prepare(text) returned"
            )
        return prepared_to_arrays(prepared.indexed)

    def restore(
        self,
        text: str,
        arrays: Mapping[str, NDArray[Any]],
        vectors: SentenceVectors | None = None,
    ) -> PreparedDocument:
        """Return a prepared document from its `arrays_of`, without preparing it.

        Raises
        ------
        ValueError
            For arrays that do not fit together, or do not fit the text.
        """
        indexed = indexed_from_arrays(text, arrays, lexical=self.reading.lexical)
        if self.meaning is None:
            vectors = None
        elif vectors is None or len(vectors.rows) != len(indexed.units):
            raise ValueError("the prepared text has other sentences than its vectors")
        ids = indexed.input_ids
        n_known = self.pipeline.token_reader.config.vocab_size
        if len(ids) and not 0 <= ids.min() <= ids.max() < n_known:
            raise ValueError("the prepared text has tokens that the model does not")
        return PreparedDocument(text, (), indexed, vectors, None, self.reading)

    def request(
        self,
        query: str,
        document: Document,
        units: Sequence[Unit] | None = None,
    ) -> ScanRequest:
        """Check a question and a document for a later `scan_many`, as `scan` does.

        ``units`` are scored in place of the segmenter's, unless the document is
        prepared.
        """
        request = self.pipeline.request_on(query, document)
        if units is None or isinstance(document, PreparedDocument):
            return request
        return request._replace(units=units)

    @property
    def meaning(self) -> Meaning | None:
        """The encoder and the weights of its cosines.

        None without an encoder.
        """
        return self.reading.meaning

    @property
    def says_answers(self) -> bool:
        """True if results have the probability that the text answers the question.

        See `ScanResult`.
        """
        return (
            self.meaning is not None
            and self.meaning.weighed
            and self.meaning.weights.answer_scale > 0
        )

    @property
    def keep_scale(self) -> KeepScale | None:
        """What turns logits into scores to cut at, if the checkpoint has it.

        None with another encoder than the checkpoint's own, or without one: it was
        fitted to the logits of all parts together.
        """
        if self.meaning is None or not self.meaning.weighed:
            return None
        return self.checkpoint.settings.keep

    @property
    def uses_collection(self) -> bool:
        """True if logits depend on the other texts of a collection.

        They do if the checkpoint has a lexical channel.
        """
        return self.reading.lexical

    def count_tokens(self, text: str) -> int:
        """Count a text's tokens with its tokenizer, without special tokens."""
        return token_counter(self.checkpoint.tokenizer)(text)
