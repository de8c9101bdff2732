"""The verbs on resources: from an authorised request to the registry and back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import orjson
from aiohttp.web import StreamResponse

from homeport.apiserver.http.connect import Connectors
from homeport.apiserver.http.document import parse_object, parse_options, parse_patch
from homeport.apiserver.http.exchange import ACCEPT, CONTENT_TYPE, USER_AGENT, Exchange
from homeport.apiserver.http.negotiate import APPLY_PATCH, accepted, patch_form
from homeport.apiserver.http.query import check_patch, delete_options, list_options, write_options
from homeport.apiserver.http.reply import Reply
from homeport.apiserver.http.respond import list_bytes, list_meta, page_not_found, reply_object
from homeport.apiserver.http.route import RequestInfo
from homeport.apiserver.http.watch import Watches
from homeport.apiserver.metrics import Labels
from homeport.apiserver.registry import Connector, Registry
from homeport.apiserver.request import Context
from homeport.apiserver.resource import ServedKind, Version
from homeport.apiserver.table import TableForm, partial_metadata, partial_metadata_list
from homeport.apiserver.trail import Trail
from homeport.client.errors import BadRequest, MethodNotAllowed, NotAcceptable, NotFound

_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
_METRIC_VERBS = {"create": "POST", "update": "PUT"}
_NAMED = frozenset(("get", "update", "patch", "delete"))
_WINDOW_METHODS = frozenset(("GET", "PUT", "PATCH"))

Verb = Callable[[Exchange, Context, ServedKind, Version], Awaitable[StreamResponse]]


def no_method() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource")


def no_resource() -> NotFound:
    return NotFound("the server could not find the requested resource")


class Verbs:
    def __init__(
        self,
        registry: Registry,
        watches: Watches,
        connectors: Connectors,
        may_create: Callable[[Exchange], None],
        trail: Trail | None = None,
    ) -> None:
        self._trail = trail
        self._registry = registry
        self._may_create = may_create
        self._watches = watches
        self._connectors = connectors
        self._verbs: dict[str, Verb] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    async def serve(self, exchange: Exchange) -> StreamResponse:
        info = exchange.info
        found = self._registry.catalog.find(info.group, info.version, info.resource)
        if found is None:
            return self._unknown(exchange)
        served, version = found
        exchange.labels = self._label(exchange, served, version)
        ctx = exchange.ctx = Context(exchange.user, user_agent=exchange.header(USER_AGENT))
        if version.deprecation:
            ctx.warn(version.deprecation)
        connector = self._registry.connector(served, info.subresource)
        self._check(exchange, served, version, connector)
        if connector is not None:
            ctx.may_create = lambda: self._may_create(exchange)
            return await self._connectors.serve(exchange, ctx, served, version, connector)
        verb = self._verbs.get(info.verb)
        if verb is None or exchange.request.method == "HEAD":
            raise no_method()
        exchange.form = accepted(exchange.header(ACCEPT))
        return await verb(exchange, ctx, served, version)

    def _note(self, exchange: Exchange, ctx: Context, served: ServedKind, created: bytes = b"") -> None:
        """A write that succeeded. `created`: the object, whose name the path does not have."""
        if self._trail is not None:
            info = exchange.info
            name = str(orjson.loads(created)["metadata"].get("name", "")) if created else info.name
            kind = (served.group, served.plural, info.subresource)
            self._trail.note(ctx, info.verb, kind, info.namespace, name, exchange.actor)

    def _unknown(self, exchange: Exchange) -> Reply:
        """The 404 of a path: a Status in groups that this server has, plain text elsewhere."""
        if any(not served.custom for served in self._registry.catalog.group(exchange.info.group)):
            raise no_resource()
        return page_not_found(exchange)

    def _label(self, exchange: Exchange, served: ServedKind, version: Version) -> Labels:
        info = exchange.info
        scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
        known = info.subresource in ("", "status", "scale") or info.subresource in served.subresources
        subresource = info.subresource if known else "other"
        key = (info.verb, info.group, info.version, info.resource, subresource, scope)
        labels = _LABELS.get(key)
        if labels is None:
            verb = _METRIC_VERBS.get(info.verb, info.verb.upper())
            labels = Labels(verb, served.group, version.resource.version, served.plural, subresource, scope)
            _LABELS[key] = labels
        return labels

    def _check(self, exchange: Exchange, served: ServedKind, version: Version, connector: Connector | None) -> None:
        """Whether there is a route for the path and the method: nothing else may be done than what was authorised."""
        info, method = exchange.info, exchange.request.method
        if info.extra or not (info.plain or info.subresource):
            raise no_resource()
        if not served.namespaced and info.namespace and not _names_namespace(info):
            raise no_resource()
        if served.namespaced and not info.namespace:
            if info.name or info.subresource:
                raise no_resource()
            if info.verb not in ("list", "watch"):
                raise no_method()
        if info.subresource:
            self._check_subresource(exchange, served, version, connector)
        elif connector is not None:
            if info.name or info.verb == "watch":
                raise no_resource()
            if method not in connector.methods:
                raise no_method()
        else:
            _check_object(exchange, served)

    def _check_subresource(
        self, exchange: Exchange, served: ServedKind, version: Version, connector: Connector | None
    ) -> None:
        info, method = exchange.info, exchange.request.method
        if connector is None and not self._registry.has_subresource(served, version, info.subresource):
            raise no_resource()
        if info.verb == "watch":
            raise no_method() if served.custom else no_resource()
        if method not in (_WINDOW_METHODS if connector is None else connector.methods):
            raise no_method()
        if not info.name:
            raise no_method() if served.custom and info.verb == "list" else BadRequest("name must be provided")
        if connector is None and info.verb not in served.subresource_verbs.get(info.subresource, (info.verb,)):
            raise no_method()
        if not info.plain:
            raise no_resource()

    # -- reading -----------------------------------------------------------------------------------------------

    async def _get(self, exchange: Exchange, ctx: Context, served: ServedKind, version: Version) -> Reply:
        info = exchange.info
        body = await self._registry.get(
            served,
            version,
            info.namespace,
            info.name,
            subresource=info.subresource,
            resource_version=exchange.query.get("resourceVersion") if exchange.query else "",
            as_of=exchange.as_of,
        )
        return self._reply(exchange, served, version, body)

    async def _list(self, exchange: Exchange, ctx: Context, served: ServedKind, version: Version) -> Reply:
        form = exchange.form
        if form.kind == "PartialObjectMetadata":
            kind = served.list_kind or f"{served.kind}List"
            raise NotAcceptable(f"you requested PartialObjectMetadata, but the requested object is a list ({kind})")
        exchange.query.number("timeoutSeconds")  # a list has no use for it, but a bad one is refused
        options = list_options(exchange.query)
        if exchange.as_of is not None:
            options = replace(options, continue_="", resource_version=str(exchange.as_of), match="Exact")
        listing = await self._registry.list(served, version, exchange.info.namespace, options)
        if form.kind == "Table":
            table = TableForm(served, version, exchange.query.get("includeObject"), form.version)
            body = table.render(listing.items, list_meta(listing))
        elif form.kind:
            body = partial_metadata_list(listing.items, list_meta(listing), form.version)
        else:
            body = list_bytes(served, version, listing)
        return reply_object(exchange, body)

    async def _watch(self, exchange: Exchange, ctx: Context, served: ServedKind, version: Version) -> StreamResponse:
        info = exchange.info
        namespace = info.namespace if served.namespaced else ""
        return await self._watches.serve(exchange, served, version, namespace, info.name)

    # -- writing -----------------------------------------------------------------------------------------------

    def _take_options(self, exchange: Exchange, ctx: Context) -> bool | None:
        """Puts the query's options into the context; gives `force`."""
        options = write_options(exchange.query, _OPTIONS[exchange.info.verb])
        ctx.field_manager = options.field_manager
        ctx.dry_run = options.dry_run
        ctx.field_validation = options.field_validation
        ctx.may_create = lambda: self._may_create(exchange)
        return options.force

    async def _create(self, exchange: Exchange, ctx: Context, served: ServedKind, version: Version) -> Reply:
        self._take_options(exchange, ctx)
        body = await exchange.read()
        obj = await parse_object(ctx, served, version, body, exchange.header(CONTENT_TYPE))
        _check_created(exchange.info.name, obj)
        written = await self._registry.create(ctx, served, version, exchange.info.namespace, obj)
        self._note(exchange, ctx, served, written)
        return self._reply(exchange, served, version, written, 201)

    async def _update(self, exchange: Exchange, ctx: Context, served: ServedKind, version: Version) -> Reply:
        info = exchange.info
        self._take_options(exchange, ctx)
        body = await exchange.read()
        if info.subresource == "scale":
            obj = (await parse_options(body, exchange.header(CONTENT_TYPE))) or {}
        else:
            obj = await parse_object(ctx, served, version, body, exchange.header(CONTENT_TYPE))
        written, created = await self._registry.update(
            ctx, served, version, info.namespace, info.name, obj, subresource=info.subresource
        )
        self._note(exchange, ctx, served)
        return self._reply(exchange, served, version, written, 201 if created else 200)

    async def _patch(self, exchange: Exchange, ctx: Context, served: ServedKind, version: Version) -> Reply:
        info = exchange.info
        patch_type = patch_form(exchange.header(CONTENT_TYPE), strategic=not served.custom)
        options = write_options(exchange.query, _OPTIONS["patch"])
        check_patch(options, apply=patch_type == APPLY_PATCH)
        force = self._take_options(exchange, ctx)
        patch = await parse_patch(ctx, patch_type, await exchange.read())
        written, created = await self._registry.patch(
            ctx,
            served,
            version,
            info.namespace,
            info.name,
            patch_type,
            patch,
            subresource=info.subresource,
            force=bool(force),
        )
        self._note(exchange, ctx, served)
        return self._reply(exchange, served, version, written, 201 if created else 200)

    async def _delete(self, exchange: Exchange, ctx: Context, served: ServedKind, version: Version) -> Reply:
        info = exchange.info
        raw = await parse_options(await exchange.read(), exchange.header(CONTENT_TYPE))
        options, ctx.dry_run = delete_options(exchange.query, raw)
        body, gone = await self._registry.delete(ctx, served, version, info.namespace, info.name, options)
        self._note(exchange, ctx, served)
        waits = not gone and options.orphan_dependents is False
        return self._reply(exchange, served, version, body, 202 if waits else 200)

    async def _delete_collection(self, exchange: Exchange, ctx: Context, served: ServedKind, version: Version) -> Reply:
        raw = await parse_options(await exchange.read(), exchange.header(CONTENT_TYPE))
        options, ctx.dry_run = delete_options(exchange.query, raw)
        chosen = list_options(exchange.query)
        listing = await self._registry.delete_collection(ctx, served, version, exchange.info.namespace, chosen, options)
        self._note(exchange, ctx, served)
        return reply_object(exchange, list_bytes(served, version, listing))

    def _reply(self, exchange: Exchange, served: ServedKind, version: Version, body: bytes, status: int = 200) -> Reply:
        """One object in the form that was asked for. A Status has no other form."""
        form = exchange.form
        if form.kind and not is_status(body):
            if form.kind == "PartialObjectMetadataList":
                raise NotAcceptable("you requested PartialObjectMetadataList, but the requested object is not a list")
            if form.kind == "Table":
                body = TableForm(served, version, exchange.query.get("includeObject"), form.version).render_one(body)
            else:
                body = partial_metadata(body, form.version)
        return reply_object(exchange, body, status)


_LABELS: dict[tuple[str, ...], Labels] = {}


def _names_namespace(info: RequestInfo) -> bool:
    """`namespaces/x` is about x and in x: rights in a namespace cover the namespace itself."""
    return info.resource == "namespaces" and info.namespace == info.name


def _check_object(exchange: Exchange, served: ServedKind) -> None:
    """Whether the verb is one of the kind, with a name where it needs one and none where it takes none."""
    info = exchange.info
    if info.verb not in served.verbs:
        raise no_method()
    if info.verb in _NAMED and not info.name:
        raise BadRequest("name must be provided") if served.custom else no_method()
    if info.verb == "create" and info.name and not served.custom:
        raise no_method()
    if info.verb == "watch" and exchange.request.method != "GET":
        raise no_method()


def _check_created(wanted: str, obj: Any) -> None:
    """A name on the path of a new object was authorised, so it is the name of the object."""
    if wanted:
        meta = obj.get("metadata") if isinstance(obj, dict) else None
        name = meta.get("name") if isinstance(meta, dict) else None
        if name != wanted:
            raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({wanted})")


def is_status(body: bytes) -> bool:
    if b'"Status"' not in body[:200]:
        return False
    parsed = orjson.loads(body)
    return bool(parsed.get("kind") == "Status" and parsed.get("apiVersion") == "v1")
