"""What clusters of a team may be made of: versions, providers, add-ons, and parts of providers by policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from homeport.api.butler.v1alpha1 import ProviderConfig
from homeport.client.dial import is_own_host
from homeport.platforms.butler.normal.limits import Limits
from homeport.platforms.butler.normal.policy import PolicyModel, refusal, rule_for
from homeport.platforms.butler.normal.provider import ProviderModel
from homeport.platforms.butler.normal.tenant import TenantModel
from homeport.platforms.butler.normal.url import split
from homeport.platforms.butler.team.quota import Refusal

DENIED = "ProviderAccessDenied"
INVALID = "ValidationFailed"


def check_version(team: str, limits: Limits, version: str) -> Iterator[Refusal]:
    """An entry without a patch version allows all patch versions."""
    if limits.versions and not any(version == each or version.startswith(f"{each}.") for each in limits.versions):
        allowed = ", ".join(limits.versions)
        yield Refusal(INVALID, "spec.kubernetesVersion", f'"{version}": team {team} allows {allowed}')


def check_addons(team: str, limits: Limits, model: TenantModel) -> Iterator[Refusal]:
    for each in model.addons:
        wrong = addon_refusal(team, limits, each.provider)
        if wrong and not (each.role == "cni" and each.provider not in limits.denied_addons):
            yield Refusal(INVALID, f"spec.addons.{each.role}", wrong)
    for name in model.extra_addons:
        if wrong := addon_refusal(team, limits, name):
            yield Refusal(INVALID, "spec.addons", wrong)


def addon_refusal(team: str, limits: Limits, addon: str) -> str:
    """Why a team may not have an add-on; '' if it may."""
    if addon in limits.denied_addons:
        return f'add-on "{addon}" is denied for team {team}'
    if limits.addons and addon not in limits.addons:
        return f'add-on "{addon}" is not allowed for team {team}; allowed are {", ".join(limits.addons)}'
    return ""


def chart_refusal(team: str, limits: Limits, chart: str, repository: str) -> str:
    """Why a team may not have a chart that it names itself; '' if it may. The name of a chart proves nothing about
    what is in it, so a list of allowed add-ons allows none."""
    if chart in limits.denied_addons:
        return f'spec.helm.chart: add-on "{chart}" is denied for team {team}'
    if limits.addons:
        allowed = ", ".join(limits.addons)
        return f"spec.helm: team {team} may have add-ons of the catalogue alone: set spec.addon to one of {allowed}"
    if is_own_host(host := split(repository).hostname or ""):
        return (
            f"spec.helm.repository: {host} is the management plane's own host or network: name a repository elsewhere"
        )
    return ""


def check_access(team: str, limits: Limits, config: ProviderConfig, model: ProviderModel) -> Iterator[Refusal]:
    """Whether the team may use the provider. `team` '': a cluster without a team."""
    name = f"{config.metadata.namespace}/{config.metadata.name}"
    if model.team and model.team != team:
        who = f"team {team}" if team else "clusters without a team"
        message = f'"{name}" belongs to team {model.team}: {who} may not use it'
        yield Refusal(DENIED, "spec.providerConfigRef", message)
    allowed = limits.providers
    if allowed and not {name, config.metadata.name, model.type} & set(allowed):
        message = f'"{name}" ({model.type}) is not allowed for team {team}; allowed are {", ".join(allowed)}'
        yield Refusal(DENIED, "spec.providerConfigRef", message)


# Dimension of a policy > the spellings of that choice, for each type of provider.
_CHOICES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "nutanix": {
        "image": ("image", "imageUUID"),
        "network": ("subnet", "subnetUUID"),
        "cluster": ("cluster", "clusterUUID"),
        "storageContainer": ("storageContainer", "storageContainerUUID"),
    },
    "harvester": {
        "image": ("imageName",),
        "network": ("networkName",),
        "storageContainer": ("storageClassName",),
    },
}


def check_policies(
    policies: Iterable[PolicyModel], team: str, model: TenantModel, provider: ProviderModel
) -> Iterator[Refusal]:
    """Choices of the cluster, or of the ProviderConfig where the cluster makes none."""
    known = list(policies)
    for dimension, spellings in _CHOICES.get(provider.type, {}).items():
        found = rule_for(known, dimension, team, model.environment, provider.type)
        if found is None:
            continue
        field, wanted = _choice(model, provider, spellings)
        if dimension == "image" and (ref := next((each.os.image_ref for each in model.pools if each.os.image_ref), "")):
            field, wanted = "spec.workers.machineTemplate.os.imageRef", [ref]
        if wrong := refusal(*found, wanted):
            yield Refusal(INVALID, field, wrong)


def _choice(model: TenantModel, provider: ProviderModel, spellings: tuple[str, ...]) -> tuple[str, list[str]]:
    own: Mapping[str, Any] = model.overrides.get(provider.type) or {}
    for each in spellings:
        if own.get(each):
            return f"spec.infrastructureOverride.{provider.type}.{each}", _names(own[each])
    found = [name for each in spellings for name in _names(provider.part.get(each))]
    return "spec.providerConfigRef", found


def _names(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [str(each) for each in (value.get("name"), value.get("uuid")) if each]
    return [str(value)] if value else []
