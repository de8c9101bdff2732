"""How v3 wraps entities, lists and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from homeport.runtime.clock import rfc3339
from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.entity import Entity
from homeport.sim.prism.error import Refusal, invalid
from homeport.sim.prism.fiql import FiqlError, FiqlFilter
from homeport.sim.prism.site import Handlers, Routes, Site

VERSION: Final = "3.1"
BASE: Final = "/api/nutanix/v3"
DEFAULT_LENGTH: Final = 20
LARGEST_LENGTH: Final = 500

Json = dict[str, Any]
E = TypeVar("E", bound=Entity)


def add_entity_routes(routes: Routes, table: str, handlers: Handlers) -> None:
    """The five requests that v3 has for every kind of entity that users may change."""
    one = f"{BASE}/{table}/{{uuid}}"
    routes.add("POST", f"{BASE}/{table}/list", handlers.listing, reads=True)
    routes.add("POST", f"{BASE}/{table}", handlers.create, table=table, param="")
    for method, respond in (("GET", handlers.get), ("PUT", handlers.update), ("DELETE", handlers.delete)):
        routes.add(method, one, respond, table=table, param="uuid")


def reference(kind: str, uuid: str, name: str = "") -> Json:
    return {"kind": kind, "uuid": uuid, **({"name": name} if name else {})}


def metadata(site: Site, kind: str, entity: Entity, **more: object) -> Json:
    """Of an entity as it is read."""
    owner = site.world.users.get(getattr(entity, "owner", "")) or site.world.user("admin")
    found: Json = {
        "kind": kind,
        "uuid": entity.ext_id,
        "spec_version": entity.version - 1,
        "entity_version": str(entity.version),
        "creation_time": rfc3339(entity.created) if entity.created else "2025-01-01T00:00:00Z",
        "last_update_time": rfc3339(entity.updated) if entity.updated else "2025-01-01T00:00:00Z",
        "categories": {},
        "categories_mapping": {},
        **more,
    }
    if owner is not None:
        found["owner_reference"] = reference("user", owner.ext_id, owner.name)
    return found


def categories(site: Site, ids: Sequence[str]) -> Json:
    """Both spellings: one value per key, and all values per key."""
    mapping: dict[str, list[str]] = {}
    for each in ids:
        category = site.world.categories.get(each)
        if category is not None:
            mapping.setdefault(category.key, []).append(category.value)
    return {"categories": {key: values[0] for key, values in mapping.items()}, "categories_mapping": mapping}


def entity_view(meta: Json, spec: Json, status: Json) -> Json:
    return {"api_version": VERSION, "metadata": meta, "spec": spec, "status": status}


def pending(kind: str, uuid: str, spec_version: int, spec: Json, task: str, *, state: str = "PENDING") -> Answer:
    """202: accepted, and what the task is called."""
    meta = {"kind": kind, "uuid": uuid, "spec_version": spec_version, "use_categories_mapping": False}
    status = {"state": state, "execution_context": {"task_uuid": task}}
    return Answer(202, entity_view(meta, spec, status))


def put(site: Site, call: Call, kind: str, entity: Entity, spec: Body, version: int | None = None) -> Answer:
    """Starts the task that stores `entity`. `version`: the one that it replaces; None: it is new."""
    operation = f"k{kind.capitalize()}{'Create' if version is None else 'Update'}"
    task = site.start(operation, f"{kind}-put", {kind: msgspec.to_builtins(entity)}, entity, call.user)
    return pending(kind, entity.ext_id, version or 0, spec.value, task.ext_id)


def deleting(task: str) -> Answer:
    status = {"state": "DELETE_PENDING", "execution_context": {"task_uuid": task}}
    return Answer(202, {"api_version": VERSION, "status": status, "spec": "", "metadata": {"kind": "task"}})


def listed(
    call: Call,
    kind: str,
    records: Sequence[E],
    render: Callable[[E], Json],
    values: Callable[[E], Json],
) -> Answer:
    """`values`: what the filter and the order may speak of."""
    body = Body(call.body if call.body is not None else {})
    given = body.text("kind", kind)
    if given != kind:
        raise invalid("kind", f"{given!r} is not {kind!r}")
    length, offset = body.integer("length", DEFAULT_LENGTH), body.integer("offset", 0)
    if not 1 <= length <= LARGEST_LENGTH:
        raise invalid("length", f"{length} is not from 1 to {LARGEST_LENGTH}")
    if offset < 0:
        raise invalid("offset", "must be 0 or more")
    found = _chosen(body, records, values)
    page = found[offset : offset + length]
    meta: Json = {"kind": kind, "offset": offset, "length": len(page), "total_matches": len(found)}
    for name in ("filter", "sort_attribute", "sort_order"):
        if body.has(name):
            meta[name] = body.text(name)
    return Answer(200, {"api_version": VERSION, "metadata": meta, "entities": [render(record) for record in page]})


def _chosen(body: Body, records: Sequence[E], values: Callable[[E], Json]) -> list[E]:
    try:
        parsed = FiqlFilter(body.text("filter"))
    except FiqlError as error:
        raise invalid("filter", str(error)) from error
    found = list(records) if not parsed.fields else [each for each in records if parsed.matches(values(each))]
    attribute = body.text("sort_attribute")
    descending = body.text("sort_order", "ASCENDING", choices=("ASCENDING", "DESCENDING")) == "DESCENDING"
    if attribute:
        found.sort(key=lambda each: str(values(each).get(attribute, "")), reverse=descending)
    return found


_REASONS: Final = {404: "ENTITY_NOT_FOUND", 409: "CONFLICT", 429: "RATE_LIMIT_EXCEEDED", 422: "INVALID_REQUEST"}


def refused(call: Call, refusal: Refusal) -> Answer:
    status = 422 if refusal.schema else refusal.status
    message: Json = {
        "message": "Authentication required." if status == 401 else refusal.message,
        "reason": refusal.reason or _REASONS.get(status, "INTERNAL_ERROR"),
    }
    if refusal.schema:
        message["details"] = {path: [text] for path, text in refusal.schema}
    if status == 401:
        message["details"] = "Basic realm='Intent Gateway Login Required'"
    parts = call.path.removeprefix(f"{BASE}/").split("/")
    kind = parts[0].removesuffix("s") if parts and parts[0] else ""
    body = {"api_version": VERSION, "code": status, "kind": kind, "message_list": [message], "state": "ERROR"}
    headers = {"WWW-Authenticate": 'Basic realm="Intent Gateway Login Required"'} if status == 401 else {}
    return Answer(status, body, headers)


def named(entity: Entity) -> Json:
    """What most entities can be filtered and sorted by."""
    return {"name": getattr(entity, "name", ""), "uuid": entity.ext_id}


def spec_of(call: Call) -> tuple[Body, Body, Body]:
    """Spec, metadata and resources of an intent."""
    body = Body(call.body)
    spec, meta = body.object("spec"), body.object("metadata")
    if spec is None or meta is None:
        raise invalid("spec" if spec is None else "metadata", "is a required property")
    return spec, meta, spec.object("resources") or Body({}, "spec.resources")


def check_version(current: int, meta: Body) -> None:
    """An intent that was made from an older one is refused."""
    given = meta.integer("spec_version", -1)
    if 0 <= given < current:
        message = f"Edit conflict: spec version {given} is not the latest, which is {current}."
        raise Refusal(409, message, "", "", "CONCURRENT_REQUESTS_NOT_ALLOWED")
