"""The webhooks of the controllers on a Kubernetes cluster of others: the objects by which its API server asks us.

Everything derives from two names, the namespace and the Service in it: the Secret with the CA is called like the
Service, the webhook configurations `SERVICE.NAMESPACE`. The CA is not in these objects: running replicas put it into
those that are named here and whose annotation names the Secret, and into no others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from homeport.api.meta import Resource
from homeport.app.platform import Platform, definitions_of
from homeport.capi.component import Component
from homeport.capi.definition.stored import immutable, stored_alone
from homeport.capi.environment import Environment
from homeport.client.protocol import Client, Key
from homeport.runtime.permission import Need
from homeport.runtime.task import cancel
from homeport.runtime.webhook import configuration
from homeport.runtime.webhook.authority import SECRET
from homeport.runtime.webhook.configuration import DEFINITION, MUTATING, VALIDATING, Endpoint, Policy, Service, Url
from homeport.runtime.webhook.hook import Hooks, Json
from homeport.runtime.webhook.server import WebhookServer
from homeport.runtime.webhook.shape import Shapes

SERVICE = "homeport-webhook"
PORT = 9443  # in the Pod; the Service listens on 443
PORT_NAME = "webhook"
POD_LABEL = "webhook.homeport.dev/service"
# For Pods: they get reviews as soon as they can answer them. Waiting for the caches of controllers would be a circle,
# as a cache of objects that are stored in an older version fills through the conversion webhook.
READINESS: Mapping[str, Any] = {"httpGet": {"path": "/readyz", "port": PORT_NAME, "scheme": "HTTPS"}}

# Nobody keeps clusters there, and what does is part of the cluster that we run on.
_SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
POLICY = Policy(
    failure="Fail",
    timeout_seconds=10,
    namespaces={
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(_SYSTEM)}]
    },
)


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Where a replica serves its webhooks, and how the API server reaches them."""

    listen: tuple[str, int]
    service: str = SERVICE
    url: str = ""  # '': through the Service
    announce: Callable[[tuple[str, int]], None] = lambda address: None  # called with the address once it listens


def endpoint_of(namespace: str, service: str = SERVICE, url: str = "") -> Endpoint:
    return Url(url) if url else Service(namespace, service)


def hosts_of(namespace: str, service: str = SERVICE, url: str = "") -> list[str]:
    """What the certificate of a replica must be good for."""
    named = [urlsplit(url).hostname or ""] if url else []
    return [*filter(None, named), *Service(namespace, service).hosts]


def secret_of(namespace: str, service: str = SERVICE) -> Key:
    """The Secret with the CA that all replicas share."""
    return Key(namespace, service)


def configuration_name(namespace: str, service: str = SERVICE) -> str:
    """Of both webhook configurations, which have no namespace."""
    return f"{service}.{namespace}"


def pod_labels(service: str = SERVICE) -> dict[str, str]:
    """Labels of the Pods that the Service selects."""
    return {POD_LABEL: service}


def hooks_of(components: Iterable[Component]) -> Hooks:
    """For rendering: hooks that are never called, so that no cluster has to be connected."""
    hooks = Hooks()
    environment = Environment(cast(Client, None))
    for component in components:
        component.register(hooks, environment)
    return hooks


def webhook_objects(
    components: Iterable[Component], namespace: str, service: str = SERVICE, *, url: str = ""
) -> list[Json]:
    """The Service and the configurations for the hooks of these components. With `url` there is no Service: the API
    server asks a process outside the cluster."""
    components = list(components)
    rendered = configuration.render_configurations(
        hooks_of(components),
        endpoint_of(namespace, service, url),
        name=configuration_name(namespace, service),
        secret=secret_of(namespace, service),
        policy=POLICY,
        scalable={crd["metadata"]["name"] for each in components for crd in definitions_of(each) if _scales(crd)},
    )
    return rendered if url else [_service(namespace, service), *rendered]


def _scales(crd: Mapping[str, Any]) -> bool:
    return any("scale" in (version.get("subresources") or {}) for version in crd["spec"]["versions"])


def _service(namespace: str, service: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service, "namespace": namespace},
        "spec": {
            "selector": pod_labels(service),
            "ports": [{"name": PORT_NAME, "port": 443, "targetPort": PORT_NAME, "protocol": "TCP"}],
        },
    }


def with_conversion(crd: Mapping[str, Any], namespace: str, service: str = SERVICE, *, url: str = "") -> Json:
    """A definition that serves all of its versions, converted by our webhook. One with a single version stays so, and
    so does the conversion that a component chose itself."""
    spec = crd["spec"]
    if not _converts(crd):
        return dict(crd) if "conversion" in spec else stored_alone(crd)
    client = endpoint_of(namespace, service, url).client(configuration.CONVERT_PATH)
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}
    meta = crd["metadata"]
    annotations = {
        **(meta.get("annotations") or {}),
        configuration.INJECT_ANNOTATION: str(secret_of(namespace, service)),
    }
    return {
        **crd,
        "metadata": {**meta, "annotations": annotations},
        "spec": {**spec, "versions": immutable(spec), "conversion": conversion},
    }


def injected(definitions: Iterable[Mapping[str, Any]], namespace: str, service: str) -> dict[Resource, Sequence[str]]:
    """Names of the objects that may get our CA."""
    name = configuration_name(namespace, service)
    converted = [str(crd["metadata"]["name"]) for crd in definitions if _converts(crd)]
    return {MUTATING: [name], VALIDATING: [name], DEFINITION: converted}


def _converts(crd: Mapping[str, Any]) -> bool:
    return len(crd["spec"]["versions"]) > 1 and "conversion" not in crd["spec"]


class Webhooks:
    """The webhooks of one replica, leader or not. `run` may be called again after a crash."""

    def __init__(self, platform: Platform, environment: Environment, namespace: str, settings: WebhookSettings) -> None:
        self._platform = platform
        self._environment = environment
        self._namespace = namespace
        self._settings = settings
        self._server: WebhookServer | None = None

    @property
    def unready(self) -> str:
        """Why the API server can't use them now; '' when it can."""
        return "not started yet" if self._server is None else self._server.unready

    async def run(self) -> None:
        namespace, settings = self._namespace, self._settings
        self._server = WebhookServer(
            self._platform.register(self._environment),
            self._environment.client,
            secret_of(namespace, settings.service),
            hosts_of(namespace, settings.service, settings.url),
            listen=settings.listen,
            inject=injected(self._platform.definitions(), namespace, settings.service),
            shapes=Shapes(self._platform.definitions()),
        )
        announcing = asyncio.create_task(self._announce(self._server), name="address of the webhooks")
        try:
            await self._server.run()
        finally:
            await cancel(announcing)

    async def _announce(self, server: WebhookServer) -> None:
        await server.started.wait()
        self._settings.announce(server.address)


def needs_of(definitions: Iterable[Mapping[str, Any]], namespace: str, service: str = SERVICE) -> list[Need]:
    """What a replica must be allowed to do to serve webhooks."""
    secret = secret_of(namespace, service)
    found = [
        Need(("create",), SECRET, namespace),
        Need(("get", "list", "watch", "update"), SECRET, namespace, secret.name),
    ]
    for kind, names in injected(definitions, namespace, service).items():
        found.append(Need(("get", "list", "watch"), kind))
        found += [Need(("patch",), kind, name=name) for name in names]
    return found
