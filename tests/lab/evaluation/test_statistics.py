"""Means, bootstrap intervals and the paired test, by hand and against scipy."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_lab.evaluation.statistics import (
    Average,
    Estimate,
    Sample,
    estimate,
    paired_test,
    sign_flip_p,
)

SMALL = Sample([0.0, 1.0, 1.0, 0.5], ["a", "a", "b", "c"])
LARGE = Sample([1.0] * 10, [f"d{n}" for n in range(10)])


def of_one(sample: Sample, **options: Any) -> Estimate:
    """The mean over the questions of one source."""
    return estimate({"": sample}, **options)


def random_sample(questions: int, documents: int, seed: int = 0) -> Sample:
    """Values that depend on the document as well as on the question."""
    random = np.random.default_rng(seed)
    places = random.integers(documents, size=questions)
    values = (random.random(documents)[places] + random.random(questions)) / 2
    return Sample(values, [f"d{place}" for place in places])


def test_means() -> None:
    found = of_one(SMALL)
    assert (found["value"], found["questions"], found["documents"]) == (0.625, 4, 3)
    assert found == estimate({"": SMALL}, "micro")
    assert (
        estimate({"x": SMALL, "y": SMALL}, "micro")["documents"] == 6
    )  # two sources may use the same name
    both = {"small": SMALL, "large": LARGE}
    macro, micro = estimate(both), estimate(both, "micro")
    assert macro["value"] == pytest.approx((0.625 + 1) / 2)
    assert micro["value"] == pytest.approx(12.5 / 14)
    assert (
        (macro["questions"], macro["documents"])
        == (micro["questions"], micro["documents"])
        == (14, 13)
    )


def test_the_seed_decides_and_the_order_of_questions_and_sources_does_not_matter() -> (
    None
):
    first, second = random_sample(60, 12), random_sample(40, 9, seed=1)
    assert of_one(first, seed=3) == of_one(first, seed=3) != of_one(first, seed=4)
    order = np.random.default_rng(0).permutation(60)
    shuffled = Sample(first.values[order], [first.documents[place] for place in order])
    averages: list[Average] = ["macro", "micro"]
    for average in averages:
        assert estimate({"x": first, "y": second}, average) == estimate(
            {"y": second, "x": shuffled}, average
        )


def test_a_source_is_resampled_alike_beside_any_other() -> None:
    # a constant source moves the mean and does not change the width
    sample = random_sample(60, 12)
    alone = estimate({"x": sample})
    beside = estimate({"x": sample, "constant": LARGE})
    for end in ("ci_low", "ci_high"):
        assert beside[end] == pytest.approx((alone[end] + 1) / 2)  # type: ignore[literal-required]


def test_no_interval_from_a_single_question() -> None:
    found = of_one(Sample([0.5], ["a"]))
    assert (found["value"], found["ci_low"], found["ci_high"]) == (0.5, None, None)


def test_equals_a_plain_cluster_bootstrap() -> None:
    sample = random_sample(300, 15)
    found = of_one(sample)
    names = np.array(sample.documents)
    groups = [sample.values[names == name] for name in np.unique(names)]
    random = np.random.default_rng(5)
    means = [
        np.concatenate(
            [groups[g] for g in random.integers(len(groups), size=len(groups))]
        ).mean()
        for _ in range(10_000)
    ]
    assert [found["ci_low"], found["ci_high"]] == pytest.approx(
        np.quantile(means, [0.025, 0.975]), abs=0.01
    )


def differences(
    questions: int, shift: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    random = np.random.default_rng(2)
    first = random.random(questions)
    return first, first + random.normal(scale=0.2, size=questions) - shift


@pytest.mark.parametrize("shift", [0.0, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("questions", [8, 13, 40])
def test_equals_scipy(questions: int, shift: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    first, second = differences(questions, shift)
    documents = [str(n) for n in range(questions)]
    difference, p_value = paired_test(
        {"x": Sample(first, documents)}, {"x": Sample(second, documents)}
    )
    reference = stats.permutation_test(
        (first, second),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=2**questions if questions < 14 else 20_000,
        rng=np.random.default_rng(3),
    )
    assert p_value == pytest.approx(
        reference.pvalue, abs=1e-12 if questions < 14 else 0.015
    )
    assert difference["value"] == pytest.approx(reference.statistic)


def test_exact_over_documents_of_two_sources() -> None:
    # every way to swap whole documents, by plain loops
    first = {"x": random_sample(9, 4), "y": random_sample(5, 3, seed=1)}
    shifts = np.random.default_rng(4)
    second = {
        name: Sample(
            sample.values - shifts.normal(0.1, 0.3, sample.questions), sample.documents
        )
        for name, sample in first.items()
    }
    swaps = [
        (name, document)
        for name in first
        for document in sorted(set(first[name].documents))
    ]
    statistics = []
    for pattern in range(2 ** len(swaps)):
        swapped = {swap for place, swap in enumerate(swaps) if pattern >> place & 1}
        signed = {
            name: [
                (a - b) * (-1 if (name, document) in swapped else 1)
                for a, b, document in zip(
                    first[name].values,
                    second[name].values,
                    first[name].documents,
                    strict=True,
                )
            ]
            for name in first
        }
        statistics.append(np.mean([np.mean(values) for values in signed.values()]))
    difference, p_value = paired_test(first, second)
    assert difference["value"] == pytest.approx(statistics[0])
    expected = np.mean(np.abs(statistics) >= abs(statistics[0]) - 1e-12)
    assert p_value == pytest.approx(expected)


def test_seeded_and_never_zero() -> None:
    first, second = differences(60, 1.0)
    documents = [str(n) for n in range(60)]
    samples = {"x": Sample(first, documents)}, {"x": Sample(second, documents)}
    assert paired_test(*samples)[1] == 1 / 10_001
    middling = {"x": Sample(differences(60, 0.02)[1], documents)}
    assert paired_test(samples[0], middling, seed=1) == paired_test(
        samples[0], middling, seed=1
    )
    assert paired_test(samples[0], middling, seed=1) != paired_test(
        samples[0], middling, seed=2
    )


def test_questions_of_a_single_document_are_resampled() -> None:
    one, other = (
        of_one(Sample([1.0, 2.0, 4.0][::step], ["a"] * 3)) for step in (1, -1)
    )
    assert one == other
    assert one["ci_low"] is not None
    assert one["ci_high"] is not None
    assert 1 <= one["ci_low"] < one["value"] < one["ci_high"] <= 4


def test_sign_flips_that_are_drawn() -> None:
    assert (
        0.15 < sign_flip_p(np.array([1.0, 2.0, 4.0]), 7, 0) <= 1
    )  # one way fewer than there are
