"""Add-ons that a tenant cluster starts with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.addons.catalogue import catalogue
from homeport.api.butler.v1alpha1.butlerconfig import AddonVersions
from homeport.api.butler.v1alpha1.tenantcluster import TenantAddons
from homeport.platforms.butler.normal.outcome import Reading
from homeport.platforms.butler.normal.values import BUILT_IN, CONFIG, Choices

# Field of spec.addons, the attribute that holds it, and the program that it means if it names none; in the order of
# installation.
_ROLES = (
    ("cni", "cni", "cilium"),
    ("loadBalancer", "load_balancer", "metallb"),
    ("certManager", "cert_manager", "cert-manager"),
    ("storage", "storage", "longhorn"),
    ("ingress", "ingress", "traefik"),
)


@dataclass(frozen=True, slots=True)
class AddonModel:
    """`version` '': the one of the catalogue."""

    role: str  # the field of spec.addons
    provider: str
    version: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""  # of an add-on that the object does not name: environment, team or ButlerConfig

    @property
    def path(self) -> str:
        """Where to look if it is wrong."""
        if self.source:
            return f"clusterDefaults.defaultAddons of the {self.source}"
        return f"spec.addons.{self.role}.provider"


METALLB = AddonModel("loadBalancer", "metallb")


def read_addons(choices: Choices, given: TenantAddons | None, versions: AddonVersions) -> tuple[AddonModel, ...]:
    """A network plugin always; each of the others if the object names it and does not disable it."""
    found = []
    for role, attribute, default in _ROLES:
        block: Any = getattr(given, attribute, None)
        if (block is None and role != "cni") or getattr(block, "enabled", None) is False:
            continue
        path = f"spec.addons.{role}"
        provider = choices.given_or(f"{path}.provider", getattr(block, "provider", ""), (BUILT_IN, default))
        platform = getattr(versions, provider.replace("-", "_"), "")
        version = choices.given_or(f"{path}.version", getattr(block, "version", ""), (CONFIG, platform))
        found.append(AddonModel(role, provider, version, dict(getattr(block, "values", {}))))
    return tuple(found)


def disabled_addons(given: TenantAddons | None) -> set[str]:
    """Names that the object turns off: no default brings them back."""
    blocks = [(getattr(given, attribute, None), default) for _, attribute, default in _ROLES]
    return {getattr(each, "provider", "") or name for each, name in blocks if getattr(each, "enabled", None) is False}


def check_default_addons(reading: Reading, path: str, names: Sequence[str]) -> None:
    entries = catalogue()
    for each in names:
        if each in entries and entries[each].category == "cni":
            text = f'"{each}" is a network plugin: a cluster has one, which spec.addons.cni of the TenantCluster names'
            reading.fault(f"{path}.defaultAddons", text)
