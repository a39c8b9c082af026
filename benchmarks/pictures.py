"""The pictures of README's top: a scanned document's page, as Chromium shows it, light and dark."""

import argparse
import io
import json
import shutil
from pathlib import Path
from typing import Literal

from benchmarks.report import Commands
from spscanner_rag import Scanner
from spscanner_rag.apps.pages.report import render_report
from spscanner_rag.apps.pages.scanned_document import ScannedDocument
from spscanner_rag.files.documents import TextFile

QUESTION, SENTENCES = "Why did the Kestrel run aground?", 5
WIDTH, HEIGHT = 1100, 620
MOST_BYTES, COLOURS = 150_000, 160
FILES: dict[Literal["light", "dark"], str] = {"light": "result-page.png", "dark": "result-page-dark.png"}


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `pictures`."""
    command = commands.add_parser(
        "pictures", help="make the pictures of README (needs playwright and chromium)"
    )
    command.add_argument("--folder", type=Path, default=Path("docs"))
    command.set_defaults(measure=measure)
    return [command]


def measure(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Write the pictures; False if one is larger than README should load."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    page = _page()
    sizes: dict[str, int] = {}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme, name in FILES.items():
            shown = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            shown.set_content(page)
            picture = Image.open(io.BytesIO(shown.screenshot())).quantize(COLOURS)
            picture.save(arguments.folder / name, optimize=True)
            sizes[name] = (arguments.folder / name).stat().st_size
        browser.close()
    return {f"bytes, {name}": size for name, size in sizes.items()}, max(sizes.values()) <= MOST_BYTES


def _page() -> str:
    pages = Path("examples/data/saltmere.jsonl").read_text(encoding="utf-8").splitlines()
    text = "\n\n".join(json.loads(page)["text"] for page in pages)
    result = Scanner.from_pretrained().scan(QUESTION, text)
    picks = result.select(top_k=SENTENCES, order="score")
    return render_report(
        QUESTION, "default", [ScannedDocument(TextFile("saltmere.txt", text), result, picks, picks)]
    )
