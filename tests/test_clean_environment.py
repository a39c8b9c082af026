"""The wheel in environments that contain its requirements and nothing else.

Such an environment is a folder of links to the installed distributions that the
requirements name, directly or through others, in an interpreter that sees no other
folder. Building it needs no index.
"""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OURS = "spscanner-rag"

SCAN = """
from spscanner_rag import Scanner
assert Scanner.from_pretrained().scan("Who?", "He did.").sentences
"""
CORE = """
import spscanner_rag.apps.cli
from spscanner_rag.baselines import BM25
try:
    BM25().score_units("Who?", "He did.", BM25().units_of("He did."))
except ImportError as error:
    assert 'pip install ".[baselines]"' in str(error), error
else:
    raise AssertionError("bm25s was imported")
"""
MISSING = """
try:
    import {module}
except ImportError as error:
    assert 'pip install ".[{extra}]"' in str(error), error
else:
    raise AssertionError("{module} was imported")
"""
MODULES = {
    "langchain": ["langchain_spscanner"],
    "llama-index": [
        "llama_index.retrievers.spscanner",
        "llama_index.postprocessor.spscanner",
    ],
}


def required(wheel: Path, extra: str) -> Iterator[Distribution]:
    """The distributions that the wheel requires with an extra, without repeats."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(
            name for name in archive.namelist() if name.endswith(".dist-info/METADATA")
        )
        metadata = Parser().parsestr(archive.read(name).decode("utf-8"))
    waiting = [(line, extra) for line in metadata.get_all("Requires-Dist") or []]
    seen: set[tuple[str, str]] = set()
    while waiting:
        line, wanted = waiting.pop()
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate(
            {"extra": wanted}
        ):
            continue
        for inner in ("", *requirement.extras):
            key = (canonicalize_name(requirement.name), inner)
            if key in seen or key[0] == OURS:
                continue
            try:
                found = distribution(requirement.name)
            except PackageNotFoundError:
                pytest.fail(f"{requirement.name} is required and not installed here")
            if (key[0], "") not in seen:
                yield found
            seen |= {key, (key[0], "")}
            waiting += [(line, inner) for line in found.requires or []]


def link(found: Distribution, site: Path) -> None:
    """Put a distribution into a folder of packages.

    Folders that several may share are created, not linked.
    """
    for top in {
        Path(file.parts[0]) for file in found.files or [] if ".." not in file.parts
    }:
        source = Path(str(found.locate_file(top)))
        namespace = (
            source.is_dir()
            and not (source / "__init__.py").exists()
            and top.suffix != ".dist-info"
        )
        pairs = (
            [(top / child.name, child) for child in source.iterdir()]
            if namespace
            else [(top, source)]
        )
        for name, place in pairs:
            (site / name).parent.mkdir(exist_ok=True)
            if place.exists() and not (site / name).exists():
                (site / name).symlink_to(place)


WITHOUT_TORCH = """
try:
    Scanner.from_pretrained(dtype="bfloat16")
except ImportError as error:
    assert 'pip install "torch' in str(error), error
else:
    raise AssertionError("torch was imported")
from spscanner_rag.system.install_hints import install_line
assert install_line("files") == (
    'pip install "./distributions/light[files]" in a clone of spscanner-rag'
)
from langchain_core.documents import Document
from langchain_spscanner import SPScannerRetriever
retriever = SPScannerRetriever.from_documents([Document(page_content="He did.")])
assert retriever.invoke("Who?")[0].page_content == "He did."
"""


@pytest.mark.slow
def test_the_light_distribution_works_where_torch_is_not_there(
    light_wheel: Path, tmp_path: Path
) -> None:
    for found in required(light_wheel, "langchain"):
        link(found, tmp_path)
    assert not (tmp_path / "torch").exists()
    with zipfile.ZipFile(light_wheel) as archive:
        archive.extractall(tmp_path)
    run_alone(tmp_path, SCAN + WITHOUT_TORCH)


def run_alone(folder: Path, code: str) -> None:
    """Run code in an interpreter that sees no packages but those in a folder."""
    path = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    # -I and -S: neither the environment of the tests nor this folder
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", path + code],
        capture_output=True,
        text=True,
        timeout=240,
        env={"HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("extra", [*MODULES, ""])
def test_works_with_the_framework_that_is_there_and_names_the_other(
    wheel: Path, tmp_path: Path, extra: str
) -> None:
    for found in required(wheel, extra):
        link(found, tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = [
        SCAN,
        *([] if extra else [CORE]),
    ]
    for other, modules in MODULES.items():
        for module in modules:
            line = f"import {module}\n"
            code.append(
                line if other == extra else MISSING.format(module=module, extra=other)
            )
    run_alone(tmp_path, "".join(code))
