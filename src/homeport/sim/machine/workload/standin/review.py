"""Webhooks of add-ons: API servers ask the add-on's Pods over the Pod network, and get an answer.

A webhook is served where a configuration leads to it: configuration > Service > Pod of a known image. Its certificate
comes from an authority that is kept in a Secret, as add-ons keep theirs.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from homeport.api.meta import Resource
from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.webhook.endpoint import target_port
from homeport.client.errors import AlreadyExists, NotFound
from homeport.sim.machine.workload.kind import SECRET, SERVICE, Json
from homeport.sim.machine.workload.standin.image import runs, works
from homeport.sim.machine.workload.standin.wire import HttpsService, Message
from homeport.sim.machine.workload.view import View
from homeport.store import Store as Store

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

_GROUP = "admissionregistration.k8s.io"
VALIDATING = Resource(_GROUP, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False)
MUTATING = Resource(_GROUP, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False)
DEFINITION = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
KINDS = (VALIDATING, MUTATING)

# Why a request is refused; '' if it is not.
Check = Callable[[Store, Json], str]


@dataclass(frozen=True, slots=True)
class Hook:
    """The webhook of one add-on."""

    images: tuple[str, ...]
    secret: Callable[[Json], str]  # the Secret with its authority, by the Pod that serves it
    check: Check
    fills_bundle: bool = False  # it writes its authority into configurations itself


@dataclass(frozen=True, slots=True)
class _Place:
    address: str
    port: int
    node: str
    namespace: str
    service: str
    hook: Hook
    secret: str


class Reviews:
    """Serves the webhooks of one cluster. `settle` after each change, `close` in the end."""

    def __init__(self, cluster: WorkloadCluster, hooks: tuple[Hook, ...]) -> None:
        self._cluster = cluster
        self._hooks = hooks
        self._serving: dict[_Place, tuple[bytes, HttpsService]] = {}  # and the certificate of the authority

    async def settle(self, view: View) -> None:
        wanted = {place for kind in KINDS for each in view.all(kind) for place in self._places(view, each)}
        for place in self._serving.keys() - wanted:
            await self._stop(place)
        for place in sorted(wanted, key=lambda place: (place.namespace, place.service, place.address, place.port)):
            issuer = await _ensure_issuer(view, place)
            if issuer is not None:
                await self._serve(view, place, issuer)
        for kind in KINDS:
            for each in view.all(kind):
                await self._fill(view, kind, each)

    async def close(self) -> None:
        for place in list(self._serving):
            await self._stop(place)

    async def _stop(self, place: _Place) -> None:
        self._cluster.pods.unlisten(place.address, place.port)
        await self._serving.pop(place)[1].close()

    async def _serve(self, view: View, place: _Place, issuer: certs.Issuer) -> None:
        pem = certs.certificate_pem(issuer.certificate)
        known = self._serving.get(place)
        if known is not None and known[0] == pem:
            return
        if known is not None:
            await self._stop(place)
        name = f"{place.service}.{place.namespace}"
        now = datetime.datetime.fromtimestamp(view.now, datetime.UTC)
        identity = issuer.server([f"{name}.svc", name, place.service, f"{name}.svc.cluster.local"], now)

        async def answer(request: Message) -> tuple[int, bytes]:
            return _answer(place.hook.check, self._cluster.server.store, request)

        service = HttpsService(_server_context(identity), answer)
        self._cluster.pods.listen(place.address, place.port, place.node, service)
        self._serving[place] = (pem, service)

    async def _fill(self, view: View, kind: Resource, configuration: Json) -> None:
        """Writes the authorities of webhooks that do this themselves into their configuration."""
        changed = False
        webhooks = []
        for webhook in configuration.get("webhooks") or ():
            client = webhook["clientConfig"]
            found = next((each for each in self._found(view, client) if each.hook.fills_bundle), None)
            bundle = base64.b64encode(self._serving[found][0]).decode() if found in self._serving else None
            if bundle is not None and client.get("caBundle") != bundle:
                webhook = {**webhook, "clientConfig": {**client, "caBundle": bundle}}
                changed = True
            webhooks.append(webhook)
        if changed:
            await view.patch(kind, configuration, {"webhooks": webhooks})

    def _places(self, view: View, configuration: Json) -> Iterator[_Place]:
        for webhook in configuration.get("webhooks") or ():
            yield from self._found(view, webhook["clientConfig"])

    def _found(self, view: View, client: Json) -> Iterator[_Place]:
        reference = client.get("service") or {}
        namespace, name = reference.get("namespace"), reference.get("name")
        for service in view.all(SERVICE):
            if (service["metadata"]["namespace"], service["metadata"]["name"]) != (namespace, name):
                continue
            number = int(reference.get("port") or 443)
            port = next((each for each in service["spec"].get("ports") or () if each["port"] == number), None)
            if port is not None:
                yield from self._behind(view, service, port)

    def _behind(self, view: View, service: Json, port: Json) -> Iterator[_Place]:
        meta, selector = service["metadata"], service["spec"].get("selector") or {}
        for pod in view.pods:
            if pod["metadata"]["namespace"] != meta["namespace"] or not selector or not works(view, pod):
                continue
            if not selector.items() <= (pod["metadata"].get("labels") or {}).items():
                continue
            hook = next((each for each in self._hooks if runs(pod, *each.images)), None)
            number = target_port(port, [pod])
            if hook is not None and number is not None:
                address, node = pod["status"]["podIP"], pod["spec"]["nodeName"]
                yield _Place(address, number, node, meta["namespace"], meta["name"], hook, hook.secret(pod))


def _answer(check: Check, store: Store, request: Message) -> tuple[int, bytes]:
    review = orjson.loads(request.body)
    asked = review["request"]
    refused = check(store, asked)
    response: Json = {"uid": asked["uid"], "allowed": not refused}
    if refused:
        response["status"] = {"code": 403, "message": refused, "reason": "Forbidden"}
    return 200, orjson.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})


def objects(store: Store, bucket: str) -> Iterator[Json]:
    for record in store.range(bucket):
        yield orjson.loads(record.value)


async def _ensure_issuer(view: View, place: _Place) -> certs.Issuer | None:
    for secret in view.all(SECRET):
        if (secret["metadata"]["namespace"], secret["metadata"]["name"]) == (place.namespace, place.secret):
            found = _read_issuer(secret.get("data") or {})
            if found is not None:
                return found
            break
    key = certs.make_key()
    now = datetime.datetime.fromtimestamp(view.now, datetime.UTC)
    issuer = certs.Issuer(certs.sign_ca(key, now, common_name=f"{place.service}-ca"), key)
    pem = base64.b64encode(certs.certificate_pem(issuer.certificate)).decode()
    data = {"ca.crt": pem, "tls.crt": pem, "tls.key": base64.b64encode(certs.key_pem(key)).decode()}
    meta: Json = {
        "name": place.secret,
        "namespace": place.namespace,
        "annotations": {"cert-manager.io/allow-direct-injection": "true"},
    }
    try:
        await view.client.create({"metadata": meta, "type": "Opaque", "data": data}, kind=SECRET)
    except AlreadyExists:  # made by the chart, empty, for the add-on to fill in
        await view.patch(SECRET, {"metadata": meta}, {"metadata": meta, "data": data})
    except NotFound:
        return None  # its namespace is being deleted
    return issuer


def _read_issuer(data: Json) -> certs.Issuer | None:
    from cryptography import x509

    with contextlib.suppress(KeyError, ValueError):
        certificate = x509.load_pem_x509_certificate(base64.b64decode(data["tls.crt"]))
        key = certs.load_private_key(base64.b64decode(data["tls.key"]))
        if certs.same_key(key, certificate):
            return certs.Issuer(certificate, key)
    return None


def _server_context(identity: certs.Identity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    descriptor, path = tempfile.mkstemp()  # load_cert_chain reads files alone
    try:
        os.write(descriptor, identity.pem)
        context.load_cert_chain(path)
    finally:
        os.close(descriptor)
        os.unlink(path)
    return context
