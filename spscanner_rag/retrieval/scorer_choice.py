"""The scorer that an integration uses, from the options of a framework's class."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from spscanner_rag.retrieval.hidden_token import HiddenToken, split_token
from spscanner_rag.retrieval.shared_scanners import shared_scanner
from spscanner_rag.scorers import Read, Scorer, check_read, check_scorer

if TYPE_CHECKING:  # it imports torch, so at run time only where a scanner is needed
    from spscanner_rag.scanner import Scanner


@dataclass(frozen=True)
class ScorerChoice:
    """A model and the arguments to load it, or a loaded scanner or scorer.

    Parameters
    ----------
    model, device, dtype, backend
        As for `Scanner.from_pretrained`.
    model_kwargs : mapping
        Its further arguments, without the token.
    token : HiddenToken
        The access token among them.
    scanner : Scanner, optional
        A loaded scanner, instead of a model.
    scorer : Scorer, optional
        Any scorer, instead of a model.
    read : "auto", "all" or float
        What it reads of a text, as for `Scanner.scan`.
    """

    model: str | Path | None = None
    device: str = "auto"
    dtype: str = "auto"
    backend: str = "auto"
    model_kwargs: Mapping[str, Any] = field(default_factory=dict)
    token: HiddenToken = field(default_factory=HiddenToken)
    scanner: "Scanner | None" = None
    scorer: Scorer | None = None
    read: Read = "auto"

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Check the options of a framework class, and choose by them.

        ``ValueError`` or ``TypeError`` for unusable ones.
        """
        model_kwargs, token = split_token(options["model_kwargs"] or {})
        choice = cls(
            model=options["model"],
            device=options["device"],
            dtype=options["dtype"],
            backend=options["backend"],
            model_kwargs=model_kwargs,
            token=token,
            scanner=options["scanner"],
            scorer=options["scorer"],
            read=check_read(options["read"]),
        )
        choice._check_one_is_chosen()
        if choice.scorer is not None:
            check_scorer(choice.scorer)
        if choice.scanner is not None or model_kwargs:
            choice._check_scanner()
        return choice

    def _check_one_is_chosen(self) -> None:
        alternatives = ("model", "scanner", "scorer")
        chosen = [name for name in alternatives if getattr(self, name) is not None]
        if len(chosen) > 1:
            raise ValueError(
                f"got {' and '.join(chosen)}; expected at most one of model, scanner"
                " and scorer"
            )

    def _check_scanner(self) -> None:
        """Check a loaded scanner, and the arguments to load one."""
        from spscanner_rag.scanner import Scanner

        if self.scanner is not None and not isinstance(self.scanner, Scanner):
            raise TypeError(
                f"scanner is {type(self.scanner).__name__}; expected a"
                " spscanner_rag.Scanner (pass anything else that scores units as"
                " scorer)"
            )
        # Raises `TypeError` for an argument that is unknown or passed twice.
        inspect.signature(Scanner.from_pretrained).bind_partial(
            model=self.model,
            device=self.device,
            dtype=self.dtype,
            backend=self.backend,
            **self.model_kwargs,
        )

    @property
    def on_cpu(self) -> bool:
        """Tell whether the scorer is a scanner that computes on a CPU.

        Loads nothing.
        """
        if self.scorer is not None:
            return False
        if self.scanner is not None:
            return bool(self.scanner.device.type == "cpu")
        from spscanner_rag.scan.computing_choice import computes_on_cpu

        return computes_on_cpu(self.device, self.backend)

    @property
    def name(self) -> str:
        """Its name in traces."""
        if self.scorer is not None:
            return type(self.scorer).__name__
        if self.scanner is not None:
            return str(self.scanner.checkpoint.source)
        return "default" if self.model is None else str(self.model)

    def resolve(self) -> Scorer:
        """Return the scorer.

        The first call in a process for a model loads it. A scanner or scorer that was
        passed keeps its own ``read`` unless another was chosen.
        """
        scorer = self._loaded()
        return scorer if self.read == "auto" else scorer.with_read(self.read)

    def _loaded(self) -> Scorer:
        if self.scorer is not None:
            return self.scorer
        if self.scanner is not None:
            return self.scanner
        options = dict(self.model_kwargs)
        if self.token.value is not None:
            options["token"] = self.token.value
        return shared_scanner(
            self.model,
            device=self.device,
            dtype=self.dtype,
            backend=self.backend,
            **options,
        )

    def __getstate__(self) -> dict[str, Any]:
        # Instead of a loaded scanner, a pickle has the arguments to load it.
        choice = self
        if self.scanner is not None:
            choice = replace(self, scanner=None, **loading_options(self.scanner))
        return dict(choice.__dict__)


def loading_options(scanner: "Scanner") -> dict[str, Any]:
    """Options that load a scanner again, from the Hub at the same commit.

    A custom segmenter is an object among them.
    """
    checkpoint = scanner.checkpoint
    is_local = checkpoint.folder == Path(checkpoint.source).expanduser()
    is_bundled = not is_local and checkpoint.source == "default"
    segmenter = scanner.segmenter
    is_ours = type(segmenter).__module__.startswith("spscanner_rag.text.")
    # numpy computes wherever it is loaded again; others only where they are installed
    backend = "numpy" if scanner.backend == "numpy" else "auto"
    model_kwargs = {
        "window_tokens": scanner.window_tokens,
        "segment_tokens": scanner.segment_tokens,
        "segmenter": segmenter.name if is_ours else segmenter,
        "encoder": checkpoint.encoder,
        "read": scanner.read,
    }
    if not is_local and not is_bundled:
        model_kwargs["revision"] = checkpoint.folder.name
    return {
        "model": None if is_bundled else checkpoint.source,
        "device": str(scanner.device),
        "dtype": str(scanner.dtype).removeprefix("torch."),
        "backend": backend,
        "model_kwargs": model_kwargs,
    }
