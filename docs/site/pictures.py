"""Makes the pictures at the top of README with ``python docs/site/pictures.py``.

Needs playwright and Chromium.

They show the page that ``spscanner scan --out page.html`` writes, light and dark.
"""

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from PIL import Image
from playwright.sync_api import sync_playwright

REPOSITORY = Path(__file__).resolve().parents[2]
QUESTION, SENTENCES = "Why did the Kestrel run aground?", 5
WIDTH, HEIGHT = 1100, 620
COLOURS = 160  # so that README loads only some 50 kB
FILES: Final[dict[Literal["light", "dark"], str]] = {
    "light": "result-page.png",
    "dark": "result-page-dark.png",
}


def main() -> None:
    """Write the pictures to ``docs``."""
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        page = _page(Path(folder))
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for scheme, name in FILES.items():
            shown = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme
            )
            shown.goto(page.as_uri())
            picture = Image.open(io.BytesIO(shown.screenshot())).quantize(COLOURS)
            picture.save(REPOSITORY / "docs" / name, optimize=True)
        browser.close()


def _page(folder: Path) -> Path:
    """Write the page of a question about all the example's pages; return its path."""
    lines = (
        (REPOSITORY / "examples/data/saltmere.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    text = "\n\n".join(json.loads(line)["text"] for line in lines)
    (folder / "saltmere.txt").write_text(text, encoding="utf-8")
    options = [
        "-q",
        QUESTION,
        "--top-k",
        str(SENTENCES),
        "--out",
        "page.html",
        "--no-cache",
    ]
    command = [
        sys.executable,
        "-m",
        "spscanner_rag.apps.cli",
        "scan",
        "saltmere.txt",
        *options,
    ]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "page.html"


if __name__ == "__main__":
    main()
