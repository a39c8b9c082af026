"""Names of scorers and their parts."""

import pytest

from spscanner_rag.baselines.names import NameParts, check_name, units_for


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("bm25", ("bm25", "", ())),
        (" scanner ", ("scanner", "", ())),
        ("dense:a+b", ("dense", "a+b", ())),
        ("scanner:C:/models/own", ("scanner", "C:/models/own", ())),
        (
            "hybrid:scanner:own+dense:a/b",
            ("hybrid", "scanner:own+dense:a/b", ("scanner:own", "dense:a/b")),
        ),
    ],
)
def test_parts(name: str, parts: tuple[object, ...]) -> None:
    assert NameParts.of(name) == (*parts, {})
    check_name(name)
    assert units_for(name, ["chunk"]) == (
        ["sentence"] if parts[0] == "scanner" else ["chunk"]
    )


WRONG = (
    "bm26 bm25: bm25:x hybrid hybrid: hybrid:bm25+ hybrid:bm25+x mamba remote cascade"
)


@pytest.mark.parametrize("name", ["", *WRONG.split()])
def test_unknown_names(name: str) -> None:
    with pytest.raises(
        ValueError,
        match=r"does not exist; expected one of|got the retriever .*; expected",
    ):
        check_name(name)


@pytest.mark.parametrize(
    "name", ["remote:{}", "hybrid:bm25+remote:{}", "cascade:bm25>remote:{}@7"]
)
@pytest.mark.parametrize(
    "address",
    ["http://keeper:pa55@127.0.0.1:9", "https://pa55@a.example", "keeper:pa55@a"],
)
def test_an_address_with_a_password_is_no_name(name: str, address: str) -> None:
    with pytest.raises(ValueError, match="every report would show") as raised:
        check_name(name.format(address))
    assert "pa55" not in str(raised.value)
