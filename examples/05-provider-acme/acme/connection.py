"""Sessions with Acme: one for each API and token, shared by all clusters that use them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acme.api import AcmeCluster, AcmeMachine
from acme.client import Client, Token
from homeport.api.meta import Resource
from homeport.capi.cloud import Sources
from homeport.client.dial import DialOptions
from homeport.client.errors import NotFound
from homeport.client.protocol import Client as ApiClient
from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured
from homeport.infra.vendor.endpoint import Endpoint
from homeport.infra.vendor.session import Sessions, fingerprint
from homeport.infra.vendor.task import Poller
from homeport.runtime.clock import Clock

VENDOR = "Acme"
_SECRET = Resource("", "v1", "Secret", "secrets")


@dataclass(slots=True)
class AcmeSession:
    client: Client
    tasks: Poller

    async def close(self) -> None:
        await self.tasks.close()
        await self.client.close()


class Connector:
    """A changed token is another session."""

    def __init__(self, api: ApiClient, clock: Clock, dial: DialOptions) -> None:
        self._api = api
        self._clock = clock
        self._dial = dial
        self._sessions: Sessions[AcmeSession] = Sessions(clock)
        self._endpoints: dict[str, Endpoint] = {}

    def sources(self, infra: AcmeCluster) -> Sources:
        return Sources(secrets=(Key(infra.metadata.namespace, infra.spec.credentials_secret),))

    async def connect(self, infra: AcmeCluster) -> AcmeSession:
        key = Key(infra.metadata.namespace, infra.spec.credentials_secret)
        try:
            secret = await self._api.get(_SECRET, key)
        except NotFound:
            raise Misconfigured(
                f"spec.credentialsSecret: Secret {key} does not exist: create it; reconciliation resumes automatically"
            ) from None
        value = b64decode((secret.get("data") or {}).get("token", "")).decode(errors="replace").strip()
        return await self._shared(infra.spec.endpoint, Token(value, f"Secret {key}"))

    async def connect_machine(self, infra: AcmeMachine, cluster: AcmeCluster | None) -> AcmeSession:
        if cluster is None:
            raise Misconfigured(f"AcmeMachine {infra.metadata.name} belongs to no AcmeCluster")
        return await self.connect(cluster)

    async def open(self, settings: Mapping[str, Any], secret: Mapping[str, str]) -> AcmeSession:
        """`settings`: endpoint."""
        return await self._shared(str(settings.get("endpoint") or ""), Token(secret.get("token", ""), "the Secret"))

    async def close(self) -> None:
        await self._sessions.close()

    async def _shared(self, address: str, token: Token) -> AcmeSession:
        if not token.value:
            raise Misconfigured(f"{token.origin} has no key token: add an API token of Acme")

        async def connect() -> AcmeSession:
            endpoint = self._endpoints.setdefault(address, Endpoint(f"Acme {address}", self._clock))
            client = Client(endpoint, address, token, self._dial)
            try:
                await client.free_memory()  # proves that the token is valid
            except BaseException:
                await client.close()
                raise
            return AcmeSession(client, Poller(client.jobs, self._clock, VENDOR))

        return await self._sessions.get(fingerprint(address, token.value), connect)
