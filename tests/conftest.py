"""Fixtures for all tests.

No test reaches the network: sockets are blocked and the Hub client is offline.
"""

import os

# Read when huggingface_hub, transformers and torch are imported, so set before anything
# else.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# nothing can be stored there
os.environ["SPSCANNER_CACHE"] = os.path.join(os.devnull, "none")
# spinning threads are slow on a busy machine
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import inspect
import io
import json
import random
import re
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from spscanner_rag.checkpoint import ScannerSettings, save_checkpoint
from spscanner_rag.checkpoint.encoder_file import EncoderFile, find_encoder
from spscanner_rag.encoder.token_encoder import TokenEncoder
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.retrieval import shared_scanners
from spscanner_rag.scanner import Scanner

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, max_examples=50
)
settings.load_profile("repeatable")

REPOSITORY = Path(__file__).resolve().parent.parent

SMALL_TEXT = (
    "The keeper of the lighthouse wrote the date in his book every evening. He "
    "signed the treaty, and the\n"
    'captain left with 3 ships on 14 May 1911. "Who signed it?" she asked; nobody'
    " answered. Dr. Smith's report,\n"
    "which the council had ordered in 1908, was 400 pages long. It said: the "
    "harbour must be widened! Café, naïve\n"
    "and Ωμέγα are words too, and so are 東京 and Москва. The ship's bell rang "
    "twice, then the rain began.\n"
    "Why did they leave the island? Because the well was dry, and because the "
    "winter had been long.\n"
)


BERT_WORDS = (
    "who signed the treaty keeper wrote date in book he and captain left it rained bell"
    " rang well was dry"
)


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Tiny models are fastest on one thread; their sums are then equal everywhere."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Every test starts from the same random state, whatever ran before."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _the_default_stays_bundled() -> Iterator[None]:
    """A test that loads another default checkpoint must not leave it to later tests."""
    yield
    for key, scanner in shared_scanners._shared.items():
        if key[0] == (type(None), None) and isinstance(scanner, Scanner):
            assert scanner.checkpoint.source == "default", (
                "call forget_shared_scanners() at the end"
            )


@pytest.fixture(scope="session")
def oracles() -> Path:
    """Folder with the outputs of the original code, beside a checkout."""
    folder = Path(
        os.environ.get("SPSCANNER_ORACLES") or REPOSITORY.parent / "shared" / "oracles"
    )
    if not folder.is_dir():
        reason = f"no oracle folder at {folder}: set SPSCANNER_ORACLES to where it is"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def committed_oracles() -> Path:
    """The part of the oracles that is committed with the tests."""
    return REPOSITORY / "tests" / "data" / "oracles"


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Tokenizer:
    """Byte-level BPE of at most 384 tokens, trained in memory: it spells every byte."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=384,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator([SMALL_TEXT], trainer)
    return tokenizer


@pytest.fixture(scope="session")
def tiny_checkpoint(
    tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Folder of a small random scanner in our layout, with all that can be on."""
    config = Mamba2Config(
        d_model=32,
        n_layer=2,
        vocab_size=tiny_tokenizer.get_vocab_size(),
        d_state=16,
        headdim=16,
        ngroups=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = ScannerModel(
            config, match_embedding=True, lexical_prior=True, surroundings=True
        )
        assert model.binary_head is not None
        assert model.surroundings is not None
        # Logits that differ clearly from sentence to sentence, so that rankings can be
        # compared.
        torch.nn.init.normal_(model.binary_head.weight)
        torch.nn.init.normal_(model.surroundings.weight, std=0.2)
    settings = ScannerSettings(
        "sentence",
        reanchor_tokens=64,
        match=True,
        prior=True,
        surroundings=True,
        least_units=60,
        text_weight=0.5,
    )
    folder = tmp_path_factory.mktemp("checkpoints") / "tiny"
    save_checkpoint(folder, model, settings, tiny_tokenizer)
    return folder


@pytest.fixture(scope="session")
def windowed_checkpoint(
    tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Reads as the published scanners do, with the tiny tokenizer."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        config = Mamba2Config(
            d_model=16, n_layer=2, vocab_size=384, d_state=8, headdim=8
        )
        model = ScannerModel(config)
        assert model.binary_head is not None
        torch.nn.init.normal_(model.backbone.embedding.weight)
        torch.nn.init.normal_(model.binary_head.weight)
    folder = tmp_path_factory.mktemp("checkpoints") / "windowed"
    save_checkpoint(
        folder, model, ScannerSettings("reference", window_tokens=100), tiny_tokenizer
    )
    return folder


@pytest.fixture(scope="session")
def published_checkpoint(
    tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Layout and vocabulary of the published scanners, with the tiny tokenizer."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        config = Mamba2Config(
            d_model=8,
            n_layer=1,
            vocab_size=50277,
            pad_vocab_size_multiple=16,
            d_state=4,
            headdim=8,
        )
        model = ScannerModel(config)
        torch.nn.init.normal_(model.backbone.embedding.weight)
    folder = tmp_path_factory.mktemp("checkpoints") / "published"
    save_checkpoint(folder, model, ScannerSettings(), tiny_tokenizer)
    settings = json.loads((folder / "config.json").read_text())
    settings.pop("spscanner")
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="session")
def tiny_scanner(tiny_checkpoint: Path) -> Scanner:
    """The scanner of `tiny_checkpoint`: float32, on the CPU."""
    return Scanner.from_pretrained(tiny_checkpoint, device="cpu", dtype="float32")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as installed."""
    return _built(REPOSITORY, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def light_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as installed without torch."""
    folder = REPOSITORY / "distributions" / "light"
    return _built(folder, tmp_path_factory.mktemp("light_wheel"))


def _built(project: Path, folder: Path) -> Path:
    """The wheel of a project."""
    builders = pytest.importorskip("hatchling.builders.wheel")
    builder = builders.WheelBuilder(str(project))
    return Path(next(iter(builder.build(directory=str(folder), versions=["standard"]))))


@pytest.fixture(scope="session")
def bundled() -> Scanner:
    """The scanner that the package ships: float32, on the CPU."""
    return Scanner.from_pretrained(device="cpu", dtype="float32")


@pytest.fixture(scope="session")
def save_bert() -> Callable[[Path, int | None], Path]:
    """Saves a random BERT: a classifier with so many labels, or an encoder for None."""
    return _save_bert


def _save_bert(folder: Path, labels: int | None) -> Path:
    """A BERT with one small layer, random weights and a vocabulary of words.

    With labels, a classifier.
    """
    transformers = pytest.importorskip("transformers")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {
        word: number
        for number, word in enumerate([*special, *".!?", *BERT_WORDS.split()])
    }
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(["pad", "unk", "cls", "sep", "mask"], special, strict=True))
    transformers.BertTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=32,
        **{f"{kind}_token": token for kind, token in names.items()},
    ).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        num_labels=labels or 1,
        initializer_range=1.0,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = (
            transformers.BertModel
            if labels is None
            else transformers.BertForSequenceClassification
        )
        model(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def bert_folder(
    save_bert: Callable[[Path, int | None], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The folder of a BERT-like model, as its library saves it."""
    return save_bert(tmp_path_factory.mktemp("bert"), None)


@pytest.fixture(scope="session")
def encoder_file(bert_folder: Path) -> EncoderFile:
    """That model, read from its file."""
    return find_encoder(bert_folder)[0]


@pytest.fixture(scope="session")
def encoder(encoder_file: EncoderFile) -> TokenEncoder:
    """That model, ready to encode."""
    return encoder_file.loaded("tiny", "cpu", torch.float32)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, if it is installed.

    Playwright keeps an event loop running in this thread while it is open; the tests of
    other modules, which start loops of their own, must not meet it.
    """
    chromium = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if chromium is None:
        pytest.skip("no chromium on this machine: install the package chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed"
    )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


class Visit:
    """An opened page, with everything that it logged and requested."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: self.troubles.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)
        self.address = address

    def until(self, holds: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait until something holds, since a page scrolls only in the next frame."""
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, (
                f"not within {seconds:g} s: {inspect.getsource(holds).strip()}"
            )
            self.page.wait_for_timeout(20)

    def top_of(self, selector: str) -> float:
        return float(self.page.locator(selector).bounding_box()["y"])

    def style(self, selector: str, name: str) -> str:
        script = (
            "([selector, name]) =>"
            " getComputedStyle(document.querySelector(selector))[name]"
        )
        return str(self.page.evaluate(script, [selector, name]))

    def brightness(self, selector: str, name: str) -> float:
        """A colour's brightness, from 0 to 1."""
        red, green, blue = (
            self.style(selector, name).split("(")[1].rstrip(")").split(",")[:3]
        )
        return (float(red) + float(green) + float(blue)) / 765

    def finish(self) -> None:
        self.context.close()
        assert self.troubles == []
        assert {address.partition("#")[0] for address in self.requests} == {
            self.address
        }


@pytest.fixture
def visit(browser: Any) -> Callable[..., Visit]:
    """Opens a file in Chromium, with options of a browser context."""
    return lambda path, **context: Visit(browser, path.as_uri(), **context)


@pytest.fixture
def hostile_markup() -> str:
    """Markup that must not act in a browser."""
    return (
        "<script>document.title='owned'</script><img src='http://x.example/a.png'"
        " onerror=\"alert('owned')\"><style>body{display:none}</style></style><a"
        " href=\"javascript:alert('owned')\">click</a><link rel=stylesheet"
        " href=//x.example/a.css><iframe src=http://x.example></iframe> \x1b]8;;x\x07"
        " \u202eevil\u202c \ud800 \x00"
    )


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal with colours, 60 columns wide."""
    for variable in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    return Terminal()


@pytest.fixture(scope="session")
def pdf_of() -> Callable[..., bytes]:
    """Makes a PDF from pages of lines; an empty page has no text."""
    pytest.importorskip("pypdf")

    def pdf_of(
        pages: Sequence[Sequence[str]],
        *,
        finish: Callable[[Any], None] = lambda writer: None,
    ) -> bytes:
        from pypdf import PdfWriter
        from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

        writer = PdfWriter()
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
                NameObject("/Encoding"): NameObject("/WinAnsiEncoding"),
            }
        )
        fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
        for lines in pages:
            page = writer.add_blank_page(width=595, height=842)
            page[NameObject("/Resources")] = DictionaryObject(
                {NameObject("/Font"): fonts}
            )
            escaped = (
                line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
                for line in lines
            )
            shown = "".join(f"({line}) Tj T*\n" for line in escaped)
            stream = DecodedStreamObject()
            stream.set_data(
                f"BT /F1 11 Tf 14 TL 60 780 Td\n{shown}ET".encode("cp1252")
                if lines
                else b""
            )
            page[NameObject("/Contents")] = writer._add_object(stream)
        finish(writer)
        file = io.BytesIO()
        writer.write(file)
        return file.getvalue()

    return pdf_of


# Folders whose fixtures need a package that the small extra `test` does not bring.
_FOLDERS_THAT_NEED = {
    "apps/serving": "fastapi",
    "integrations/langchain": "langchain_core",
    "integrations/llama_index": "llama_index.core",
    "lab/in_context": "transformers",
}


def _may_be_missing(package: str) -> bool:
    """Whether a package is not installed, nor need be: under ``CI=true`` all are."""
    if os.environ.get("CI") == "true":
        return False
    try:
        return find_spec(package) is None
    except ModuleNotFoundError:  # the package that it is in
        return True


collect_ignore = [
    folder for folder, package in _FOLDERS_THAT_NEED.items() if _may_be_missing(package)
]

_MISSING = re.compile(r"No module named '([\w.]+)")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip tests whose packages are not installed, as with the small extra ``test``.

    Under ``CI=true`` everything is installed, and a missing package is an error.
    """
    report = yield
    missing = _MISSING.search(str(report.longrepr))
    if report.outcome != "failed" or missing is None:
        return report
    if _may_be_missing(missing[1]):
        report.outcome = "skipped"
        reason = f"Skipped: {missing[1]} is not installed"
        report.longrepr = (str(collector.path), 0, reason)
    return report
