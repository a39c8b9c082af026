"""Builds the documentation site in ``build/site/html``: ``python docs/site/build.py``.

The pages of ``docs/`` are written for readers of the repository. This script makes them
a site of their own: links between pages lead to the site's pages, and linked files of
the repository are copied into it. The command-line page is made from the program
itself, and the API reference from docstrings. No step uses the network.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import typer
from links import broken_links
from typer.cli import get_docs_for_click

from spscanner_rag.apps.cli.app import program

REPOSITORY = Path(__file__).resolve().parents[2]
SITE = REPOSITORY / "build" / "site"
PAGES, HTML = SITE / "pages", SITE / "html"

PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/data/README.md": "example-data.md",
    "spscanner_rag/checkpoint/bundled/README.md": "model-card.md",
}
"""Pages from outside ``docs/``, and their names on the site."""

_LINK = re.compile(
    r"\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)|(?P<attribute>src(?:set)?)=\"(?P<source>[^\"]+)\""
)


def main() -> int:
    """Build the site.

    Return 1, after printing why, if the builder warns or a link is broken; else 0.
    """
    shutil.rmtree(SITE, ignore_errors=True)
    PAGES.mkdir(parents=True)
    collect_pages()
    (PAGES / "cli.md").write_text(command_line_page(), encoding="utf-8")
    shutil.copy(Path(__file__).with_name("zensical.toml"), SITE)
    shutil.copy(Path(__file__).with_name("extra.css"), PAGES)
    paths = [
        str(REPOSITORY),
        str(REPOSITORY / "integrations"),
        str(REPOSITORY / "docs" / "site"),
        os.environ.get("PYTHONPATH", ""),
    ]
    command = [
        sys.executable,
        "-m",
        "zensical",
        "build",
        "--strict",
        "--clean",
        "-f",
        "zensical.toml",
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        command,
        cwd=SITE,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout)
    # a warning about a docstring, which strict mode ignores
    warned = "griffe: " in done.stdout
    broken = [] if done.returncode else broken_links(HTML)
    sys.stdout.writelines(f"{link}\n" for link in broken)
    return 1 if done.returncode or warned or broken else 0


def collect_pages() -> None:
    """Copy all pages and the files that they link to."""
    folder = REPOSITORY / "docs"
    places = {REPOSITORY / name: place for name, place in PLACES.items()}
    places |= {page: page.name for page in folder.glob("*.md")}
    places |= {
        page: f"api/{page.name}" for page in (folder / "site" / "api").glob("*.md")
    }
    for page, place in places.items():
        target = PAGES / place
        target.parent.mkdir(exist_ok=True)
        text = page.read_text(encoding="utf-8")
        if page.parent.name == "bundled":
            # metadata for the Hub
            text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
        target.write_text(relinked(text, page, target, places), encoding="utf-8")


def relinked(text: str, page: Path, target: Path, places: dict[Path, str]) -> str:
    """Return the text of a page with links to the same targets on the site.

    A link to a folder becomes text.
    """

    def replaced(link: re.Match[str]) -> str:
        path, hash_sign, anchor = (link["target"] or link["source"]).partition("#")
        if urlsplit(path).scheme or not path or page.parent.name == "api":
            return link[0]
        linked = (page.parent / path).resolve()
        if linked.is_dir():
            return link["text"]
        if linked in places:
            place = PAGES / places[linked]
        else:
            place = PAGES / "files" / linked.relative_to(REPOSITORY)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(linked, place)
        shown = os.path.relpath(place, target.parent)
        if link["attribute"]:  # a picture for dark pages
            return f'{link["attribute"]}="{shown}"'
        return f"[{link['text']}]({shown}{hash_sign}{anchor})"

    return _LINK.sub(replaced, text)


def command_line_page() -> str:
    """Return the help of all commands as a page."""
    command = program()
    page = get_docs_for_click(
        obj=command, ctx=typer.Context(command), name="spscanner", title="Command line"
    )
    for name, own in command.commands.items():  # type: ignore[attr-defined]
        first = " ".join((own.help or "").split("\n\n")[0].split())
        page = re.sub(
            rf"^\* `{name}`: .*$",
            lambda line, first=first: f"{line[0].split(': ')[0]}: {first}",
            page,
            flags=re.M,
        )
    # A JSON layout is a paragraph that begins with a brace; Markdown would join its
    # lines.
    return re.sub(
        r"^(\{.*?)\n$",
        "```text\n\\1\n```\n",
        page.replace("\b", ""),
        flags=re.MULTILINE | re.DOTALL,
    )


if __name__ == "__main__":
    sys.exit(main())
