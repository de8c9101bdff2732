from __future__ import annotations

from typing import Any

import pytest

from homeport.sim.prism.fiql import FiqlError, FiqlFilter
from homeport.sim.prism.odata import Filter, ODataError, ordered, parse_order

ENTITY = {
    "name": "web-1",
    "size": 8757,
    "on": True,
    "config": {"deviceId": 5, "deviceName": "o'neil"},
    "entitiesAffected": [{"extId": "u1"}, {"extId": "u2"}],
    "clusterExtIds": ["c1", "c2"],
    "status": "RUNNING",
    "createTime": "2026-01-02T00:00:00.000000Z",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name eq 'web-1'", True),
        ("name ne 'web-1'", False),
        ("name eq 'web-1' and size eq 8757", True),
        ("name eq 'x' or size gt 8000", True),
        ("not (name eq 'web-1')", False),
        ("not name eq 'web-1'", False),
        ("name eq 'a' or name eq 'b' and size eq 8757", False),
        ("(name eq 'web-1' or name eq 'b') and size eq 1", False),
        ("config/deviceId eq 5", True),
        ("config/deviceName eq 'o''neil'", True),
        ("config/missing/deeper eq 'x'", False),
        ("missing eq null", True),
        ("name ne null", True),
        ("on eq true", True),
        ("on", True),
        ("size ge 8757 and size le 8757 and size lt 8758", True),
        ("name gt 5", False),
        ("name in ('a', 'web-1')", True),
        ("size in (1, 2)", False),
        ("status eq Prism.Config.TaskStatus'RUNNING'", True),
        ("entitiesAffected/any(a:a/extId eq 'u2')", True),
        ("entitiesAffected/all(a:a/extId eq 'u2')", False),
        ("clusterExtIds/any(c: c eq 'c2')", True),
        ("missing/any(c: c eq 'c2')", False),
        ("startswith(name, 'web')", True),
        ("endswith(name, '-1') and contains(name, 'eb')", True),
        ("tolower(name) eq 'web-1'", True),
        ("createTime gt 2026-01-01T00:00:00Z", True),
    ],
)
def test_filters_mean_what_odata_says(text: str, expected: bool) -> None:
    assert Filter(text).matches(ENTITY) is expected


@pytest.mark.parametrize(
    "text",
    ["", "name", "name eq", "eq 'x'", "name eq 'x", "name eq 'x' and", "(name eq 'x'", "name eq 'x' y", "any(a)", "a ~ 1",
     "name eq 'a')", "f/any(1:a)", "(" * 200 + "a eq 1" + ")" * 200],
)  # fmt: skip
def test_what_can_not_be_read_is_refused(text: str) -> None:
    if text == "name":
        assert not Filter(text).matches(ENTITY)
        return
    with pytest.raises(ODataError):
        Filter(text)


def test_a_filter_knows_its_fields_and_plain_equalities() -> None:
    parsed = Filter("name eq 'a' and config/x eq 1 and tags/any(t: t/k eq 'z')")
    assert parsed.fields == {"name", "config", "tags"}
    assert parsed.equals == {"name": "a"}
    assert parsed.contains == {"tags/k": "z"}
    mixed = Filter("tags/any(t: t/k eq 'z') and (name eq 'a' or name eq 'b')")
    assert (mixed.equals, mixed.contains) == ({}, {"tags/k": "z"})
    assert Filter("tags/any(t: t/k eq 'z') or name eq 'a'").contains == {}
    assert Filter("not tags/any(t: t/k eq 'z')").contains == {}
    assert Filter("name eq 'a' or size eq 1").equals == {}
    assert Filter("not (name eq 'a')").equals == {}


def test_a_filter_knows_between_which_values_of_a_field_it_chooses() -> None:
    assert Filter("name eq 'a' or name eq 'b' or name eq 'c' and size eq 1").among == {"name": {"a", "b", "c"}}
    assert Filter("name eq 'a' and size eq 1").among == {"name": {"a"}, "size": {1}}
    assert Filter("name eq 'a' or size eq 1").among == {}
    assert Filter("name eq 'a' or not (name eq 'b')").among == {}
    assert Filter("(name eq 'a' or name eq 'b') and size eq 1").among == {"size": {1}}


def test_order_is_by_several_fields_in_either_direction() -> None:
    items: list[dict[str, Any]] = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 1, "b": "z"}, {"b": "w"}]
    result = ordered(items, parse_order("a desc, b"))
    assert [item["b"] for item in result] == ["y", "x", "z", "w"]
    with pytest.raises(ODataError):
        parse_order("a sideways")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("name==web-1", True),
        ("name==web-2", False),
        ("name!=web-2", True),
        ("name==web-*", True),
        ("name==web-1;state==OFF", False),
        ("name==x,state==ON", True),
        ("size=gt=4;size=le=5", True),
        ("ips==10.0.0.2", True),
    ],
)
def test_filters_of_v3_are_fiql(text: str, expected: bool) -> None:
    values = {"name": "web-1", "state": "ON", "size": 5, "ips": ["10.0.0.1", "10.0.0.2"]}
    assert FiqlFilter(text).matches(values) is expected


def test_an_invalid_fiql_is_refused() -> None:
    with pytest.raises(FiqlError):
        FiqlFilter("name eq 'x'")
