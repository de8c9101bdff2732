"""ProviderConfig: its type, its credentials, and the provider's own part as it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.butler.v1alpha1 import ProviderConfig
from homeport.api.butler.v1alpha1.part import PROVIDER_TYPES, SecretRef
from homeport.api.butler.v1alpha1.providerconfig import ProviderConfigSpec, ProviderLimits, ProviderNetwork
from homeport.api.meta import wire
from homeport.platforms.butler.normal.addresses import read_address, read_network
from homeport.platforms.butler.normal.outcome import Normal, Reading

# Types whose own part is needed. Others are stored, and their status says that they are not supported yet.
WITH_PART = ("nutanix", "harvester")


@dataclass(frozen=True, slots=True)
class SecretAt:
    """A Secret. `key` '': all keys, or the provider's own default."""

    namespace: str
    name: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class ProviderModel:
    type: str
    credentials: SecretAt | None
    part: Mapping[str, Any]  # spec.<type> as it is written, in whichever spelling
    team: str  # the only team that may use it; '': all may
    network: ProviderNetwork
    limits: ProviderLimits


def normal_provider_config(config: ProviderConfig) -> Normal[ProviderModel]:
    reading, spec = Reading(), config.spec
    type_ = reading.either(("spec.provider", spec.provider), ("spec.type", spec.type)) or ""
    if not type_:
        reading.missing("spec.provider", "set the type of the provider (provider or type), for example nutanix")
    part = _part(reading, spec, type_)
    credentials = _credentials(reading, config, type_, part)
    team = _team(reading, spec)
    network = spec.network or ProviderNetwork()
    _check_network(reading, network)
    return reading.result(
        lambda: ProviderModel(type_, credentials, part, team, network, spec.limits or ProviderLimits())
    )


def _part(reading: Reading, spec: ProviderConfigSpec, type_: str) -> Mapping[str, Any]:
    blocks = {name: getattr(spec, name, None) for name in PROVIDER_TYPES}
    if type_ in WITH_PART and blocks[type_] is None:
        others = [name for name, block in blocks.items() if block is not None]
        seen = f"; only spec.{others[0]} is set" if others else ""
        reading.missing(f"spec.{type_}", f"the provider is {type_}, so its settings are needed{seen}")
    found: Mapping[str, Any] = wire(blocks.get(type_)) or {}
    return found


def _credentials(reading: Reading, config: ProviderConfig, type_: str, part: Mapping[str, Any]) -> SecretAt | None:
    own = config.metadata.namespace
    inner = part.get("credentialsRef")
    nested = _secret(own, SecretRef(**{key: str(value) for key, value in inner.items()})) if inner else None
    outer = _secret(own, config.spec.credentials_ref)
    found = reading.either(("spec.credentialsRef", outer), (f"spec.{type_}.credentialsRef", nested))
    if found is None and type_ in WITH_PART:
        reading.missing(f"spec.{type_}.credentialsRef", "name the Secret with the credentials")
    return found


def _secret(namespace: str, ref: SecretRef | None) -> SecretAt | None:
    return SecretAt(ref.namespace or namespace, ref.name, ref.key) if ref is not None and ref.name else None


def _team(reading: Reading, spec: ProviderConfigSpec) -> str:
    scope = spec.scope
    if scope is None:
        return ""
    team = scope.team_ref.name if scope.team_ref else ""
    if scope.type == "team" and not team:
        reading.missing("spec.scope.teamRef", "a ProviderConfig of scope team names the team that may use it")
    if scope.type == "platform" and team:
        reading.fault("spec.scope.teamRef", f'"{team}": scope platform is for all teams; set type: team')
    return team


def _check_network(reading: Reading, network: ProviderNetwork) -> None:
    subnet = read_network(reading, "spec.network.subnet", network.subnet) if network.subnet else None
    gateway = read_address(reading, "spec.network.gateway", network.gateway)
    if subnet and gateway is not None and gateway not in subnet:
        reading.fault("spec.network.gateway", f"{gateway} is outside spec.network.subnet ({subnet})")
    for i, server in enumerate(network.dns_servers):
        read_address(reading, f"spec.network.dnsServers[{i}]", server)
    if network.mode == "ipam" and not network.pool_refs:
        reading.missing("spec.network.poolRefs", "mode ipam takes addresses from NetworkPools: name at least one")
