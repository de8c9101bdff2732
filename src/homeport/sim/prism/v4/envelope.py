"""How v4 wraps what it answers: `$objectType`, `$reserved`, metadata, pages, ETags, errors."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from homeport.runtime.clock import rfc3339_micro
from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.entity import Entity
from homeport.sim.prism.error import Refusal, invalid, precondition_invalid, precondition_missing
from homeport.sim.prism.odata import Filter, ODataError, ordered, parse_order
from homeport.sim.prism.site import Handlers, Routes
from homeport.sim.prism.task import PREFIX

NEWEST_MINOR = 4
DEFAULT_LIMIT = 50
LARGEST_LIMIT = 100

Json = dict[str, Any]
R = TypeVar("R")


def names(text: str) -> frozenset[str]:
    """Fields of an entity, written as one text."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Dialect:
    """v4.`minor`: the newer ones know more fields, and say so in `$fv`."""

    minor: int

    def typed(self, object_type: str, fields: Json) -> Json:
        """An object with its type; fields that are None are left out."""
        version = "v1.r0" if object_type.startswith("common.") else f"v4.r{self.minor}"
        known = {name: value for name, value in fields.items() if value is not None}
        return {**known, "$reserved": {"$fv": version}, "$objectType": object_type}

    def ipv4(self, address: str, prefix: int = 32) -> Json | None:
        if not address:
            return None
        return self.typed("common.v1.config.IPv4Address", {"value": address, "prefixLength": prefix})

    def ipv6(self, address: str, prefix: int = 128) -> Json:
        return self.typed("common.v1.config.IPv6Address", {"value": address, "prefixLength": prefix})

    def ip(self, address: str) -> Json | None:
        return self.typed("common.v1.config.IPAddress", {"ipv4": self.ipv4(address)}) if address else None


def add_entity_routes(routes: Routes, path: str, kind: str, table: str, handlers: Handlers) -> str:
    """The five requests that v4 has for most kinds of entities. `kind` has its namespace before it, which the types of
    responses share. Gives the path of one entity."""
    namespace, _, name = kind.rpartition(".")
    one = f"{path}/{{extId}}"
    routes.add("GET", path, handlers.listing, f"{namespace}.List{name}sApiResponse")
    routes.add("POST", path, handlers.create, f"{namespace}.Create{name}ApiResponse", table=table, param="")
    routes.add("GET", one, handlers.get, f"{namespace}.Get{name}ApiResponse", table=table)
    routes.add("PUT", one, handlers.update, f"{namespace}.Update{name}ApiResponse", table=table)
    routes.add("DELETE", one, handlers.delete, f"{namespace}.Delete{name}ApiResponse", table=table)
    return one


def one_of(field: str, value: Json | None) -> Json:
    """A field that may hold one of several types: its discriminator says which."""
    if value is None:
        return {}
    return {f"${field}ItemDiscriminator": value["$objectType"], field: value}


def time_text(moment: float) -> str | None:
    return rfc3339_micro(moment) if moment else None


def etag(entity: Entity) -> str:
    return f"YXBwbGljYXRpb24vanNvbg==:{entity.version}"


def check_match(call: Call, entity: Entity, stale: Callable[[], Refusal] = precondition_invalid) -> None:
    """Refuses a request without If-Match, with an ETag of another entity, or with an outdated one."""
    given = call.headers.get("if-match", "").strip().removeprefix("W/").strip('"')
    if not given:
        raise precondition_missing()
    if not given.startswith("YXBwbGljYXRpb24vanNvbg==:"):
        raise precondition_invalid()
    if given != etag(entity):
        raise stale()


def dialect_of(call: Call) -> Dialect:
    text = call.params.get("v", "")
    major, dot, minor = text.removeprefix("v").partition(".")
    if major != "4" or not dot or not minor.isdigit() or int(minor) > NEWEST_MINOR:
        raise Refusal(404, f"The version {text} of the API is not served.", "", "API_NOT_FOUND")
    return Dialect(int(minor))


def _flags(d: Dialect, **flags: bool) -> list[Json]:
    return [d.typed("common.v1.config.Flag", {"name": name, "value": value}) for name, value in flags.items()]


def _metadata(d: Dialect, links: Iterable[tuple[str, str]], total: int | None, **flags: bool) -> Json:
    shown = [d.typed("common.v1.response.ApiLink", {"href": href, "rel": rel}) for rel, href in links]
    fields: Json = {"flags": _flags(d, **flags), "links": shown or None, "totalAvailableResults": total}
    return d.typed("common.v1.response.ApiResponseMetadata", fields)


def single(call: Call, response_type: str, data: Json, *, version: Entity | None = None, status: int = 200) -> Answer:
    d = dialect_of(call)
    body = d.typed(
        response_type,
        {
            "$dataItemDiscriminator": data["$objectType"],
            "data": data,
            "metadata": _metadata(
                d, [("self", _url(call))], None, hasError=False, isPaginated=False, isTruncated=False
            ),
        },
    )
    return Answer(status, body, {"ETag": etag(version)} if version is not None else {})


def accepted(call: Call, response_type: str, task: str) -> Answer:
    """202 with a reference to the task."""
    d = dialect_of(call)
    data = d.typed("prism.v4.config.TaskReference", {"extId": f"{PREFIX}{task}"})
    answer = single(call, response_type, data, status=202)
    href = f"https://{call.host}/api/prism/v4.{d.minor}/config/tasks/{quote(PREFIX + task, safe='')}"
    answer.body["metadata"]["links"].append(d.typed("common.v1.response.ApiLink", {"href": href, "rel": "taskExtId"}))
    return answer


@dataclass(frozen=True, slots=True)
class Listing:
    """What a list is made of. `fields`: what may be filtered by, ordered by and selected."""

    response_type: str
    item_type: str
    fields: frozenset[str]
    projected: bool = False  # lists with $apply or $expand: an empty one has no `data` at all


def listing(kind: str, fields: str, *, projected: bool = False) -> Listing:
    """A list of a kind, whose namespace stands before it and before the type of the response."""
    namespace, _, name = kind.rpartition(".")
    return Listing(f"{namespace}.List{name}sApiResponse", kind, names(fields), projected)


def listed(
    call: Call,
    listing: Listing,
    records: Sequence[R],
    render: Callable[[R], Json],
    quick: Mapping[str, Callable[[R], Any]] | None = None,
    members: Mapping[str, Callable[[R], Container[Any]]] | None = None,
) -> Answer:
    """A page of the records that the query asks for.

    `quick` and `members`: fields, and fields of what lists in them hold, by which records are found without rendering.
    """
    d = dialect_of(call)
    page, limit = _number(call, "$page", 0, 0, None), _number(call, "$limit", DEFAULT_LIMIT, 1, LARGEST_LIMIT)
    parsed = _parsed_filter(call, listing)
    if parsed is not None and quick:
        for name, choices in parsed.among.items():
            if name in quick:
                records = [record for record in records if quick[name](record) in choices]
    if parsed is not None and members:
        for name, wanted in parsed.contains.items():
            if name in members:
                records = [record for record in records if wanted in members[name](record)]
    if parsed is None and not call.query.get("$orderby"):
        total = len(records)
        found = [render(record) for record in records[page * limit : (page + 1) * limit]]
    else:
        chosen = _ordered(call, listing, _matching(parsed, map(render, records)))
        total = len(chosen)
        found = chosen[page * limit : (page + 1) * limit]
    shown = [_selected(call, listing, item) for item in found]
    fields: Json = {"$dataItemDiscriminator": f"List<{listing.item_type}>", "data": shown}
    if not shown and listing.projected:
        fields = {}
    fields["metadata"] = _metadata(
        d, _page_links(call, page, limit, total), total, hasError=False, isPaginated=True, isTruncated=False
    )
    return Answer(200, d.typed(listing.response_type, fields))


def _page_links(call: Call, page: int, limit: int, total: int) -> list[tuple[str, str]]:
    last = max(0, (total - 1) // limit)
    links = [("first", _url(call, page=0)), ("self", _url(call)), ("last", _url(call, page=last))]
    if page > 0:
        links.append(("prev", _url(call, page=page - 1)))
    if page < last:
        links.append(("next", _url(call, page=page + 1)))
    return links


def equal_to(call: Call, field: str) -> str | None:
    """What the filter of a call demands of a field, for views with an index of it."""
    try:
        value = Filter(call.query["$filter"]).equals.get(field) if "$filter" in call.query else None
    except ODataError:
        return None  # told when the list is made
    return value if isinstance(value, str) else None


def _parsed_filter(call: Call, listing: Listing) -> Filter | None:
    text = call.query.get("$filter")
    if text is None:
        return None
    try:
        parsed = Filter(text)
    except ODataError as error:
        raise invalid("$filter", str(error)) from error
    _check_fields("$filter", parsed.fields, listing)
    return parsed


def _matching(parsed: Filter | None, items: Iterable[Json]) -> list[Json]:
    return [item for item in items if parsed is None or parsed.matches(item)]


def _ordered(call: Call, listing: Listing, found: list[Json]) -> list[Json]:
    if not (text := call.query.get("$orderby")):
        return found
    try:
        order = parse_order(text)
    except ODataError as error:
        raise invalid("$orderby", str(error)) from error
    _check_fields("$orderby", frozenset(steps[0] for steps, _ in order), listing)
    return ordered(found, order)


def _selected(call: Call, listing: Listing, item: Json) -> Json:
    text = call.query.get("$select", "")
    if not text or text.strip() == "*":
        return item
    wanted = {part.strip().partition("/")[0] for part in text.split(",") if part.strip()}
    _check_fields("$select", frozenset(wanted), listing)
    wanted |= {"extId", "$objectType", "$reserved"}
    return {name: value for name, value in item.items() if name in wanted}


def _check_fields(option: str, used: frozenset[str], listing: Listing) -> None:
    for name in sorted(used - listing.fields):
        raise invalid(option, f"{listing.item_type.rpartition('.')[2]} has no field {name}")


def _number(call: Call, option: str, default: int, least: int, most: int | None) -> int:
    text = call.query.get(option, "")
    if not text:
        return default
    if not text.removeprefix("-").isdigit():
        raise invalid(option, f"{text!r} is not a whole number")
    number = int(text)
    if number < least or (most is not None and number > most):
        limit = f"from {least} to {most}" if most is not None else f"{least} or more"
        raise invalid(option, f"{number} is out of range: it must be {limit}")
    return number


def _url(call: Call, page: int | None = None) -> str:
    query = dict(call.query)
    if page is not None:
        query["$page"] = str(page)
    text = "&".join(f"{quote(name, safe='$')}={quote(value, safe='')}" for name, value in query.items())
    return f"https://{call.host}{call.path}" + (f"?{text}" if text else "")


def refused(call: Call, refusal: Refusal, response_type: str, now: float) -> Answer:
    namespace = _namespace(call)
    try:
        d = dialect_of(call)
    except Refusal:
        d = Dialect(NEWEST_MINOR)
    if refusal.schema:
        error: Any = _schema_error(d, namespace, call, refusal, now)
        kind = error["$objectType"]
    else:
        error = [_app_message(d, namespace, refusal)]
        kind = f"List<{namespace}.v4.error.AppMessage>"
    data = d.typed(f"{namespace}.v4.error.ErrorResponse", {"$errorItemDiscriminator": kind, "error": error})
    metadata = _metadata(d, [("self", _url(call))], None, hasError=True, isPaginated=False, isTruncated=False)
    fields = {"$dataItemDiscriminator": data["$objectType"], "data": data, "metadata": metadata}
    return Answer(refusal.status, d.typed(response_type or f"{namespace}.v4.error.ApiResponse", fields))


def _namespace(call: Call) -> str:
    parts = call.path.strip("/").split("/")
    return parts[1] if len(parts) > 1 else "prism"


def app_message(d: Dialect, namespace: str, code: str, message: str, group: str, arguments: Json | None = None) -> Json:
    return d.typed(
        f"{namespace}.v4.error.AppMessage",
        {
            "message": message,
            "severity": "ERROR",
            "code": code or None,
            "locale": "en_US",
            "errorGroup": group or None,
            "argumentsMap": arguments or None,
        },
    )


def _app_message(d: Dialect, namespace: str, refusal: Refusal) -> Json:
    return app_message(d, namespace, refusal.code, refusal.message, refusal.group, refusal.arguments)


def _schema_error(d: Dialect, namespace: str, call: Call, refusal: Refusal, now: float) -> Json:
    messages = [
        d.typed(
            f"{namespace}.v4.error.SchemaValidationErrorMessage",
            {"location": "query" if path.startswith("$") else "body", "message": text, "attributePath": path},
        )
        for path, text in refusal.schema
    ]
    return d.typed(
        f"{namespace}.v4.error.SchemaValidationError",
        {
            "timestamp": time_text(now),
            "statusCode": refusal.status,
            "error": "Bad Request",
            "path": call.path,
            "validationErrorMessages": messages,
        },
    )
