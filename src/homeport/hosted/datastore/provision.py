"""The DataStore `default` of a plane or an installation: an etcd of one member, made when it is first needed."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.api.steward.v1alpha1 import AnyDataStore
from homeport.apiserver.auth import certificate as certs
from homeport.capi.definition.inventory import NAMESPACE
from homeport.capi.remote.pki import KeyPair, client_certificate, moment
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.hosted.certificate import sign_server, stale_client, stale_server
from homeport.hosted.datastore.content import MANAGED_LABEL
from homeport.hosted.flavour import Flavour
from homeport.hosted.ownership import NameTaken, is_made_by
from homeport.hosted.secret import Data, Held, SecretKeeper, checksum
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

NAME = "datastore"
PORT = 2379
IMAGE = "registry.k8s.io/etcd:3.6.5-0"
_TLS = f"{NAME}-tls"
_FOLDER = "/etc/etcd/pki"
_DATA = "/var/lib/etcd"
# Where a Service of a plane without nodes answers on this machine.
_ADDRESS = "workload.homeport.dev/address"
_NAMED = f"{NAME}.{NAMESPACE}.svc"  # the same on a cluster with nodes and DNS
_USER = 65532
_CHECKSUM = f"{MANAGED_LABEL}-checksum"  # of the certificates with which the Pod was started
_LABELS = {MANAGED_LABEL: "true", "app.kubernetes.io/name": NAME}

_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
_SERVICE = Resource("", "v1", "Service", "services")
_STATEFUL_SET = Resource("apps", "v1", "StatefulSet", "statefulsets")


class DefaultDatastore:
    def __init__(self, client: Client, options: Write, clock: Clock, *, embedded: bool = True) -> None:
        """`embedded`: on the API server of a plane, which has no names for Services."""
        self._client = client
        self._options = options
        self._clock = clock
        self._embedded = embedded
        self._keeper = SecretKeeper(client, options, NAMESPACE, {"labels": _LABELS})

    async def ensure(self, flavour: Flavour, known: AnyDataStore | None) -> Wait | None:
        """One that a user made is left alone. Wait: its Pod does not serve yet."""
        if known is not None and MANAGED_LABEL not in known.metadata.labels:
            return None
        key = Key(NAMESPACE, NAME)
        service = await self._have(_SERVICE, key, _service())
        address = _NAMED if not self._embedded else str((service.metadata.get("annotations") or {}).get(_ADDRESS) or "")
        if not address:
            text = f"Service {key} of DataStore default has no address yet"
            return Wait("WaitingForDataStore", text, after=1.0)
        held = await self._hold_certificates(address)
        workload = await self._restarted(await self._have(_STATEFUL_SET, key, _stateful_set()), held)
        if known is None or known.spec.endpoints != [f"{address}:{PORT}"]:
            body = _datastore(flavour, address)
            await self._client.apply(body, self._options, kind=flavour.datastore.__resource__, force=True)
        if not int((workload.get("status") or {}).get("readyReplicas") or 0):
            look = f"kubectl -n {NAMESPACE} describe pods -l app.kubernetes.io/name={NAME}"
            text = f"StatefulSet {key} of DataStore default has no ready Pod: see `{look}`"
            return Wait("WaitingForDataStore", text, after=1.0)
        return None

    async def _have(self, kind: Resource, key: Key, body: dict[str, Any]) -> Unstructured:
        """Made once; a user may change it (image, resources)."""
        try:
            found = await self._client.get(kind, key)
        except NotFound:
            await self._have_namespace()
        else:
            if not is_made_by(found, {"labels": _LABELS}):
                raise NameTaken(f"{kind.kind} {key} exists and is not that of DataStore default: delete or rename it")
            return found
        try:
            return await self._client.create(body, self._options, kind=kind)
        except AlreadyExists:
            return await self._client.get(kind, key)

    async def _have_namespace(self) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        try:
            await self._client.create(body, self._options, kind=_NAMESPACE)
        except AlreadyExists:
            return

    async def _hold_certificates(self, address: str) -> Held:
        now = self._clock.now()
        hosts = list(dict.fromkeys(["localhost", "127.0.0.1", address, _NAMED, f"{_NAMED}.cluster.local"]))

        def authority(data: Data) -> KeyPair:
            return KeyPair(data.get("ca.crt", b""), data.get("ca.key", b""))

        def stale(data: Data) -> str:
            ca = authority(data)
            if not ca.certificate:
                return "it is empty"
            server = KeyPair(data.get("server.crt", b""), data.get("server.key", b""))
            root = KeyPair(data.get("root.crt", b""), data.get("root.key", b""))
            return stale_server(server, ca, hosts, now=now) or stale_client(root, ca, "root", now=now)

        def make(data: Data) -> Data:
            ca = authority(data)
            if not ca.certificate:
                key = certs.make_key()
                signed = certs.sign_ca(key, moment(now), common_name="homeport-datastore-ca")
                ca = KeyPair(certs.certificate_pem(signed), certs.key_pem(key))
            server, root = sign_server(ca, hosts, now=now), client_certificate(ca, "root", now=now)
            return {
                "ca.crt": ca.certificate,
                "ca.key": ca.key,
                "server.crt": server.certificate,
                "server.key": server.key,
                "root.crt": root.certificate,
                "root.key": root.key,
            }

        return await self._keeper.hold(_TLS, stale, make)

    async def _restarted(self, workload: Unstructured, held: Held) -> Unstructured:
        """etcd reads its CA when it starts: with another one the Pod is replaced. The first Pod needs no mark."""
        wanted = checksum({name: held.data[name] for name in ("ca.crt", "server.crt")})
        found = (workload.metadata.get("annotations") or {}).get(_CHECKSUM)
        if found == wanted:
            return workload
        marks = {"annotations": {_CHECKSUM: wanted}}
        body: dict[str, Any] = {"metadata": {"uid": workload.uid, **marks}}
        if found is not None:
            body["spec"] = {"template": {"metadata": marks}}
        key = Key(workload.namespace, workload.name)
        return await self._client.patch(_STATEFUL_SET, key, MergePatch(body), self._options)


def _datastore(flavour: Flavour, address: str) -> dict[str, Any]:
    def ref(key: str) -> dict[str, Any]:
        return {"secretReference": {"name": _TLS, "namespace": NAMESPACE, "keyPath": key}}

    kind = flavour.datastore.__resource__
    return {
        **kind.type_meta,
        "metadata": {"name": "default", "labels": {MANAGED_LABEL: "true"}},
        "spec": {
            "driver": "etcd",
            "endpoints": [f"{address}:{PORT}"],
            "tlsConfig": {
                "certificateAuthority": {"certificate": ref("ca.crt"), "privateKey": ref("ca.key")},
                "clientCertificate": {"certificate": ref("root.crt"), "privateKey": ref("root.key")},
            },
        },
    }


def _service() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": _LABELS},
        "spec": {
            "selector": {"app.kubernetes.io/name": NAME},
            "ports": [{"name": "client", "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
        },
    }


def _container() -> dict[str, Any]:
    listen, peer = f"https://0.0.0.0:{PORT}", "http://127.0.0.1:2380"
    return {
        "name": "etcd",
        "image": IMAGE,
        "command": [
            "etcd",
            "--name=default",
            f"--data-dir={_DATA}",
            f"--listen-client-urls={listen}",
            f"--advertise-client-urls=https://{_NAMED}:{PORT}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--client-cert-auth=true",
            f"--trusted-ca-file={_FOLDER}/ca.crt",
            f"--cert-file={_FOLDER}/server.crt",
            f"--key-file={_FOLDER}/server.key",
            "--auto-compaction-mode=periodic",
            "--auto-compaction-retention=5m",
            "--snapshot-count=10000",
            "--quota-backend-bytes=8589934592",
        ],
        "ports": [{"name": "client", "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1, "failureThreshold": 3},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "data", "mountPath": _DATA},
            {"name": "tls", "mountPath": _FOLDER, "readOnly": True},
        ],
    }


def _stateful_set() -> dict[str, Any]:
    files = [{"key": each, "path": each} for each in ("ca.crt", "server.crt", "server.key")]
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Gi"}}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": _LABELS},
        "spec": {
            "serviceName": NAME,
            "replicas": 1,
            "selector": {"matchLabels": {"app.kubernetes.io/name": NAME}},
            "template": {
                "metadata": {"labels": _LABELS},
                "spec": {
                    "automountServiceAccountToken": False,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": _USER,
                        "runAsGroup": _USER,
                        "fsGroup": _USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [_container()],
                    "volumes": [{"name": "tls", "secret": {"secretName": _TLS, "items": files, "defaultMode": 0o440}}],
                },
            },
            "volumeClaimTemplates": [claim],
        },
    }
