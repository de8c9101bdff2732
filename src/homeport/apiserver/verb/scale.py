"""The scale subresource: autoscaling/v1 Scale as a window on an object's replica count."""

from __future__ import annotations

from typing import Any

from homeport.apiserver.resource import Json, Scale, ServedKind
from homeport.client.errors import BadRequest, Cause, invalid
from homeport.machinery.selector import from_label_selector

API_VERSION = "autoscaling/v1"
KIND = "Scale"


def read_path(obj: Json, path: str) -> Any:
    value: Any = obj
    for part in path.strip(".").split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def write_path(obj: Json, path: str, value: object) -> None:
    *parents, last = path.strip(".").split(".")
    for part in parents:
        obj = obj.setdefault(part, {})
    obj[last] = value


def scale_of(obj: Json, scale: Scale, served: ServedKind) -> Json:
    meta = obj["metadata"]
    shown = {k: meta[k] for k in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if k in meta}
    status: Json = {"replicas": _count(read_path(obj, scale.status_replicas), served, meta, scale.status_replicas)}
    selector = read_path(obj, scale.selector) if scale.selector else None
    if isinstance(selector, dict):  # built-in kinds keep a LabelSelector or plain labels, custom ones a string
        plain = all(isinstance(value, str) for value in selector.values())
        selector = str(from_label_selector({"matchLabels": selector} if plain else selector))
    if selector:
        status["selector"] = selector
    replicas = _count(read_path(obj, scale.spec_replicas), served, meta, scale.spec_replicas)
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "metadata": shown,
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def write_replicas(obj: Json, path: str, replicas: int, *, checked: bool = False) -> None:
    """Writes the count into the object. `checked`: here, as no schema of the kind's own says what it takes."""
    if replicas < 0 and checked:
        cause = Cause.invalid("spec.replicas", f"{replicas}: must be greater than or equal to 0")
        raise invalid("autoscaling", KIND, obj["metadata"].get("name", ""), [cause])
    write_path(obj, path, replicas)


def _count(value: Any, served: ServedKind, meta: Json, path: str) -> int:
    if value is None:
        return 0
    if not isinstance(value, int):
        raise BadRequest(
            f'{served.kind} "{meta.get("name")}": {path} must be an integer to be scaled, it is {value!r:.40}'
        )
    return value
