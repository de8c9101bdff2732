"""Garbage of every kind, as a hostile user sends it: no webhook fails on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from homeport.api.meta import Resource
from homeport.app.kubernetes.webhook import hooks_of
from homeport.app.platform import chosen
from homeport.runtime.webhook.review import answer_default
from homeport.runtime.webhook.shape import Shapes

PLATFORM = chosen()
HOOKS = hooks_of(PLATFORM.components)
SHAPES = Shapes(PLATFORM.definitions())
WRONG: tuple[Any, ...] = ("text", [], 7, True, {"a": {"b": None}})


def kinds() -> list[Resource]:
    return [each.resource for each in HOOKS if each.defaults]


def garbage(kind: Resource) -> Iterator[dict[str, Any]]:
    """Of the kind by name alone."""
    plain = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "garbage", "namespace": "default"}}
    yield from ({**plain, "spec": each} for each in WRONG)
    yield plain
    for definition in PLATFORM.definitions():
        spec = definition["spec"]
        if (spec["group"], spec["names"]["plural"]) == (kind.group, kind.plural):
            (version,) = [each for each in spec["versions"] if each["name"] == kind.version]
            fields = version["schema"]["openAPIV3Schema"]["properties"].get("spec", {}).get("properties", {})
            yield from ({**plain, "spec": {name: each}} for name in fields for each in WRONG)


@pytest.mark.parametrize("kind", kinds(), ids=str)
async def test_defaults_of_garbage_are_left_to_the_schema(kind: Resource) -> None:
    refused = 0
    for obj in garbage(kind):
        if not SHAPES.refuses(kind, orjson.loads(orjson.dumps(obj))):
            continue
        refused += 1
        resource = {"group": kind.group, "version": kind.version, "resource": kind.plural}
        request = {"uid": "u", "resource": resource, "operation": "CREATE", "object": obj, "oldObject": None}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        answer = await answer_default(HOOKS, review, SHAPES)
        assert answer["response"]["uid"] == "u"
    assert refused
