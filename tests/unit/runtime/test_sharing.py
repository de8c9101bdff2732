"""Objects in caches share equal strings, and are otherwise what the server sent."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
import pytest

from homeport.api.meta import Unstructured, wire
from homeport.client.protocol import Key, MergePatch
from homeport.runtime import sharing
from homeport.runtime.informer import Informer
from homeport.runtime.sharing import share_strings
from homeport.runtime.testing import establish, plane, virtual
from present import present
from unit.runtime.runtime_sample import WIDGET, WIDGETS, Widget, widget

_OWNER = {"apiVersion": "example.com/v1", "kind": "Owner", "name": "the-owner", "uid": "0b7c-4711"}


def _body(name: str) -> bytes:
    """Bytes, so that each decoded object has strings of its own."""
    condition = {"type": "Ready", "status": "False", "reason": "WaitingForOwner", "message": f"no {name} yet"}
    meta = {
        "name": name,
        "namespace": "some-namespace",
        "uid": f"uid-of-{name}",
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "labels": {"cluster": "the-cluster"},
        "finalizers": ["example.com/the-finalizer"],
        "ownerReferences": [_OWNER],
    }
    return json.dumps({**widget(name), "metadata": meta, "status": {"conditions": [condition]}}).encode()


def _typed(name: str) -> Any:
    return msgspec.json.decode(_body(name), type=Widget)


def _unstructured(name: str) -> Any:
    return Unstructured(json.loads(_body(name)))


def _strings(obj: Any) -> list[str]:
    """What two objects of one owner have in common."""
    if isinstance(obj, Widget):
        meta, found = obj.metadata, obj.metadata.owner_references[0]
        owner = [found.api_version, found.kind, found.name, found.uid]
        own = [obj.api_version, obj.kind, meta.namespace, str(meta.creation_timestamp), meta.labels["cluster"]]
        condition = obj.status.conditions[0]
    else:
        plain = obj["metadata"]
        owner = [plain["ownerReferences"][0][each] for each in _OWNER]
        own = [obj["apiVersion"], obj["kind"], plain["namespace"], plain["creationTimestamp"]]
        own.append(plain["labels"]["cluster"])
        condition = obj["status"]["conditions"][0]
    return [*own, *owner, *(condition[each] for each in ("type", "status", "reason"))]


@pytest.mark.parametrize("made", [_typed, _unstructured])
def test_strings_of_metadata_and_conditions_are_shared_between_objects(made: Any) -> None:
    a, b = made("a"), made("b")
    share_strings(a)
    share_strings(b)
    assert _strings(a) == _strings(made("a"))
    assert all(one is other for one, other in zip(_strings(a), _strings(b), strict=True))


@pytest.mark.parametrize("made", [_typed, _unstructured])
def test_an_object_has_the_same_content_as_before(made: Any) -> None:
    found = made("a")
    share_strings(found)
    assert wire(found) == wire(made("a"))


@pytest.mark.parametrize(
    "status", [None, "down", {}, {"conditions": None}, {"conditions": "none"}, {"conditions": [None, "x", {"type": 1}]}]
)
def test_objects_of_unknown_shape_are_left_as_they_are(status: Any) -> None:
    body = {"metadata": {"name": "a", "labels": None, "ownerReferences": None}, "status": status}
    found = Unstructured(json.loads(json.dumps(body)))
    share_strings(found)
    assert found == body


@pytest.mark.parametrize("made", [_typed, _unstructured])
def test_strings_that_change_all_the_time_are_not_kept_for_ever(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "MOST", 50)
    for number in range(100):
        found = made(f"number-{number}")
        share_strings(found)
        assert found == made(f"number-{number}")
        assert len(sharing._held) <= 50
    message = (found["status"] if isinstance(found, Unstructured) else wire(found)["status"])["conditions"][0][
        "message"
    ]
    assert sys.intern(message.encode().decode()) is not message  # some versions of Python never free those


@virtual
async def test_a_cache_holds_one_copy_for_all_of_its_objects_and_for_other_caches() -> None:
    async with plane() as p:
        await establish(p.client, WIDGETS)
        for name in ("a", "b"):
            await p.client.create(widget(name), kind=WIDGET)
        typed, plain = p.manager.informers.get(Widget), p.manager.informers.get(WIDGET)
        await p.start()
        await _synced(typed, plain)
        condition = {"type": "Ready", "status": "True", "reason": "AllIsWell", "message": ""}
        for name in ("a", "b"):
            patch = MergePatch({"status": {"conditions": [condition]}})
            await p.client.patch(WIDGET, Key("default", name), patch, subresource="status")
        await p.settle()
        found = [present(typed.cache.get(Key("default", name))).status.conditions[0] for name in ("a", "b")]
        found += [present(plain.cache.get(Key("default", name)))["status"]["conditions"][0] for name in ("a", "b")]
        assert found == [condition] * 4
        assert len({id(each["reason"]) for each in found}) == 1


async def _synced(*informers: Informer[Any]) -> None:
    for each in informers:
        await each.synced.wait()
