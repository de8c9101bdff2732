"""Spans of reconciles and API calls, for OpenTelemetry. Off unless asked for, and then nothing is wrapped: no cost.

The packages are an extra, `pip install homeport[tracing]`. Call `enable` before controllers and managers are made.
Where the spans go is set as for any OpenTelemetry program, by OTEL_EXPORTER_OTLP_ENDPOINT and its like.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

from homeport.api.meta import Object, Resource
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Client, Key
from homeport.runtime.outcome import Terminal, Wait
from homeport.runtime.reconciler import Reconciler

T = TypeVar("T")

_tracer: Any = None
_OFF: AbstractContextManager[Any] = nullcontext()

# Arguments of client methods that say what a call is about.
_VERBS = ("get", "list", "create", "replace", "patch", "apply", "delete", "delete_all")


class TracingUnavailable(Exception):
    """Tracing was asked for but can't be had; says what to install."""


def enable(provider: Any = None) -> None:
    """What is made from here on is traced. Raises TracingUnavailable.

    `provider`: a TracerProvider of OpenTelemetry; None: one that exports by OTLP.
    """
    global _tracer
    from homeport import __version__

    _tracer = (provider or _exporting_provider()).get_tracer("homeport", __version__)


def disable() -> None:
    """What is made from here on is not traced; what was made before stays as it is."""
    global _tracer
    _tracer = None


def enabled() -> bool:
    return _tracer is not None


def _exporting_provider() -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource as Described
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as missing:
        raise TracingUnavailable(
            f"tracing needs packages that are not installed ({missing.name}): pip install 'homeport[tracing]'"
        ) from missing
    provider = TracerProvider(resource=Described.create({"service.name": "homeport"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def span(name: str, attributes: Mapping[str, Any] | None = None) -> AbstractContextManager[Any]:
    """For parts of a reconcile that deserve a span of their own. Gives the span, or None when tracing is off."""
    if _tracer is None:
        return _OFF
    return cast(AbstractContextManager[Any], _tracer.start_as_current_span(name, attributes=dict(attributes or {})))


# -- controllers ---------------------------------------------------------------------------------------------------


def traced_reconciler(controller: str, reconciler: Reconciler) -> Reconciler:
    """The reconciler itself when tracing is off, else one that makes a span of every reconcile."""
    return reconciler if _tracer is None else _TracedReconciler(_tracer, controller, reconciler)


class _TracedReconciler:
    def __init__(self, tracer: Any, controller: str, inner: Any) -> None:
        self._tracer = tracer
        self._controller = controller
        self._inner = inner

    async def reconcile(self, key: Key) -> Wait | None:
        attributes = {"homeport.controller": self._controller, "homeport.object": str(key)}
        with self._tracer.start_as_current_span(f"reconcile {self._controller}", attributes=attributes) as current:
            try:
                wait: Wait | None = await self._inner.reconcile(key)
            except Terminal as stop:
                current.set_attribute("homeport.terminal", stop.reason)
                raise
            if wait is not None:
                current.set_attribute("homeport.wait", wait.reason)
            return wait


# -- clients -------------------------------------------------------------------------------------------------------


def traced_client(client: Client) -> Client:
    """The client itself when tracing is off, else one that makes a span of every call. Watches are not calls."""
    return client if _tracer is None else cast(Client, _TracedClient(_tracer, client))


class _TracedClient:
    def __init__(self, tracer: Any, inner: Client) -> None:
        self._tracer = tracer
        self._inner = inner
        for verb in _VERBS:
            setattr(self, verb, self._traced(verb, getattr(inner, verb)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _traced(self, verb: str, call: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        async def traced(*args: Any, **kw: Any) -> T:
            resource, attributes = _about(verb, args, kw)
            name = f"{verb} {resource}" if resource else verb
            # A NotFound is an answer more often than a failure; it is marked by its code alone.
            with self._tracer.start_as_current_span(
                name, attributes=attributes, record_exception=False, set_status_on_exception=False
            ) as current:
                try:
                    return await call(*args, **kw)
                except ApiError as error:
                    current.set_attribute("http.response.status_code", error.http_code)
                    if not isinstance(error, NotFound):
                        current.set_status(_error_status(str(error)))
                    raise

        return traced


def _error_status(text: str) -> Any:
    from opentelemetry.trace import Status, StatusCode

    return Status(StatusCode.ERROR, text)


def _about(verb: str, args: tuple[Any, ...], kw: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The kind's name and other attributes of the call. Never any of an object's content."""
    kind = kw.get("kind", args[0] if args else None)
    resource = kind if isinstance(kind, Resource) else getattr(kind, "__resource__", None)
    qualified = resource.qualified if isinstance(resource, Resource) else ""
    attributes = {"homeport.verb": verb}
    if qualified:
        attributes["homeport.kind"] = qualified
    key = kw.get("key") or next((each for each in args if isinstance(each, Key)), None) or _key_in(args)
    if key is not None:
        attributes["homeport.object"] = str(key)
    if kw.get("subresource"):
        attributes["homeport.subresource"] = str(kw["subresource"])
    return qualified, attributes


def _key_in(args: tuple[Any, ...]) -> Key | None:
    first = args[0] if args else None
    if isinstance(first, Object):
        return Key(first.metadata.namespace, first.metadata.name)
    if isinstance(first, Mapping):
        meta = first.get("metadata") or {}
        return Key(str(meta.get("namespace") or ""), str(meta.get("name") or ""))
    return None
