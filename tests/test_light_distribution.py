"""``spscanner-rag-light`` is ``spscanner-rag`` without torch, and nothing else."""

import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from hatchling.metadata.core import ProjectMetadata
from packaging.requirements import Requirement

from spscanner_rag.system import install_hints

REPOSITORY = Path(__file__).resolve().parent.parent
LIGHT = REPOSITORY / "distributions" / "light"
FOR_CHECKOUTS = {"dev", "docs", "test"}


def metadata_of(folder: Path) -> ProjectMetadata:
    return WheelBuilder(str(folder)).metadata


def names(requirements: list[str]) -> set[str]:
    return {Requirement(line).name for line in requirements}


def test_its_requirements_are_the_others_without_torch() -> None:
    full, light = metadata_of(REPOSITORY), metadata_of(LIGHT)
    assert light.version == full.version
    asked = set(full.core.dependencies)
    assert set(light.core.dependencies) < asked
    left_out = asked - set(light.core.dependencies)
    assert names(list(left_out)) == {"torch"}
    assert light.core.scripts == full.core.scripts
    assert light.core.entry_points == full.core.entry_points
    assert light.core.requires_python == full.core.requires_python
    assert (LIGHT / "LICENSE").read_text() == (REPOSITORY / "LICENSE").read_text()


def test_its_extras_are_the_others_that_need_no_torch() -> None:
    full = metadata_of(REPOSITORY).core.optional_dependencies
    light = metadata_of(LIGHT).core.optional_dependencies
    assert {extra: full[extra] for extra in light} == light
    assert set(full) - set(light) - FOR_CHECKOUTS == set(install_hints._WITH_TORCH)
    for requirements in light.values():
        brings_torch = {"torch", "numba", "sentence-transformers", "einops"}
        assert not names(requirements) & brings_torch


def test_a_missing_extra_is_installed_without_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(install_hints, "torch_is_installed", lambda: False)
    assert 'pip install "./distributions/light[serve]"' in install_hints.install_line(
        "serve"
    )
    assert 'pip install ".[baselines]"' in install_hints.install_line("baselines")


@pytest.mark.slow
def test_its_wheel_has_the_same_files(wheel: Path, light_wheel: Path) -> None:
    files = []
    for path in (wheel, light_wheel):
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
        files.append(
            {
                (entry.filename, entry.CRC)
                for entry in entries
                if ".dist-info/" not in entry.filename
            }
        )
    assert files[0] == files[1]
    assert light_wheel.name.startswith("spscanner_rag_light-")
