"""Resource quantities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.machinery.quantity import QuantityError, canonical, compare, is_quantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1000", "1k"), ("0.5", "500m"), ("1.5Gi", "1536Mi"), ("1024Mi", "1Gi"), ("1024", "1024"), ("1e3", "1e3"),
        ("1.2e6", "1200e3"), ("0.1Gi", "107374182400m"), ("-5Mi", "-5Mi"), ("0Mi", "0"), ("0.5Ki", "512"),
        ("100m", "100m"), ("0.0000000001", "1n"), ("99999999999999999999", "9223372036854775807"), (5, "5"), (1.5, "1500m"),
        ("+1", "1"), (".5", "500m"), ("1.", "1"), ("1025Ki", "1025Ki"),
    ],
)  # fmt: skip
def test_a_quantity_is_written_in_its_canonical_form(text: str | float, shown: str) -> None:
    assert canonical(text) == shown


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1gi", "1Kii", "--1", "1e", ".", True, "1e999", "1i"])
def test_an_invalid_quantity_is_refused(text: str) -> None:
    assert not is_quantity(text)
    with pytest.raises(QuantityError):
        parse_quantity(text)


def test_amounts_compare_across_notations() -> None:
    assert compare("1Gi", "1024Mi") == 0
    assert compare("1G", "1Gi") == -1
    assert compare("0.1", "99m") == 1
    assert parse_quantity("1Gi") == parse_quantity("1073741824")
    assert str(parse_quantity("1Gi") + parse_quantity("512Mi")) == "1536Mi"
    assert str(parse_quantity("1") - parse_quantity("250m")) == "750m"


def test_whole_values_round_up() -> None:
    assert parse_quantity("1500m").value == 2
    assert parse_quantity("-1500m").value == -1


@given(st.integers(-(2**62), 2**62), st.sampled_from(["", "m", "k", "Ki", "Mi", "u", "e3"]))
def test_the_canonical_form_means_the_same(number: int, suffix: str) -> None:
    quantity = parse_quantity(f"{number}{suffix}")
    assert parse_quantity(str(quantity)) == quantity
