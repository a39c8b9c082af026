import random

import numpy as np
import pytest

from spscanner_rag.lab.in_context import validation
from spscanner_rag.lab.in_context.batches import Batch, batch_of
from spscanner_rag.lab.in_context.document_keys import DocumentKeys
from spscanner_rag.lab.in_context.model import BlockSearchModel
from spscanner_rag.lab.in_context.search import Found
from spscanner_rag.lab.in_context.validation import places_of_right_documents
from spscanner_rag.lab.training.data.columns import PassageColumn
from tests.lab.in_context.conftest import digit_tokenizer, model  # noqa: F401 - fixtures


def batches() -> list[Batch]:
    columns = [
        PassageColumn(f"otter {n}", (f"The otter {n} slept.", f"The lynx {n} ran.")) for n in range(16)
    ]
    return [batch_of(columns[n : n + 2], random.Random(n)) for n in range(0, 16, 2)]


def test_a_model_that_knows_nothing_is_no_better_than_chance(model: BlockSearchModel) -> None:  # noqa: F811
    found = places_of_right_documents(model, batches())
    assert [place.documents for place in found] == [4] * 16
    assert [place.right for place in found] == [f"The otter {n} slept." for n in range(16)]
    assert 0.25 < np.mean([place.above for place in found]) < 0.75


@pytest.mark.parametrize(("right_is_last", "above"), [(False, 0.0), (True, 1.0)])
def test_the_place_of_the_right_document(
    model: BlockSearchModel,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    right_is_last: bool,
    above: float,
) -> None:
    given = batches()
    right = {q: c[0] for batch in given for q, c in zip(batch.questions, batch.columns, strict=True)}

    def search(_: BlockSearchModel, documents: DocumentKeys, question: str) -> Found:
        routing = np.zeros(documents.documents)
        routing[right[question]] = -1.0 if right_is_last else 1.0
        return Found(np.array([], np.int64), np.array([]), routing)

    monkeypatch.setattr(validation, "search", search)
    found = places_of_right_documents(model, given)
    assert {place.above for place in found} == {above}
    assert {place.place for place in found} == {0 if above == 0 else 3}
