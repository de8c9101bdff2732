"""The objects that tell a kube-apiserver to ask us: webhook configurations, and the conversion part of definitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from homeport.api.meta import Resource
from homeport.client.protocol import Key
from homeport.runtime.webhook.hook import Hooks, Json, KindHooks

GROUP = "admissionregistration.k8s.io"
MUTATING = Resource(GROUP, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False)
VALIDATING = Resource(
    GROUP, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)
DEFINITION = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)

# On any of these objects: the Secret (namespace/name) whose CA is to be put into it.
INJECT_ANNOTATION = "webhook.homeport.dev/inject-ca-from"
SCALE = "scale"  # the subresource
DEFAULT_PATH, VALIDATE_PATH, CONVERT_PATH = "/default", "/validate", "/convert"


@dataclass(frozen=True, slots=True)
class Service:
    """Where an API server in the cluster reaches us."""

    namespace: str
    name: str
    port: int = 443

    def client(self, path: str) -> Json:
        return {"service": {"namespace": self.namespace, "name": self.name, "port": self.port, "path": path}}

    @property
    def hosts(self) -> tuple[str, ...]:
        """What the certificate must be good for."""
        short = f"{self.name}.{self.namespace}"
        return (f"{short}.svc", f"{short}.svc.cluster.local", short, self.name)


@dataclass(frozen=True, slots=True)
class Url:
    """Where an API server reaches us that is not in our cluster: `https://HOST:PORT`."""

    base: str

    def client(self, path: str) -> Json:
        return {"url": self.base.rstrip("/") + path}


Endpoint = Service | Url


@dataclass(frozen=True, slots=True)
class Policy:
    """How an API server treats our webhooks. Fail: a write we can't check is refused, so nothing slips through."""

    failure: Literal["Fail", "Ignore"] = "Fail"
    timeout_seconds: int = 10
    namespaces: Mapping[str, Any] | None = None  # a label selector


def path_of(prefix: str, resource: Resource) -> str:
    return f"{prefix}/{resource.group or 'core'}/{resource.version}/{resource.plural}"


def render_configurations(
    hooks: Hooks,
    endpoint: Endpoint,
    *,
    name: str = "homeport",
    secret: Key | None = None,
    policy: Policy | None = None,
    scalable: Collection[str] = (),
) -> list[Json]:
    """At most one configuration of either kind, without a CA: the injector puts it in, told by an annotation.

    `scalable`: kinds (`machines.cluster.x-k8s.io`) whose number of replicas can be changed by `kubectl scale`.
    """
    policy = policy or Policy()
    mutating = [_webhook("default", k, endpoint, policy, ["CREATE", "UPDATE"]) for k in hooks if k.defaults]
    validating = [_webhook("validate", k, endpoint, policy, _operations(k)) for k in hooks if _operations(k)]
    for webhook, each in zip(validating, (k for k in hooks if _operations(k)), strict=True):
        if each.validates and each.resource.qualified in scalable:
            webhook["rules"].append(_rule(each.resource, ["UPDATE"], f"/{SCALE}"))
    for webhook in mutating:
        webhook["reinvocationPolicy"] = "IfNeeded"  # fields that other webhooks set may need our defaults
    found = []
    for kind, webhooks in ((MUTATING, mutating), (VALIDATING, validating)):
        if webhooks:
            meta: Json = {"name": name}
            if secret is not None:
                meta["annotations"] = {INJECT_ANNOTATION: str(secret)}
            found.append({**kind.type_meta, "metadata": meta, "webhooks": webhooks})
    return found


def _operations(kind: KindHooks) -> list[str]:
    return (["CREATE", "UPDATE"] if kind.validates else []) + (["DELETE"] if kind.deletions else [])


def _webhook(verb: str, kind: KindHooks, endpoint: Endpoint, policy: Policy, operations: list[str]) -> Json:
    resource = kind.resource
    webhook: Json = {
        "name": f"{verb}.{resource.qualified}.homeport.dev",
        "clientConfig": endpoint.client(path_of(f"/{verb}", resource)),
        "rules": [_rule(resource, operations)],
        "matchPolicy": "Equivalent",  # requests in other versions are converted for us
        "failurePolicy": policy.failure,
        "sideEffects": "None",
        "timeoutSeconds": policy.timeout_seconds,
        "admissionReviewVersions": ["v1"],
    }
    if policy.namespaces is not None:
        webhook["namespaceSelector"] = dict(policy.namespaces)
    return webhook


def _rule(resource: Resource, operations: list[str], part: str = "") -> Json:
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "operations": operations,
        "resources": [f"{resource.plural}{part}"],
        "scope": "Namespaced" if resource.namespaced else "Cluster",
    }


def with_conversion(
    hooks: Hooks, definitions: Iterable[Mapping[str, Any]], endpoint: Endpoint, *, secret: Key | None = None
) -> list[Json]:
    """The definitions, those of kinds with a converter changed to ask us; those of others as they are."""
    return [_with_conversion(hooks, crd, endpoint, secret) for crd in definitions]


def _with_conversion(hooks: Hooks, crd: Mapping[str, Any], endpoint: Endpoint, secret: Key | None) -> Json:
    spec = crd["spec"]
    if (spec["group"], spec["names"]["kind"]) not in hooks.conversions:
        return dict(crd)
    webhook = {"clientConfig": endpoint.client(CONVERT_PATH), "conversionReviewVersions": ["v1"]}
    changed: Json = {**crd, "spec": {**spec, "conversion": {"strategy": "Webhook", "webhook": webhook}}}
    if secret is not None:
        meta = crd["metadata"]
        annotations = {**(meta.get("annotations") or {}), INJECT_ANNOTATION: str(secret)}
        changed["metadata"] = {**meta, "annotations": annotations}
    return changed
