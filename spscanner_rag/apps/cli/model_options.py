"""Groups of options that load scanners and other retrievers."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from spscanner_rag.apps.cache import ReadCache
from spscanner_rag.apps.cli.declaring import option
from spscanner_rag.apps.cli.listed_names import names_in
from spscanner_rag.apps.cli.shared_options import DEVICE, READ, THREADS, TOKENIZER
from spscanner_rag.baselines.names import short_usages

if TYPE_CHECKING:
    from spscanner_rag.baselines.register import LoadOptions
    from spscanner_rag.baselines.settings import Setting
    from spscanner_rag.baselines.unit_kinds import UnitKind
    from spscanner_rag.scanner import Scanner
    from spscanner_rag.scorers import Read


NUMBA_CHARACTERS: Final = 50_000
"""With fewer characters to read once, numba is not loaded: that takes 1 s of a
processor, and its kernels save 20 microseconds a character."""


def read_of(value: str) -> "Read":
    """Return the option ``--read``: a word or a number.

    ``ValueError`` for any other.
    """
    from spscanner_rag.scorers import check_read

    try:
        return check_read(float(value))
    except ValueError:
        return check_read(value)


@dataclass(frozen=True, kw_only=True)
class ScannerOptions:
    """Device, dtype, threads, tokenizer and share of a scanner."""

    device: str = DEVICE
    dtype: str = option("auto", "auto, float32 or bfloat16.")
    threads: int | None = THREADS
    tokenizer: str | None = TOKENIZER
    read: str = READ

    def model_files(self, model: str | None = None) -> list[str]:
        """Return the files and folders of models, where they are local."""
        names = (model, self.tokenizer)
        return [name for name in names if name is not None]

    def scanner(
        self,
        model: str | None,
        segment_tokens: int | None = None,
        cache: ReadCache | None = None,
        characters: int | None = None,
    ) -> "Scanner":
        """Load a checkpoint, by default the bundled one.

        The scanner keeps its sentence vectors in ``cache``. With ``characters``, it is
        to read only so many, and its kernels are those that are ready first.
        """
        from spscanner_rag import Scanner

        scanner = Scanner.from_pretrained(
            model,
            device=self.device,
            dtype=self.dtype,
            backend=self._backend(characters),
            threads=self.threads,
            segment_tokens=segment_tokens,
            tokenizer=self.tokenizer,
            read=read_of(self.read),
        )
        if scanner.meaning is not None:
            scanner.meaning.keep_in(cache)
        return scanner

    def _backend(self, characters: int | None) -> Literal["auto", "torch"]:
        """The kernels to load for a number of characters."""
        if characters is None or characters >= NUMBA_CHARACTERS:
            return "auto"
        from spscanner_rag.scan.computing_choice import quickest_to_load

        return quickest_to_load(self.device)


@dataclass(frozen=True, kw_only=True)
class RetrieverOptions(ScannerOptions):
    """Names and units of retrievers, and how to load their models."""

    retrievers: str = option(
        "scanner,bm25,dense",
        f"{', '.join(short_usages())}.",
        "NAME,...",
    )
    unit: str = option(
        "sentence",
        "sentence, chunk (300 words) or chunk:WORDS, passage, document; a scanner ranks"
        " sentences only.",
        "UNIT,...",
    )
    dtype: str = option("auto", "For scanners: auto, float32 or bfloat16.")
    trust_remote_code: bool = option(
        False, "Let models from the Hub run their own code."
    )

    def model_files(self, model: str | None = None) -> list[str]:
        """Return the files and folders of models, where they are local."""
        from spscanner_rag.baselines.names import models_of

        paths = super().model_files(model)
        for name in self.retrievers.split(","):
            paths += models_of(name)
        return paths

    def loading(
        self, unit: str = "sentence", titles: dict[str, str] | None = None
    ) -> "LoadOptions":
        """Return the loading options for retrievers that rank units of this kind.

        Loading checks the kind.
        """
        from spscanner_rag.baselines.register import LoadOptions

        kind: UnitKind = unit  # type: ignore[assignment]
        return LoadOptions(
            kind,
            self.device,
            self.dtype,
            self.trust_remote_code,
            titles,
            self.tokenizer,
            read_of(self.read),
        )

    @cached_property
    def units(self) -> list[str]:
        """The kinds of units in ``--unit``, checked."""
        from spscanner_rag.baselines.unit_kinds import segmenter_of

        units = names_in("--unit", self.unit)
        for kind in units:
            # raises an error that lists the kinds
            segmenter_of(kind)  # type: ignore[arg-type]
        return units

    @cached_property
    def settings(self) -> "list[Setting]":
        """Every retriever, with every kind of unit that it ranks."""
        from spscanner_rag.baselines.names import check_name
        from spscanner_rag.baselines.settings import settings_of

        names = names_in("--retrievers", self.retrievers)
        for name in names:
            check_name(name)
        return settings_of(names, self.units)
