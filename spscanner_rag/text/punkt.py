"""NLTK's English sentence model, ``punkt_tab``, as the published scanners use it."""

import contextlib
import functools
import importlib.util
import io
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktParameters

# Characters around a full stop that NLTK gets to see: more than it ever needs.
_CONTEXT_CHARACTERS = 2000
_MODEL = "tokenizers/punkt_tab/english/"


@functools.cache
def load_sentence_tokenizer(
    local_files_only: bool,
) -> Callable[[str], Iterator[tuple[int, int]]]:
    """Load the function that yields the spans of the sentences of a text.

    ``FileNotFoundError`` if the model is not on this machine and cannot be downloaded,
    or must not be.
    """
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    parameters = _parameters()
    failure = None
    if parameters is None and not local_files_only:
        failure = _download()
        parameters = _parameters()
    if parameters is None:
        reason = "its download failed"
        if local_files_only:
            reason = "downloads are off (local_files_only, or HF_HUB_OFFLINE)"
        raise FileNotFoundError(
            f"NLTK's sentence model punkt_tab is not installed and {reason}; run "
            "`python -m nltk.downloader punkt_tab` once with a network, or "
            "`pip install llama-index-core`, which includes it"
        ) from failure
    # Looking up a word in a Counter adds no entry for it.
    parameters.ortho_context = Counter(parameters.ortho_context)
    tokenizer: Any = PunktSentenceTokenizer(parameters, lang_vars=_patient_rules())
    sentence_spans: Callable[[str], Iterator[tuple[int, int]]] = tokenizer.span_tokenize
    return sentence_spans


def _download() -> Exception | None:
    """Download the model without a word, and return the error if that fails."""
    import nltk

    silent = io.StringIO()
    try:
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
            nltk.download("punkt_tab", quiet=True, print_error_to=silent)
    except Exception as error:  # A network can fail in many ways.
        return error
    return None


def _patient_rules() -> object:
    """NLTK's rules without their time limit of five seconds."""
    from nltk import redos
    from nltk.tokenize.punkt import PunktLanguageVars

    class Rules(PunktLanguageVars):  # type: ignore[misc]
        def period_context_re(self) -> object:
            return redos.compile(super().period_context_re(), timeout=None)

        def word_tokenize(self, s: str) -> list[str]:
            # `s` is the text around a full stop. It is shortened because the time limit
            # still applies here.
            half = _CONTEXT_CHARACTERS // 2
            if len(s) > 2 * half:
                s = s[:half] + s[-half:]
            words: list[str] = super().word_tokenize(s)
            return words

    return Rules()


def _parameters() -> "PunktParameters | None":
    """The sentence model in NLTK's data path, else the copy in llama-index-core.

    NLTK opens nothing outside its path, so for a moment the folder of that copy is in
    it.
    """
    import nltk.data
    from nltk.tokenize.punkt import load_punkt_params

    path: list[str] = nltk.data.path
    nltk.data.path = [*path, *_llama_index_folders()]
    try:
        return load_punkt_params(nltk.data.find(_MODEL))
    except (LookupError, OSError):
        return None
    finally:
        nltk.data.path = path


def _llama_index_folders() -> list[str]:
    """The folder of NLTK's data in llama-index-core, if that is installed."""
    try:
        package = importlib.util.find_spec("llama_index.core")
    except ModuleNotFoundError:
        return []
    if package is None or package.origin is None:
        return []
    return [str(Path(package.origin).parent / "_static" / "nltk_cache")]
