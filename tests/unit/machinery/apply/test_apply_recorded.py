"""Field ownership held to what kube-apiserver 1.37.1 answered, step by step (recorded.json).

Each step has the stored object before it and the answer. `apply` steps are computed whole; for the others the answer's
object is taken as given and its managedFields are computed. Times are compared as present or absent.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from homeport.apiserver.kinds.load import builtin_kinds
from homeport.machinery.apply import managed
from homeport.machinery.schema.node import Schema

_S = {"type": "string"}
_I = {"type": "integer"}


def _keyed(keys: list[str], **fields: Any) -> dict[str, Any]:
    items = {"type": "object", "properties": fields}
    return {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}


_SPEC = {
    "color": _S,
    "replicas": {"type": "integer", "default": 1},
    "tags": {"type": "array", "items": _S, "x-kubernetes-list-type": "set"},
    "nums": {"type": "array", "items": _I, "x-kubernetes-list-type": "set"},
    "ports": _keyed(
        ["port", "protocol"],
        port=_I,
        protocol={"type": "string", "default": "TCP"},
        name=_S,
        opts={"type": "object", "additionalProperties": _S},
    ),
    "env": _keyed(["name"], name=_S, value=_S),
    "plain": {"type": "array", "items": _S},
    "objs": {"type": "array", "items": {"type": "object", "properties": {"a": _S, "b": _S}}},
    "labels": {"type": "object", "additionalProperties": _S},
    "nested": {
        "type": "object",
        "properties": {"a": _S, "b": {"type": "object", "properties": {"c": _S, "d": _I}}},
    },
    "sel": {"type": "object", "properties": {"x": _S, "y": _S}, "x-kubernetes-map-type": "atomic"},
    "atomap": {"type": "object", "additionalProperties": _S, "x-kubernetes-map-type": "atomic"},
    "deep": {"type": "object", "additionalProperties": {"type": "object", "properties": {"q": _S, "r": _S}}},
    "ios": {"x-kubernetes-int-or-string": True},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": _S}},
    "nul": {"type": "string", "nullable": True},
    "flag": {"type": "boolean"},
    "num": {"type": "number"},
    "emb": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
}
_CUSTOM = Schema(
    {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": _SPEC},
            "status": {
                "type": "object",
                "properties": {"phase": _S, "conditions": _keyed(["type"], type=_S, status=_S, msg=_S)},
            },
            "data": {"type": "object", "additionalProperties": _S},
        },
    }
)


def _steps() -> list[Any]:
    steps = json.loads((Path(__file__).parent / "recorded.json").read_text())
    before: Any = None
    for step in steps:
        if step["live"] == "previous":
            step["live"] = before
        before = step.get("after", step["live"])
    return [pytest.param(step, id=step["case"]) for step in steps]


def _schemas() -> dict[str, tuple[Schema | None, bool]]:
    known: dict[str, tuple[Schema | None, bool]] = {"widgets": (_CUSTOM, True), "gears": (_CUSTOM, False)}
    for served in builtin_kinds():
        at = next(iter(served.versions.values()))
        known.setdefault(served.plural, (at.schema, at.status))
    return known


_KNOWN = _schemas()


def _comparable(obj: dict[str, Any]) -> list[str]:
    entries = copy.deepcopy(obj["metadata"].get("managedFields") or [])
    for entry in entries:
        entry["time"] = bool(entry.get("time"))
    return sorted(json.dumps(entry, sort_keys=True) for entry in entries)


def _options(step: dict[str, Any]) -> dict[str, Any]:
    schema, status = _KNOWN[step["kind"]]
    source = step.get("after") or step["live"] or step["body"]
    return {
        "schema": schema,
        "status": status,
        "api_version": source["apiVersion"],
        "manager": step["manager"],
        "time": "2026-01-02T00:00:00Z",
        "subresource": step.get("options", {}).get("sub", ""),
    }


def _apply(step: dict[str, Any]) -> dict[str, Any]:
    options = _options(step)
    if step["kind"] in ("widgets", "gears"):
        options["api_version"] = "t.example.com/v1"
    kind = {"widgets": "Widget", "gears": "Gear"}.get(step["kind"], "")
    force = bool(step.get("options", {}).get("force"))
    return managed.apply(step["live"], step["body"], force=force, kind=kind, **options)


@pytest.mark.parametrize("step", [param for param in _steps() if param.values[0]["op"] == "apply"])
def test_an_apply_leaves_the_managers_that_kubernetes_leaves(step: dict[str, Any]) -> None:
    before = copy.deepcopy((step["live"], step["body"]))
    if "message" in step:
        with pytest.raises((managed.ApplyConflict, managed.ApplyError)) as caught:
            _apply(step)
        assert caught.value.args[0] == step["message"]
        assert getattr(caught.value, "code", 409) == step["code"]
    else:
        result = _apply(step)
        assert _comparable(result) == _comparable(step["after"])
        _assert_merged(result, step["after"], wiped="status" if not step.get("options", {}).get("sub") else "spec")
    assert (step["live"], step["body"]) == before


def _assert_merged(ours: Any, real: Any, wiped: str) -> None:
    """Everything we merged is in the answer, lists in the same order; the answer may have defaults besides."""
    if isinstance(ours, dict):
        for name, value in ours.items():
            if name in ("metadata", wiped, "stringData") or value is None:
                continue
            assert name in real, name
            _assert_merged(value, real[name], wiped="")
    elif isinstance(ours, list):
        assert len(ours) == len(real)
        for left, right in zip(ours, real, strict=True):
            _assert_merged(left, right, wiped="")
    else:
        assert ours == real


@pytest.mark.parametrize("step", [param for param in _steps() if param.values[0]["op"] != "apply"])
def test_an_update_leaves_the_managers_that_kubernetes_leaves(step: dict[str, Any]) -> None:
    new = copy.deepcopy(step["after"])
    new["metadata"].pop("managedFields", None)
    given = step.get("given", step.get("options", {}).get("mf"))
    if given is not None:
        new["metadata"]["managedFields"] = given
    before = copy.deepcopy(step["live"])
    managed.update(step["live"], new, **_options(step))
    assert _comparable(new) == _comparable(step["after"])
    assert step["live"] == before
