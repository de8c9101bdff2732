"""Laws of apply and update that hold for every object."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from homeport.machinery.apply import entry, managed
from homeport.machinery.apply.fieldset import FieldSet
from homeport.machinery.schema.node import Schema

_S = {"type": "string"}
_ITEM = {"type": "object", "properties": {"name": _S, "value": _S}}
SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "color": _S,
                    "tags": {"type": "array", "items": _S, "x-kubernetes-list-type": "set"},
                    "env": {
                        "type": "array",
                        "items": _ITEM,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                    },
                    "labels": {"type": "object", "additionalProperties": _S},
                    "plain": {"type": "array", "items": _S},
                },
            },
            "status": {"type": "object", "properties": {"phase": _S}},
        },
    }
)
names = st.lists(st.sampled_from("abcd"), unique=True, max_size=3)
specs = st.fixed_dictionaries(
    {},
    optional={
        "color": st.sampled_from(["red", "blue"]),
        "tags": names,
        "env": names.map(lambda found: [{"name": name, "value": name * 2} for name in found]),
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2),
        "plain": names,
    },
)
schemas = st.sampled_from([SCHEMA, None])
relaxed = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"


def config(spec: Any, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "e.com/v1", "kind": "W", "metadata": {"name": "w", **metadata}, "spec": spec}


def apply(live: Any, spec: Any, manager: str = "a", *, time: str = NOW, schema: Any = SCHEMA, **more: Any) -> Any:
    more.setdefault("force", True)
    return managed.apply(live, config(spec), schema=schema, api_version="e.com/v1", manager=manager, time=time, **more)


def update(live: Any, new: Any, manager: str, *, time: str = NOW, schema: Any = SCHEMA, **more: Any) -> None:
    managed.update(live, new, schema=schema, api_version="e.com/v1", manager=manager, time=time, **more)


def owned(obj: Any, manager: str) -> FieldSet:
    found = [e for e in obj["metadata"].get("managedFields", []) if e["manager"] == manager]
    return FieldSet.from_v1(found[0]["fieldsV1"]) if found else FieldSet()


def present(obj: Any) -> Any:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}


@relaxed
@given(specs, specs, schemas)
def test_applying_twice_is_applying_once(first: Any, second: Any, schema: Any) -> None:
    live = apply(apply(None, first, "other", schema=schema), second, schema=schema)
    again = apply(live, second, time=LATER, schema=schema)
    assert again == live


@relaxed
@given(specs, specs, schemas)
def test_what_is_applied_is_in_the_object(first: Any, second: Any, schema: Any) -> None:
    live = apply(apply(None, first, schema=schema), second, "b", schema=schema)
    for field, value in second.items():
        if field in ("color", "plain"):
            assert live["spec"][field] == value
        elif isinstance(value, dict):
            assert live["spec"][field].items() >= value.items()
        elif schema is not None:
            assert all(item in live["spec"][field] for item in value)


@relaxed
@given(specs, specs)
def test_a_sole_applier_that_changes_its_mind_leaves_nothing_behind(first: Any, second: Any) -> None:
    live = apply(apply(None, first), second)
    fresh = apply(None, second)
    assert owned(live, "a") == owned(fresh, "a")
    expected = {field: value for field, value in second.items() if value or field == "plain"}
    left = {field: value for field, value in (live.get("spec") or {}).items() if value or field == "plain"}
    assert {k: sorted(map(str, v)) for k, v in left.items()} == {k: sorted(map(str, v)) for k, v in expected.items()}


@relaxed
@given(specs, specs)
def test_no_two_managers_end_up_with_a_leaf_after_an_update(first: Any, second: Any) -> None:
    live = apply(None, first)
    new = copy.deepcopy(config(second))
    update(live, new, "b")
    shared = owned(new, "a").intersection(owned(new, "b"))
    changed = [p for p in shared.leaves() if len(p) > 1]
    assert not changed


@relaxed
@given(specs)
def test_an_update_that_changes_nothing_keeps_entries_and_times(spec: Any) -> None:
    live = apply(None, spec)
    new = present(live)
    new["metadata"] = dict(new["metadata"])
    update(live, new, "b", time=LATER)
    assert new["metadata"].get("managedFields") == live["metadata"].get("managedFields")


@relaxed
@given(specs, specs)
def test_inputs_are_never_changed(first: Any, second: Any) -> None:
    live = apply(None, first)
    applied = config(second)
    before = copy.deepcopy((live, applied))
    managed.apply(live, applied, schema=SCHEMA, api_version="e.com/v1", manager="b", time=NOW, force=True)
    assert (live, applied) == before


def test_an_applier_keeps_one_entry_when_it_changes_the_version() -> None:
    live = apply(None, {"color": "red", "tags": ["a"]})
    applied = {**config({"color": "red"}), "apiVersion": "e.com/v2"}
    result = managed.apply(live, applied, schema=SCHEMA, api_version="e.com/v2", manager="a", time=LATER)
    (only,) = result["metadata"]["managedFields"]
    assert only["apiVersion"] == "e.com/v2"
    assert "tags" not in result["spec"]


def test_an_updater_has_an_entry_per_version_and_subresource() -> None:
    live = config({"color": "red"})
    update(None, live, "a")
    new = {**present(live), "status": {"phase": "Up"}}
    new["metadata"] = dict(new["metadata"])
    update(live, new, "a", subresource="status", time=LATER)
    assert [(e["manager"], e.get("subresource")) for e in new["metadata"]["managedFields"]] == [
        ("a", None),
        ("a", "status"),
    ]


def test_conflicts_name_each_manager_and_path() -> None:
    live = apply(None, {"color": "red", "env": [{"name": "a", "value": "1"}]}, "one")
    second = {**live, "status": {"phase": "x"}, "metadata": dict(live["metadata"])}
    update(live, second, "two", subresource="status")
    third = {**second, "spec": {**second["spec"], "labels": {"k": "v"}}, "metadata": dict(second["metadata"])}
    update(second, third, "three")
    with pytest.raises(managed.ApplyConflict) as caught:
        apply(third, {"color": "b", "env": [{"name": "a", "value": "2"}], "labels": {"k": "w"}}, "me", force=False)
    assert caught.value.message == (
        "Apply failed with 3 conflicts: "
        'conflicts with "one":\n- .spec.color\n- .spec.env[name="a"].value\n'
        'conflicts with "three" using e.com/v1:\n- .spec.labels.k'
    )
    assert caught.value.causes[2] == ("FieldManagerConflict", 'conflict with "three" using e.com/v1', ".spec.labels.k")


def test_a_field_that_another_manager_shares_survives_its_removal_by_one() -> None:
    live = apply(apply(None, {"color": "red", "tags": ["a", "b"]}, "one"), {"tags": ["b"]}, "two")
    after = apply(live, {}, "one")
    assert after["spec"] == {"tags": ["b"]}
    assert str(owned(after, "one")) == ".spec"


def test_the_fields_of_a_version_that_is_gone_are_forgotten() -> None:
    live = config({"color": "red", "tags": ["a"]})
    update(None, live, "old")
    live["metadata"]["managedFields"][0]["apiVersion"] = "e.com/v0"
    new = copy.deepcopy(present(live))
    new["spec"]["color"] = "blue"
    update(live, new, "b", view=lambda obj, version: None)
    assert [e["manager"] for e in new["metadata"]["managedFields"]] == ["b"]


def test_fields_of_another_version_are_compared_in_that_version() -> None:
    live = config({"color": "red", "tags": ["a"]})
    update(None, live, "old")
    live["metadata"]["managedFields"][0] |= {
        "apiVersion": "e.com/v0",
        "fieldsV1": {"f:spec": {"f:colour": {}, "f:tags": {}}},
    }

    def view(obj: Any, version: str) -> tuple[dict[str, Any], None]:
        spec = obj.get("spec") or {}
        return {**obj, "spec": {"colour": spec.get("color"), "tags": spec.get("tags")}}, None

    new = copy.deepcopy(present(live))
    new["spec"]["color"] = "blue"
    update(live, new, "b", view=view)
    assert str(owned(new, "old")) == ".spec.tags"


def test_a_list_that_became_atomic_is_owned_as_a_whole() -> None:
    live = config({"plain": ["a"], "color": "red"})
    update(None, live, "old")
    live["metadata"]["managedFields"][0]["fieldsV1"] = {"f:spec": {"f:plain": {".": {}, 'v:"a"': {}}, "f:color": {}}}
    new = copy.deepcopy(present(live))
    new["spec"]["plain"] = ["b"]
    update(live, new, "b")
    assert str(owned(new, "old")) == ".spec.color"


def test_client_edits_of_managed_fields_are_honoured_but_not_through_a_subresource() -> None:
    live = config({"color": "red"})
    update(None, live, "a")
    edited = [{**live["metadata"]["managedFields"][0], "manager": "z"}]
    for subresource, expected in (("", "z"), ("status", "a")):
        new = copy.deepcopy(live)
        new["metadata"]["managedFields"] = edited
        update(live, new, "b", subresource=subresource)
        assert [e["manager"] for e in new["metadata"]["managedFields"]] == [expected]


def test_an_item_without_its_key_keeps_the_old_managers_on_update() -> None:
    live = config({"color": "red"})
    update(None, live, "a")
    new = copy.deepcopy(present(live))
    new["spec"]["env"] = [{"value": "1"}]
    update(live, new, "b")
    assert new["metadata"]["managedFields"] == live["metadata"]["managedFields"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([{"manager": "a"}], [("FieldValueRequired", "operation")]),
        ([{"operation": "Chew"}], [("FieldValueNotSupported", "operation")]),
        ([{"operation": "Apply", "fieldsType": "V9"}], [("FieldValueInvalid", "fieldsType")]),
        ([{"operation": "Apply", "manager": "x" * 129}], [("FieldValueTooLong", "manager")]),
        ([{"operation": "Apply", "manager": "a\n"}], [("FieldValueInvalid", "manager")]),
        ([{"operation": "Apply", "subresource": "x" * 257}], [("FieldValueTooLong", "subresource")]),
        ([{"operation": "Apply", "manager": "ok", "fieldsType": "FieldsV1"}], []),
    ],
)
def test_malformed_managed_fields_are_named(given: Any, expected: Any) -> None:
    found = entry.problems(given)
    assert [(p.reason, p.field) for p in found] == [(r, f"metadata.managedFields[0].{f}") for r, f in expected]


def _nested(levels: int, leaf: Any) -> Any:
    for _ in range(levels):
        leaf = {"a": leaf}
    return leaf


@pytest.mark.parametrize("levels", [220, 1000])
def test_an_update_of_something_nested_very_deeply_leaves_managers_that_can_be_stored(levels: int) -> None:
    live = config(_nested(levels, 1))
    update(None, live, "a", schema=None)
    new = config(_nested(levels, 2))
    update(live, new, "b", schema=None)
    for found in (live, new):
        orjson.dumps(found["metadata"])


def test_something_nested_too_deeply_cannot_be_applied() -> None:
    assert apply(None, _nested(150, 3), schema=None)["spec"]
    with pytest.raises(managed.ApplyError, match="too deeply"):
        apply(None, _nested(2000, 3), schema=None)
