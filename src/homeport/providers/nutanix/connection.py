"""Sessions with Prism Central: one for each endpoint and credentials, shared by all clusters that use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Resource
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.capi.cloud import Sources
from homeport.client.absence import find_object
from homeport.client.dial import DialOptions
from homeport.client.protocol import Client as ApiClient
from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured
from homeport.infra.preflight.near import near_objects
from homeport.infra.vendor.account import Account
from homeport.infra.vendor.endpoint import Endpoint
from homeport.infra.vendor.session import Sessions, fingerprint
from homeport.infra.vendor.task import Poller
from homeport.providers.nutanix.client import Client, Credentials
from homeport.providers.nutanix.credential import (
    GLOBAL_ENDPOINT,
    GLOBAL_SECRET,
    Target,
    parse_bundle,
    parse_credentials,
    parse_global,
    parse_settings,
    read_credentials,
    sources_of,
    target_of,
)
from homeport.providers.nutanix.inventory import Inventory
from homeport.providers.nutanix.lookup import Lookup
from homeport.providers.nutanix.prism.record import Prism
from homeport.providers.nutanix.prism.v3 import PrismV3
from homeport.providers.nutanix.prism.v4 import probe_v4
from homeport.providers.nutanix.watch import Watch
from homeport.runtime.clock import Clock

_SECRET = Resource("", "v1", "Secret", "secrets")
_CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")

VENDOR = "Prism Central"


@dataclass(slots=True)
class PrismSession:
    prism: Prism
    lookup: Lookup
    tasks: Poller
    watch: Watch
    clock: Clock
    inventory: Inventory
    endpoint: Endpoint

    def __post_init__(self) -> None:
        self.endpoint.doubted.append(self.watch.doubt)

    async def close(self) -> None:
        self.endpoint.doubted.remove(self.watch.doubt)
        await self.tasks.close()
        await self.watch.close()
        await self.prism.close()


class Connector:
    """Reads what a NutanixCluster names and gives the session for it. A changed password is another session."""

    def __init__(self, api: ApiClient, clock: Clock, dial: DialOptions) -> None:
        self._api = api
        self._clock = clock
        self._dial = dial
        self._sessions: Sessions[PrismSession] = Sessions(clock)
        self._endpoints: dict[str, Endpoint] = {}
        self._refused: dict[str, Account] = {}  # of credentials that have opened no session yet

    def sources(self, infra: NutanixCluster) -> Sources:
        return sources_of(infra)

    async def connect(self, infra: NutanixCluster) -> PrismSession:
        return await self.session(*await self.material(infra))

    async def connect_machine(self, infra: NutanixMachine, cluster: NutanixCluster | None) -> PrismSession:
        if cluster is None:
            raise Misconfigured(f"NutanixMachine {infra.metadata.name} belongs to no NutanixCluster that says where")
        return await self.connect(cluster)

    async def open(self, settings: Mapping[str, Any], secret: Mapping[str, str]) -> PrismSession:
        """`settings`: address, port, insecure, additionalTrustBundle (PEM), and origin (the Secret, for messages)."""
        target, origin = parse_settings(settings), str(settings.get("origin") or "the Secret")
        return await self.session(target, read_credentials(secret, origin), target.inline_bundle.encode() or None)

    async def session(self, target: Target, credentials: Credentials, bundle: bytes | None) -> PrismSession:
        """The one that all who use the same endpoint and credentials share."""
        key = fingerprint(
            target.address,
            str(target.port),
            str(target.insecure),
            credentials.username,
            credentials.password,
            credentials.api_key,
            bundle or b"",
        )

        async def open_session() -> PrismSession:
            account = self._refused.setdefault(key, Account(self._clock))
            session = await self._open(target, credentials, bundle, account)
            self._refused.pop(key, None)
            return session

        return await self._sessions.get(key, open_session)

    async def material(self, infra: NutanixCluster) -> tuple[Target, Credentials, bytes | None]:
        """What a connection is made of: where to, as whom, and which authorities are trusted (None: the system's)."""
        target = await self._target(infra)
        secret = await self._read(_SECRET, target.secret, "spec.prismCentral.credentialRef")
        return target, parse_credentials(secret, target.secret), await self._bundle(target)

    async def close(self) -> None:
        await self._sessions.close()

    async def _open(
        self, target: Target, credentials: Credentials, bundle: bytes | None, account: Account
    ) -> PrismSession:
        """The v4 API if Prism Central has it, otherwise v3. Raises at once if the credentials are wrong."""
        name = f"Prism Central {target.address}:{target.port}"
        endpoint = self._endpoints.setdefault(name, Endpoint(name, self._clock))
        client = Client(
            target.address,
            target.port,
            credentials,
            endpoint,
            dial=self._dial,
            bundle=bundle,
            insecure=target.insecure,
            trust=target.trust,
            account=account,
        )
        try:
            prism: Prism = await probe_v4(client) or PrismV3(client)
            lookup = Lookup(prism, self._clock)
            await lookup.elements()  # whether the credentials are good, and what is asked for first
        except BaseException:
            await client.close()
            raise
        poller = Poller(prism.tasks, self._clock, VENDOR)
        inventory, watch = Inventory(prism, self._clock), Watch(prism, self._clock)
        return PrismSession(prism, lookup, poller, watch, self._clock, inventory, endpoint)

    async def _target(self, infra: NutanixCluster) -> Target:
        central = infra.spec.prism_central
        if central is not None:
            return target_of(central, infra.metadata.namespace)
        endpoint = await self._optional(_CONFIG_MAP, GLOBAL_ENDPOINT)
        secret = await self._optional(_SECRET, GLOBAL_SECRET)
        return target_of(parse_global(endpoint, secret), GLOBAL_SECRET.namespace)

    async def _bundle(self, target: Target) -> bytes | None:
        if target.inline_bundle:
            return target.inline_bundle.encode()
        if target.bundle is None:
            return None
        found = await self._read(_CONFIG_MAP, target.bundle, "spec.prismCentral.additionalTrustBundle")
        return parse_bundle(found, target.bundle)

    async def _read(self, kind: Resource, key: Key, field: str) -> Any:
        found = await self._optional(kind, key)
        if found is None:
            text = f"{field}: {kind.kind} {key} does not exist: create it; reconciliation resumes automatically"
            raise Misconfigured(text + await near_objects(self._api, kind, key))
        return found

    async def _optional(self, kind: Resource, key: Key) -> Any:
        return await find_object(self._api, kind, key)
