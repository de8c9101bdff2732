from __future__ import annotations

import pytest

from homeport.capi.name import fnv32a, label_value


@pytest.mark.parametrize("name", ["", "a", "my-set", "a" * 63, "a.b_c-d"])
def test_a_name_that_can_be_a_label_value_stays_as_it_is(name: str) -> None:
    assert label_value(name) == name


@pytest.mark.parametrize("name", ["a" * 64, "-a", "a-", "a/b"])
def test_other_names_become_a_short_valid_hash(name: str) -> None:
    value = label_value(name)
    assert value.startswith("hash_")
    assert value.endswith("_z")
    assert label_value(value) == value


def test_hashes_are_those_of_everybody_else() -> None:
    assert fnv32a(b"") == 0x811C9DC5
    assert fnv32a(b"foobar") == 0xBF9CF968
    assert label_value("foobar!" * 10) == label_value("foobar!" * 10) != label_value("foobar?" * 10)
