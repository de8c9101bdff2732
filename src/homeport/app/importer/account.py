"""The provider that the VMs of an import are on: with which credentials, and who talks to it."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster
from homeport.api.meta import Unstructured
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.app.discovery.source import SECRET, find_config, read_secret, secret_of, supports
from homeport.app.importer.source import Refused
from homeport.capi.platform import ClusterRequest
from homeport.client.dial import DialOptions
from homeport.client.protocol import Client, Key
from homeport.infra.candidate import Importer
from homeport.platforms.butler.provider.site import read_site
from homeport.providers.harvester.importer import HarvesterImporter
from homeport.providers.harvester.infracluster.connection import Connector as HarvesterConnector
from homeport.providers.nutanix.connection import Connector as NutanixConnector
from homeport.providers.nutanix.importer import NutanixImporter
from homeport.runtime.clock import Clock

Json = dict[str, Any]

NUTANIX, HARVESTER = "nutanix", "harvester"
PROVIDERS = (NUTANIX, HARVESTER)
_TYPES: dict[str, type[Any]] = {NUTANIX: NutanixCluster, HARVESTER: KubevirtCluster}


@dataclass(frozen=True, slots=True)
class Credentials:
    """One of the three names. `address` and what follows it are for Nutanix with a Secret or a Credential."""

    provider: str
    secret: str = ""
    provider_config: str = ""  # name, or namespace/name
    credential: str = ""
    address: str = ""
    port: int = 9440
    insecure: bool = False
    bundle: str = ""  # PEM


@dataclass(frozen=True, slots=True)
class Account:
    infra_cluster: Json
    secrets: list[Json]  # to be created with it
    importer: Importer


async def open_account(
    client: Client, key: Key, given: Credentials, endpoint: tuple[str, int], clock: Clock, dial: DialOptions
) -> Account:
    """Raises Refused, NoSource, ProviderError."""
    if given.provider_config:
        objects = await _from_provider_config(client, key, given, endpoint)
    else:
        objects = [_infra_cluster(key, given, await _secret_name(client, key, given), endpoint)]
    secrets = [each for each in objects if each["kind"] == "Secret"]
    [infra] = [each for each in objects if each["kind"] != "Secret"]
    importer = await open_importer(_Overlay(client, secrets), infra, clock, dial)
    return Account(infra, secrets, importer)


async def open_importer(api: Any, infra: Mapping[str, Any], clock: Clock, dial: DialOptions) -> Importer:
    """Of an infrastructure cluster, which need not be stored."""
    if infra["kind"] == NutanixCluster.__resource__.kind:
        prism = NutanixConnector(api, clock, dial)
        return await _opened(
            prism, NutanixImporter, prism.connect(msgspec.convert(infra, NutanixCluster, strict=False))
        )
    kubevirt = HarvesterConnector(api, clock, dial)
    return await _opened(
        kubevirt, HarvesterImporter, kubevirt.connect(msgspec.convert(infra, KubevirtCluster, strict=False))
    )


async def _opened(connector: Any, importer: Callable[[Any, Any], Importer], connecting: Awaitable[Any]) -> Importer:
    try:
        return importer(await connecting, connector.close)
    except BaseException:
        await connector.close()
        raise


class _Overlay:
    """The plane, as if these Secrets were already there."""

    def __init__(self, client: Client, secrets: list[Json]) -> None:
        self._client = client
        self._secrets = {Key(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in secrets}

    async def get(self, kind: Any, key: Key, **more: Any) -> Any:
        found = self._secrets.get(key) if kind == SECRET else None
        if found is None:
            return await self._client.get(kind, key, **more)
        plain = {
            name: base64.b64encode(str(text).encode()).decode()
            for name, text in (found.get("stringData") or {}).items()
        }
        return Unstructured({**found, "data": {**(found.get("data") or {}), **plain}})


async def _from_provider_config(client: Client, key: Key, given: Credentials, endpoint: tuple[str, int]) -> list[Json]:
    config = await find_config(client, given.provider_config, key.namespace)
    found = await read_site(client, supports(), config)
    objects = found.support.cluster_objects(
        found.site, ClusterRequest(name=key.name, namespace=key.namespace, endpoint=endpoint)
    )
    wanted = _TYPES[given.provider].__resource__.kind
    if wanted not in {each["kind"] for each in objects}:
        at = f"{config.metadata.namespace}/{config.metadata.name}"
        raise Refused(f"--provider-config: ProviderConfig {at} is of type {found.model.type}, not of {given.provider}")
    return list(objects)


async def _secret_name(client: Client, key: Key, given: Credentials) -> str:
    """In the namespace of the Cluster: infrastructure clusters name it there."""
    at = Key(key.namespace, given.secret)
    if given.credential:
        at = await secret_of(client, Key(key.namespace, given.credential))
        if at.namespace != key.namespace:
            raise Refused(
                f"--credential: Credential {key.namespace}/{given.credential} names Secret {at}, which is not in "
                f"namespace {key.namespace}: use --secret with one that is, or import into its namespace with -n"
            )
    await read_secret(client, at)
    return at.name


def _infra_cluster(key: Key, given: Credentials, secret: str, endpoint: tuple[str, int]) -> Json:
    kind = _TYPES[given.provider].__resource__
    spec: Json = {"controlPlaneEndpoint": {"host": endpoint[0], "port": endpoint[1]}}
    if given.provider == HARVESTER:
        spec["infraClusterSecretRef"] = {"kind": "Secret", "name": secret}
    else:
        if not given.address:
            raise Refused("--address is required with --secret or --credential: name Prism Central's host")
        central: Json = {
            "address": given.address,
            "port": given.port,
            "insecure": given.insecure,
            "credentialRef": {"kind": "Secret", "name": secret},
        }
        if given.bundle:
            central["additionalTrustBundle"] = {"kind": "String", "data": given.bundle}
        spec["prismCentral"] = central
    return {**kind.type_meta, "metadata": {"name": key.name, "namespace": key.namespace}, "spec": spec}
