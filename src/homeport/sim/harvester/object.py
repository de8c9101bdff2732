"""Reading objects: plain functions on what the server stores. Nothing here changes what it is given."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.api.meta import Resource
from homeport.client.protocol import Key
from homeport.sim.harvester.kind import Json


def key_of(obj: Json) -> Key:
    return Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def parse_key(text: str) -> Key:
    """`namespace/name`, or `name` of what has no namespace."""
    namespace, _, name = text.rpartition("/")
    return Key(namespace, name)


def labels(obj: Json) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def notes(obj: Json) -> dict[str, str]:
    """Its annotations."""
    return obj["metadata"].get("annotations") or {}


def finalizers(obj: Json) -> list[str]:
    return obj["metadata"].get("finalizers") or []


def status_of(obj: Json) -> Json:
    return obj.get("status") or {}


def leaving(obj: Json) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def owner_reference(owner: Json, kind: Resource) -> Json:
    meta = owner["metadata"]
    return {
        **kind.type_meta,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controlled_by(obj: Json, kind: Resource) -> Json:
    """The reference to the controlling owner of this kind; empty if it has none."""
    for each in obj["metadata"].get("ownerReferences") or ():
        if each.get("controller") and each["kind"] == kind.kind and each["apiVersion"].startswith(f"{kind.group}/"):
            return each  # type: ignore[no-any-return]
    return {}


def condition(obj: Json, name: str) -> Json:
    """The condition of this type; empty if there is none."""
    return next((each for each in status_of(obj).get("conditions") or () if each["type"] == name), {})


def is_true(obj: Json, name: str) -> bool:
    return condition(obj, name).get("status") == "True"


def with_condition(conditions: Iterable[Json], now: str, name: str, status: str, **more: str) -> list[Json]:
    """The conditions with one added or changed; its transition time moves only with its status."""
    found = list(conditions)
    before = next((each for each in found if each["type"] == name), None)
    since = before["lastTransitionTime"] if before is not None and before["status"] == status else now
    made = {"type": name, "status": status, "lastTransitionTime": since}
    made.update({key: value for key, value in more.items() if value})
    if before is None:
        return [*found, made]
    return [made if each is before else each for each in found]


def without_condition(conditions: Iterable[Json], name: str) -> list[Json]:
    return [each for each in conditions if each["type"] != name]
