"""Custom resources against their schema: pruning, defaults, validation, rules."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from conformance.client.api import CONFIGMAPS, Api
from conformance.client.widget import widget
from homeport.api.meta import Resource
from homeport.client.errors import BadRequest, Invalid
from homeport.client.protocol import MergePatch, Write

DRY = Write(dry_run=True)


async def test_unknown_fields_are_pruned_and_free_ones_kept(api: Api, widgets: Resource) -> None:
    obj = widget("a", api.ns, surprise=1, free={"any": {"thing": [1, "two"]}}, network={"odd": True, "name": "n"})
    obj["extra"] = {"top": "level"}
    obj["spec"]["template"] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "odd": 1},
        "spec": {"any": 1},
    }
    obj["spec"]["ports"] = [{"port": 1, "odd": 2}]
    await api.outcome("created", api.client.create(obj, kind=widgets))


async def test_defaults_fill_what_is_left_out(api: Api, widgets: Resource) -> None:
    made = await api.client.create(widget("a", api.ns, ports=[{"port": 1}]), kind=widgets)
    assert made["spec"] == {
        "color": "green",
        "replicas": 1,
        "network": {"mtu": 1500},
        "ports": [{"port": 1, "protocol": "TCP"}],
    }
    nulls = widget("b", api.ns, replicas=None, nothing=None, label=None, network=None)
    await api.outcome("nulls", api.client.create(nulls, kind=widgets))
    patched = await api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"replicas": None, "network": None}}))
    assert patched["spec"]["replicas"] == 1
    assert patched["spec"]["network"] == {"mtu": 1500}


CASES: dict[str, dict[str, Any]] = {
    "no required field": {"color": None},
    "enum": {"color": "pink"},
    "enum of another type": {"color": 5},
    "too small": {"replicas": -1},
    "too large": {"replicas": 11},
    "not an integer": {"replicas": 1.5},
    "integral float": {"replicas": 2.0},
    "text for integer": {"replicas": "1"},
    "beyond int32": {"replicas": 3_000_000_000},
    "exclusive minimum": {"ratio": 0},
    "maximum": {"ratio": 1.5},
    "multiple": {"even": 3},
    "boolean": {"on": "yes"},
    "pattern": {"label": "ABC"},
    "too short": {"label": "a"},
    "too long": {"label": "abcdefg"},
    "not a time": {"when": "yesterday"},
    "a time": {"when": "2026-01-02T03:04:05Z"},
    "too many items": {"ports": [{"port": n} for n in range(5)]},
    "missing key in items": {"ports": [{"name": "x"}]},
    "wrong type in items": {"ports": [{"port": "x"}]},
    "duplicate in map list": {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
    "duplicate in set": {"tags": ["a", "b", "a"]},
    "wrong item": {"words": [1]},
    "map value": {"settings": {"a": 1}},
    "list for object": {"settings": []},
    "object for list": {"words": {}},
    "int or string": {"amount": 5},
    "string of int or string": {"amount": "50%"},
    "neither int nor string": {"amount": True},
    "float for int or string": {"amount": 1.5},
    "embedded without kind": {"template": {"metadata": {"name": "x"}}},
    "embedded with bad name": {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "Bad Name"}}},
    "embedded with bad version": {"template": {"apiVersion": "a/b/c", "kind": "pod kind"}},
    "rule": {"color": "red", "replicas": 6},
    "rule with an expression": {"low": 5, "high": 1},
    "far rule": {"low": 50, "high": 1},
    "several at once": {"color": "pink", "replicas": 99, "label": "X", "tags": ["a", "a"]},
    "schema errors hide rules": {"color": "red", "replicas": 6, "label": "TOO LONG"},
}


@pytest.mark.parametrize("case", CASES)
async def test_a_value_is_held_against_the_schema(api: Api, widgets: Resource, case: str) -> None:
    spec = CASES[case]
    await api.outcome(case, api.client.create(widget("a", api.ns, **spec), DRY, kind=widgets))


async def test_the_top_of_an_object_is_validated(api: Api, widgets: Resource) -> None:
    meta = {"name": "a", "namespace": api.ns}
    for label, obj in {
        "no spec": {"metadata": meta},
        "spec is null": {"metadata": meta, "spec": None},
        "spec is text": {"metadata": meta, "spec": "x"},
        "spec is a list": {"metadata": meta, "spec": []},
        "other kind": {"metadata": meta, "kind": "Gadget", "apiVersion": widgets.api_version, "spec": {"color": "red"}},
        "other version": {
            "metadata": meta,
            "kind": "Widget",
            "apiVersion": "other.example.com/v1",
            "spec": {"color": "red"},
        },
    }.items():
        await api.outcome(label, api.client.create(obj, DRY, kind=widgets))


async def test_transition_rules_compare_with_the_old_object(api: Api, widgets: Resource) -> None:
    await api.client.create(widget("a", api.ns, fixed="x"), kind=widgets)
    await api.refusal("changed", api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"fixed": "y"}})))
    same = await api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"fixed": "x", "color": "blue"}}))
    assert same["spec"]["fixed"] == "x"
    gone = await api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"fixed": None}}))
    assert "fixed" not in gone["spec"]
    back = await api.client.patch(widgets, api.key("a"), MergePatch({"spec": {"fixed": "z"}}))
    assert back["spec"]["fixed"] == "z"


async def test_what_was_valid_before_the_schema_may_stay(api: Api, widgets: Resource) -> None:
    made = await api.client.create(widget("a", api.ns, label="abc"), kind=widgets)
    with pytest.raises(Invalid):
        await api.client.replace({**made, "spec": {**made["spec"], "label": "ABC"}}, kind=widgets)
    assert (await api.client.get(widgets, api.key("a"))) == made


async def test_field_validation_says_what_is_unknown(api: Api, widgets: Resource) -> None:
    odd = widget("a", api.ns, surprise=1, network={"odd": 2}, ports=[{"port": 1, "odd": 3}])
    odd["extra"] = True
    odd["metadata"]["strange"] = "x"
    modes: tuple[Literal["Strict", "Warn", "Ignore", ""], ...] = ("Strict", "Warn", "Ignore", "")
    for mode in modes:
        options = Write(dry_run=True, field_validation=mode)
        await api.outcome(f"widget {mode or 'unset'}", api.client.create(odd, options, kind=widgets))
    builtin = {"metadata": {"name": "a", "namespace": api.ns, "strange": "x"}, "extra": 1, "data": {"k": "v"}}
    for mode in modes:
        options = Write(dry_run=True, field_validation=mode)
        await api.outcome(f"configmap {mode or 'unset'}", api.client.create(builtin, options, kind=CONFIGMAPS))
    with pytest.raises(BadRequest):
        await api.client.create(odd, Write(field_validation="Strict"), kind=widgets)


async def test_field_validation_of_patches_and_replaces(api: Api, widgets: Resource) -> None:
    made = await api.client.create(widget("a", api.ns), kind=widgets)
    await api.client.create({"metadata": {"name": "a", "namespace": api.ns}}, kind=CONFIGMAPS)
    for mode in ("Strict", "Warn", "Ignore"):
        options = Write(dry_run=True, field_validation=mode)
        patch = MergePatch({"spec": {"surprise": 1}})
        await api.outcome(f"patch {mode}", api.client.patch(widgets, api.key("a"), patch, options))
        odd = {**made, "spec": {**made["spec"], "surprise": 1}}
        await api.outcome(f"replace {mode}", api.client.replace(odd, options, kind=widgets))
        applied = Write(field_manager="one", dry_run=True, field_validation=mode)
        await api.outcome(
            f"apply {mode}", api.client.apply(widget("a", api.ns, surprise=1), applied, kind=widgets, force=True)
        )
        builtin = MergePatch({"extra": 1})
        await api.outcome(f"configmap patch {mode}", api.client.patch(CONFIGMAPS, api.key("a"), builtin, options))


async def test_an_unknown_field_validation_is_refused(api: Api, widgets: Resource) -> None:
    options = Write(field_validation="Maybe")  # type: ignore[arg-type]
    await api.refusal("mode", api.client.create(widget("a", api.ns), options, kind=widgets))


async def test_duplicate_fields_are_found_on_the_wire(api: Api, widgets: Resource) -> None:
    http = api.http()
    twice = '{"metadata":{"name":"a"},"data":{"k":"1","k":"2"},"data":{"l":"3"}}'
    head = f'"apiVersion":"{widgets.api_version}","kind":"Widget","metadata":{{"name":"a"}}'
    custom = f'{{{head},"spec":{{"color":"red","color":"blue"}}}}'
    for kind, body in ((CONFIGMAPS, twice), (widgets, custom)):
        for mode in ("Strict", "Warn", "Ignore"):
            path = f"{kind.path(api.ns)}?dryRun=All&fieldManager=x&fieldValidation={mode}"
            http.warnings.texts.clear()
            answer = await http.raw("POST", path, body.encode())
            api.same(
                f"{kind.kind} {mode}",
                {"code": answer.status, "body": answer.json(), "warnings": list(http.warnings.texts)},
            )
