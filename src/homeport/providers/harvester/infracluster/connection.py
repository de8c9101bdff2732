"""Connections to infrastructure clusters: one for each kubeconfig, shared by all clusters and machines that use it."""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import AsyncIterator, Iterable, Mapping, MutableSequence, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine, ObjectReference
from homeport.api.meta import Resource, Unstructured
from homeport.capi.cloud import Sources
from homeport.capi.remote import kubeconfig
from homeport.client.config import Config, ConfigError
from homeport.client.dial import DialOptions
from homeport.client.errors import ApiError, Conflict, NotFound
from homeport.client.http import HttpClient, Timeouts
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.client.wire.retry import Retry
from homeport.infra.error import Denied, Misconfigured, Missing, Stale
from homeport.infra.machine.location import Location
from homeport.infra.preflight.near import near_objects
from homeport.infra.vendor.endpoint import Endpoint
from homeport.infra.vendor.session import Sessions, fingerprint
from homeport.providers.harvester.infracluster.error import provider_error
from homeport.providers.harvester.infracluster.recent import Recent
from homeport.providers.harvester.infracluster.resource import IMAGE, NAMESPACE, SECRET, SETTING, VM
from homeport.providers.harvester.infracluster.watch import Watches
from homeport.runtime.clock import Clock
from homeport.runtime.permission import Need, missing

_WRITE = Write(field_manager="homeport-harvester")
_KEY = "kubeconfig"
_CLOUD_KEY = "cloud-kubeconfig"  # of an account that may do less, for the workload cluster


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach an infrastructure cluster. `config` None: the cluster that the plane itself runs in."""

    config: Config | None
    namespace: str  # of VMs whose template names none
    origin: str  # where it was read, for messages
    content: bytes = field(default=b"", repr=False)

    @property
    def server(self) -> str:
        return self.config.server if self.config is not None else "the management cluster"


@dataclass(slots=True)
class HarvesterSession:
    """One infrastructure cluster. Every call raises ProviderError; a missing object is None where that is an answer."""

    client: Client
    access: Access
    endpoint: Endpoint
    watches: Watches
    clock: Clock
    harvester: bool = True  # False: KubeVirt without Harvester
    owns_client: bool = True
    identity: str = ""  # of the infrastructure cluster; '' if the account may not read it
    recent: Recent = field(init=False)

    def __post_init__(self) -> None:
        self.recent = Recent(self.clock)

    @property
    def namespace(self) -> str:
        return self.access.namespace

    @property
    def location(self) -> Location:
        return Location(f"{self.access.server}, namespace {self.namespace}", self.identity)

    async def close(self) -> None:
        await self.watches.close()
        if self.owns_client:
            await self.client.close()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        async with self.endpoint.turn():
            try:
                yield
            except ApiError as error:
                raise provider_error(error, self.access.server, self.access.origin) from error
            except ConfigError as error:  # certificates are read with the first request
                raise Misconfigured(f"{self.access.origin}: {error}") from None

    async def get(self, kind: Resource, key: Key) -> Unstructured | None:
        """As the server has it now."""
        try:
            async with self._turn():
                return await self.client.get(kind, key)
        except Missing:
            return None

    async def find(self, kind: Resource, key: Key) -> Unstructured | None:
        """As the watch shows it; what it does not show is asked for."""
        found = await self.watches.find(kind, key)
        return found if found is not None else await self.get(kind, key)

    async def list(self, kind: Resource, namespace: str = "", labels: str = "") -> list[Unstructured]:
        """As the server has it now. A kind that is not served has no objects."""
        try:
            return [*await self.list_served(kind, namespace, labels)]
        except Missing:
            return []

    async def list_served(self, kind: Resource, namespace: str = "", labels: str = "") -> Sequence[Unstructured]:
        """As the server has it now: what is not listed is gone. Raises Missing if the kind is not served."""
        async with self._turn():
            return (await self.client.list(kind, Query(namespace=namespace, labels=labels))).items

    async def look_up(self, kind: Resource, key: Key) -> Unstructured | None:
        """As it was a few minutes ago, if it was there: for objects that hardly ever change."""
        return await self.recent.get((kind, key), lambda: self.get(kind, key))

    async def setting(self, name: str) -> str:
        """The value of a Setting of Harvester; '' if there is none."""
        found = await self.look_up(SETTING, Key("", name)) or Unstructured()
        return str(found.get("value") or found.get("default") or "")

    async def shown(self, kind: Resource, namespace: str) -> Sequence[Unstructured]:
        """All objects of a namespace as the watch shows them; asked for while it does not work."""
        found = await self.watches.list(kind, namespace)
        return found if found is not None else await self.list(kind, namespace)

    async def denied(self, needs: Iterable[Need]) -> Sequence[Need]:
        """Those that the account lacks."""
        lacking: MutableSequence[Need] = []
        for need in needs:
            await self.recent.get(need, functools.partial(self._granted, need, lacking))
        return lacking

    async def _granted(self, need: Need, lacking: MutableSequence[Need]) -> bool | None:
        async with self._turn():
            found = await missing(self.client, [need])
        lacking.extend(found)
        return None if found else True

    async def create(self, kind: Resource, body: Mapping[str, Any]) -> Unstructured:
        async with self._turn():
            made = await self.client.create(body, _WRITE, kind=kind)
        self.watches.note(kind, made)
        return made

    async def patch(self, kind: Resource, key: Key, body: Mapping[str, Any]) -> Unstructured:
        async with self._turn():
            try:
                made = await self.client.patch(kind, key, MergePatch(body), _WRITE)
            except Conflict as error:
                raise Stale(error.message) from error
        self.watches.note(kind, made)
        return made

    async def delete(self, kind: Resource, obj: Unstructured) -> None:
        """Deletes this object and never another one with its name. It is not an error if the object is already gone."""
        try:
            async with self._turn():
                await self.client.delete(kind, Key(obj.namespace, obj.name), uid=obj.uid, propagation="Background")
        except Missing:
            return


class Connector:
    """Reads the Secret that a KubevirtCluster or KubevirtMachine names. A changed kubeconfig is another session."""

    def __init__(self, api: Client, clock: Clock, dial: DialOptions) -> None:
        self._api = api
        self._clock = clock
        self._dial = dial
        self._sessions: Sessions[HarvesterSession] = Sessions(clock)
        self._endpoints: dict[str, Endpoint] = {}

    def sources(self, infra: KubevirtCluster) -> Sources:
        return _sources(infra.spec.infra_cluster_secret_ref, infra.metadata.namespace)

    def machine_sources(self, infra: KubevirtMachine) -> Sources:
        return _sources(infra.spec.infra_cluster_secret_ref, infra.metadata.namespace)

    async def connect(self, infra: KubevirtCluster) -> HarvesterSession:
        return await self._shared(await self.access(infra.spec.infra_cluster_secret_ref, infra.metadata.namespace))

    async def connect_machine(self, infra: KubevirtMachine, cluster: KubevirtCluster | None) -> HarvesterSession:
        ref, namespace = infra.spec.infra_cluster_secret_ref, infra.metadata.namespace
        if ref is None and cluster is not None:
            ref = cluster.spec.infra_cluster_secret_ref
        return await self._shared(await self.access(ref, namespace))

    async def open(self, settings: Mapping[str, Any], secret: Mapping[str, str]) -> HarvesterSession:
        """`settings`: namespace, key (of the kubeconfig in the Secret), and origin, the Secret's name in messages."""
        key = str(settings.get("key") or _KEY)
        content = secret.get(key, "").encode()
        namespace = str(settings.get("namespace") or secret.get("namespace") or "")
        return await self.session(content, namespace, f"{settings.get('origin') or 'the Secret'}, key {key}")

    async def session(self, content: bytes, namespace: str, origin: str) -> HarvesterSession:
        """From a kubeconfig. `origin`: where it was read, for messages."""
        return await self._shared(self._parsed(content, namespace, origin))

    async def close(self) -> None:
        await self._sessions.close()

    # -- what a connection is made of --------------------------------------------------------------------------

    async def access(self, ref: ObjectReference | None, namespace: str) -> Access:
        """Raises Misconfigured. Messages never show what is in a Secret."""
        if ref is None or not ref.name:
            return Access(None, namespace, "the management cluster")
        key, data = await self._secret(ref, namespace)
        return self._read(data, _KEY, f"Secret {key}")

    async def cloud_access(self, ref: ObjectReference, namespace: str) -> Access:
        """What workload clusters get: the account that the Secret has for them, or else the one that makes VMs."""
        key, data = await self._secret(ref, namespace)
        return self._read(data, _CLOUD_KEY if data.get(_CLOUD_KEY) else _KEY, f"Secret {key}")

    async def _secret(self, ref: ObjectReference, namespace: str) -> tuple[Key, Mapping[str, str]]:
        key = _secret_key(ref, namespace)
        try:
            found = await self._api.get(SECRET, key)
        except NotFound:
            text = f"spec.infraClusterSecretRef: Secret {key} does not exist: create it with the key {_KEY}"
            near = await near_objects(self._api, SECRET, key)
            raise Misconfigured(f"{text}; reconciliation resumes automatically{near}") from None
        return key, found.get("data") or {}

    def _read(self, data: Mapping[str, str], name: str, origin: str) -> Access:
        namespace = _decoded(data, "namespace", origin).decode(errors="replace").strip()
        return self._parsed(_decoded(data, name, origin), namespace, origin, name)

    def _parsed(self, content: bytes, namespace: str, origin: str, name: str = _KEY) -> Access:
        if not content.strip():
            raise Misconfigured(f"{origin} has no key {name}: add the kubeconfig of the Harvester or KubeVirt cluster")
        try:
            config = kubeconfig.parse(content, where=f"{origin}, key {name}", proxy=self._dial.proxy)
        except ConfigError as error:
            raise Misconfigured(str(error)) from None
        return Access(config, namespace or config.namespace, origin, content)

    # -- sessions ----------------------------------------------------------------------------------------------

    async def _shared(self, access: Access) -> HarvesterSession:
        async def open_session() -> HarvesterSession:
            return await self._open(access)

        return await self._sessions.get(fingerprint(access.content, access.namespace), open_session)

    async def _open(self, access: Access) -> HarvesterSession:
        """Wrong credentials, and a cluster without KubeVirt, are reported here and now."""
        client = self._client(access)
        endpoint = self._endpoints.setdefault(access.server, Endpoint(access.server, self._clock))
        own = access.config is not None
        session = HarvesterSession(client, access, endpoint, Watches(client), self._clock, owns_client=own)
        try:
            await self._probe(session)
        except BaseException:
            await session.close()
            raise
        return session

    def _client(self, access: Access) -> Client:
        if access.config is None:
            return self._api
        try:
            # Reconcilers come again by themselves: the client need not be patient for them.
            return HttpClient(
                access.config,
                timeouts=Timeouts(connect=5.0, request=20.0),
                retry=Retry(attempts=2, patience_seconds=5.0),
            )
        except ConfigError as error:
            raise Misconfigured(f"{access.origin}: {error}") from None

    async def _probe(self, session: HarvesterSession) -> None:
        """Harvester or not is seen by its kinds: 404 means that a kind is not served."""
        try:
            await self._served(session, VM)
        except Missing:
            text = f"{session.access.server} does not serve {VM.qualified}: it is not a Harvester or KubeVirt cluster"
            cure = (
                "name the Secret of one in spec.infraClusterSecretRef"
                if session.access.config is None
                else f"check the server URL in the kubeconfig of {session.access.origin}"
            )
            raise Misconfigured(f"{text}; {cure}") from None
        try:
            await self._served(session, IMAGE)
        except Missing:
            session.harvester = False
        except Denied:
            session.harvester = True  # it is there, and somebody may not see it
        session.identity = await _identity(session)

    async def _served(self, session: HarvesterSession, kind: Resource) -> None:
        async with session._turn():
            await session.client.list(kind, Query(namespace=session.namespace, limit=1))


async def _identity(session: HarvesterSession) -> str:
    """The UID of kube-system, which no two clusters have in common."""
    try:
        found = await session.get(NAMESPACE, Key("", "kube-system"))
    except Denied:
        return ""
    return found.uid if found is not None else ""


def _sources(ref: ObjectReference | None, namespace: str) -> Sources:
    return Sources((_secret_key(ref, namespace),)) if ref is not None and ref.name else Sources()


def _secret_key(ref: ObjectReference, namespace: str) -> Key:
    return Key(ref.namespace or namespace, ref.name)


def _decoded(data: Mapping[str, str], name: str, origin: str) -> bytes:
    try:
        return base64.b64decode(data.get(name, ""), validate=True)
    except (binascii.Error, ValueError):
        raise Misconfigured(f"{origin}, key {name}: is not valid base64") from None
