"""The operations of every resource, as OpenAPI v3 and v2 describe them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from homeport.apiserver.discovery import subresources
from homeport.apiserver.openapi.schema import META, V2, V3, list_name, model_name
from homeport.apiserver.resource import Json, ServedKind, Version

_STATUS: Final = META + "Status"
_PATCH: Final = META + "Patch"
_DELETE_OPTIONS: Final = META + "DeleteOptions"
_PRODUCES: Final = ("application/json", "application/yaml")
_WATCHED: Final = ("application/json", "application/json;stream=watch", "application/yaml")
_PATCH_TYPES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC: Final = "application/strategic-merge-patch+json"

_QUERY: Final[dict[str, tuple[str, str]]] = {
    "allowWatchBookmarks": ("boolean", "Send BOOKMARK events that carry only the latest resourceVersion."),
    "continue": ("string", "The token of an earlier answer, to get the page after it."),
    "dryRun": ("string", "With All the request is checked and answered, and nothing is stored."),
    "fieldManager": (
        "string",
        "Name of the client that makes the change, recorded in managedFields. At most 128 printable characters; "
        "required for apply.",
    ),
    "fieldSelector": ("string", "Only objects whose fields match, such as metadata.name=web."),
    "fieldValidation": (
        "string",
        "What to do about unknown and duplicate fields: Ignore them, Warn in a header (the default), or be Strict and"
        " refuse the request.",
    ),
    "force": ("boolean", "Take fields that other managers own. Only for apply."),
    "gracePeriodSeconds": ("integer", "How long the object may take to end; 0 deletes it at once."),
    "labelSelector": ("string", "Only objects whose labels match, such as app=web,tier in (a,b)."),
    "limit": ("integer", "At most this many objects in one answer."),
    "orphanDependents": ("boolean", "Older form of propagationPolicy Orphan."),
    "pretty": ("string", "With true the answer is indented."),
    "propagationPolicy": ("string", "What becomes of dependents: Orphan, Background or Foreground."),
    "resourceVersion": ("string", "The revision to read or to watch from; unset reads the latest."),
    "resourceVersionMatch": ("string", "How resourceVersion counts: Exact or NotOlderThan."),
    "sendInitialEvents": ("boolean", "Start a watch with the objects that exist, then a bookmark."),
    "timeoutSeconds": ("integer", "End a list or watch after this time."),
    "watch": ("boolean", "Stream changes instead of answering with a list."),
}
_LIST_QUERY: Final = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_WRITE_QUERY: Final = ("dryRun", "fieldManager", "fieldValidation")
_DELETE_QUERY: Final = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    action: str
    verb: str  # first word of its id and description
    response: str
    request: str = ""
    query: tuple[str, ...] = ()
    codes: tuple[int, ...] = (200,)
    consumes: tuple[str, ...] = ("*/*",)
    produces: tuple[str, ...] = _PRODUCES
    body_required: bool = True


@dataclass(frozen=True, slots=True)
class Route:
    """A path and what it takes. `suffix` ends the ids of its operations."""

    path: str
    operations: tuple[Operation, ...]
    served: ServedKind
    version: str
    middle: str = ""  # Namespaced
    suffix: str = ""
    subresource: str = ""
    target: tuple[str, str, str] = ("", "", "")

    @property
    def parameters(self) -> list[str]:
        return [name for name in ("name", "namespace") if f"{{{name}}}" in self.path]


def routes(served: ServedKind, version: Version) -> Iterator[Route]:
    resource = version.resource
    root = f"/apis/{served.group}/{resource.version}" if served.group else f"/api/{resource.version}"
    gvk = (served.group, resource.version, served.kind)
    models = (model_name(served, version), list_name(served, version))
    listing = _list_operation(models[1])
    middle = "Namespaced" if served.namespaced else ""
    where = f"{root}/namespaces/{{namespace}}/{served.plural}" if served.namespaced else f"{root}/{served.plural}"
    if served.namespaced and "list" in served.verbs:
        all_of_them = f"{root}/{served.plural}"
        yield Route(all_of_them, (listing,), served, resource.version, suffix="ForAllNamespaces", target=gvk)
    collection = [op for verb, op in _collection(models, served, listing) if verb in served.verbs]
    if collection:
        yield Route(where, tuple(collection), served, resource.version, middle, target=gvk)
    item = [op for verb, op in _item(models[0], served) if verb in served.verbs]
    if item:
        yield Route(where + "/{name}", tuple(item), served, resource.version, middle, target=gvk)
    for name, target, verbs in subresources(served, version):
        found = _subresource(served, version, target, verbs)
        if found and name != "log":  # a stream of text
            path = f"{where}/{{name}}/{name}"
            yield Route(path, found, served, resource.version, middle, name.capitalize(), name, target)


def _list_operation(model: str) -> Operation:
    return Operation("get", "list", "list", model, query=_LIST_QUERY, produces=_WATCHED)


def _collection(models: tuple[str, str], served: ServedKind, listing: Operation) -> Iterator[tuple[str, Operation]]:
    yield "list", listing
    yield "create", Operation("post", "post", "create", models[0], models[0], _WRITE_QUERY, (200, 201, 202))
    query = tuple(sorted({*_DELETE_QUERY, *_LIST_QUERY} - {"allowWatchBookmarks", "watch"}))
    yield (
        "deletecollection",
        Operation(
            "delete", "deletecollection", "deletecollection", _STATUS, _DELETE_OPTIONS, query, body_required=False
        ),
    )


def _item(model: str, served: ServedKind) -> Iterator[tuple[str, Operation]]:
    yield "get", Operation("get", "get", "read", model, query=("resourceVersion",) if served.custom else ())
    yield "update", Operation("put", "put", "replace", model, model, _WRITE_QUERY, (200, 201))
    deleted = Operation(
        "delete", "delete", "delete", _STATUS, _DELETE_OPTIONS, _DELETE_QUERY, (200, 202), body_required=False
    )
    yield "delete", deleted
    yield "patch", _patch(model, served)


def _patch(model: str, served: ServedKind) -> Operation:
    kinds = _PATCH_TYPES if served.custom else (*_PATCH_TYPES, _STRATEGIC)
    codes = (200,) if served.custom else (200, 201)
    return Operation("patch", "patch", "patch", model, _PATCH, (*_WRITE_QUERY, "force"), codes, kinds)


def _subresource(
    served: ServedKind, version: Version, target: tuple[str, str, str], verbs: tuple[str, ...]
) -> tuple[Operation, ...]:
    own = target == (served.group, version.resource.version, served.kind)
    model = model_name(served, version) if own else _builtin_model(target)
    if not model:
        return ()  # streams (exec, proxy, ...) carry no object
    known = dict(_item(model, served)) | {
        "create": Operation("post", "post", "create", model, model, _WRITE_QUERY, (200, 201, 202))
    }
    return tuple(known[verb] for verb in ("get", "update", "create", "patch") if verb in verbs)


def _builtin_model(target: tuple[str, str, str]) -> str:
    group, version, kind = target
    if kind.endswith("Options"):
        return ""
    return f"io.k8s.api.{group.removesuffix('.k8s.io') or 'core'}.{version}.{kind}"


def friendly_group(group: str) -> str:
    """`core`, `apps`, `rbacAuthorization`, `exampleCom`: as ids and tags name a group."""
    first, *rest = group.removesuffix(".k8s.io").split(".") if group else ["core"]
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _identity(route: Route, operation: Operation) -> str:
    group = friendly_group(route.served.group)
    version = route.version[:1].upper() + route.version[1:]
    verb, collection = ("delete", "Collection") if operation.verb == "deletecollection" else (operation.verb, "")
    middle = f"{collection}{route.middle}{route.served.kind}{route.suffix}"
    return f"{verb}{group[:1].upper()}{group[1:]}{version}{middle}"


def _description(route: Route, operation: Operation) -> str:
    of = f"{route.subresource} of " if route.subresource else ""
    kind = route.served.kind
    article = "an" if kind[:1] in "AEIOU" else "a"
    return {
        "list": f"Lists {kind} objects, or streams their changes.",
        "create": f"Creates {of}{article} {kind}.",
        "deletecollection": f"Deletes every {kind} that the selectors match.",
        "read": f"Reads {of}one {kind}.",
        "replace": f"Replaces {of}one {kind}.",
        "delete": f"Deletes {of}one {kind}.",
        "patch": f"Changes some fields of {of}one {kind}.",
    }[operation.verb]


def _marks(route: Route, operation: Operation) -> Json:
    group, version, kind = route.target
    return {
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": {"group": group, "kind": kind, "version": version},
    }


_TEXT: Final[Json] = {"type": "string", "uniqueItems": True}
_CODES: Final = {200: "OK", 201: "Created", 202: "Accepted"}


def item_v3(route: Route) -> Json:
    item: Json = {operation.method: _operation_v3(route, operation) for operation in route.operations}
    item["parameters"] = [*_path_parameters(route, {"schema": _TEXT}), _query_v3("pretty")]
    return item


def _path_parameters(route: Route, form: Json) -> Iterator[Json]:
    """`form`: the type of a parameter, as the version of OpenAPI writes it."""
    for name in route.parameters:
        text = f"name of the {route.served.kind}" if name == "name" else "the namespace of the object"
        yield {"name": name, "in": "path", "description": text, "required": True, **form}


def _query_v3(name: str) -> Json:
    kind, text = _QUERY[name]
    return {"name": name, "in": "query", "description": text, "schema": {"type": kind, "uniqueItems": True}}


def _content(model: str, kinds: tuple[str, ...]) -> Json:
    return {kind: {"schema": {"$ref": V3 + model}} for kind in kinds}


def _operation_v3(route: Route, operation: Operation) -> Json:
    found: Json = {
        "tags": [f"{friendly_group(route.served.group)}_{route.version}"],
        "description": _description(route, operation),
        "operationId": _identity(route, operation),
    }
    if operation.query:
        found["parameters"] = [_query_v3(name) for name in operation.query]
    if operation.request:
        found["requestBody"] = {"content": _content(operation.request, operation.consumes)}
        if operation.body_required:
            found["requestBody"]["required"] = True
    found["responses"] = {
        **{
            str(code): {"description": _CODES[code], "content": _content(operation.response, operation.produces)}
            for code in operation.codes
        },
        "401": {"description": "Unauthorized"},
    }
    return {**found, **_marks(route, operation)}


def item_v2(route: Route) -> Json:
    item: Json = {operation.method: _operation_v2(route, operation) for operation in route.operations}
    item["parameters"] = [*_path_parameters(route, _TEXT), _query_v2("pretty")]
    return item


def _query_v2(name: str) -> Json:
    kind, text = _QUERY[name]
    return {"name": name, "in": "query", "description": text, "type": kind, "uniqueItems": True}


def _operation_v2(route: Route, operation: Operation) -> Json:
    parameters: list[Any] = []
    if operation.request:
        body: Json = {"name": "body", "in": "body", "schema": {"$ref": V2 + operation.request}}
        parameters.append({**body, "required": True} if operation.body_required else body)
    parameters += [_query_v2(name) for name in operation.query]
    found: Json = {
        "tags": [f"{friendly_group(route.served.group)}_{route.version}"],
        "description": _description(route, operation),
        "operationId": _identity(route, operation),
        "consumes": list(operation.consumes),
        "produces": list(operation.produces),
        "schemes": ["https"],
        "parameters": parameters,
        "responses": {
            **{
                str(code): {"description": _CODES[code], "schema": {"$ref": V2 + operation.response}}
                for code in operation.codes
            },
            "401": {"description": "Unauthorized"},
        },
    }
    return {**found, **_marks(route, operation)}


def models_of(route: Route) -> Iterator[str]:
    for operation in route.operations:
        yield operation.response
        if operation.request:
            yield operation.request
