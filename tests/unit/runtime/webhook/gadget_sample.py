"""A kind in two versions, with hooks of every sort."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.meta import Resource
from homeport.client.errors import Cause
from homeport.runtime.webhook.hook import Hooks, Json

GADGET = Resource("hook.homeport.test", "v1", "Gadget", "gadgets")
OLD_GADGET = Resource("hook.homeport.test", "v1alpha1", "Gadget", "gadgets")


def _version(name: str, field: str, *, storage: bool) -> Json:
    spec = {"type": "object", "properties": {field: {"type": "integer"}, "colour": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}


DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.hook.homeport.test"},
    "spec": {
        "group": "hook.homeport.test",
        "scope": "Namespaced",
        "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "listKind": "GadgetList"},
        "versions": [_version("v1", "replicas", storage=True), _version("v1alpha1", "count", storage=False)],
    },
}


def gadget(name: str, version: str = "v1", **spec: Any) -> Json:
    return {
        "apiVersion": f"hook.homeport.test/{version}",
        "kind": "Gadget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def fill_in(obj: Json, old: Json | None) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", (old or {}).get("spec", {}).get("replicas", 3))
    obj["metadata"].setdefault("labels", {})["colour"] = spec.setdefault("colour", "blue")


def judge(obj: Json, old: Json | None) -> Iterator[Cause]:
    replicas = obj["spec"]["replicas"]
    if replicas > 5:
        yield Cause("FieldValueInvalid", f"Invalid value: {replicas}: must be at most 5", "spec.replicas")
    if old is not None and old["spec"]["colour"] != obj["spec"]["colour"]:
        yield Cause("FieldValueForbidden", "Forbidden: can't be changed", "spec.colour")


def judge_deletion(obj: Json) -> list[Cause]:
    if obj["spec"]["colour"] == "gold":
        return [Cause("FieldValueForbidden", "Forbidden: golden gadgets are kept", "spec.colour")]
    return []


async def advise(obj: Json, old: Json | None) -> list[str]:
    return ["spec.replicas: zero of them do nothing"] if obj["spec"]["replicas"] == 0 else []


def convert(obj: Json, version: str) -> Json:
    names = ("count", "replicas") if version == "v1" else ("replicas", "count")
    spec = obj.get("spec", {})
    if spec.get(names[0]) == 99:
        raise ValueError("ninety-nine can't be converted")
    if names[0] in spec:
        spec[names[1]] = spec.pop(names[0])
    return obj


def make_hooks() -> Hooks:
    hooks = Hooks()
    hooks.add(GADGET, default=fill_in, validate=judge, validate_delete=judge_deletion, warn=advise)
    hooks.convert("hook.homeport.test", "Gadget", convert)
    return hooks
