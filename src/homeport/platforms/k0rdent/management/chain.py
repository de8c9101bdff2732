"""Chains of templates: whether each upgrade leads to a template of the chain. And which upgrades a template has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.k0rdent.v1beta1 import ClusterTemplateChain, ServiceTemplateChain
from homeport.api.k0rdent.v1beta1.chain import ChainSpec
from homeport.capi.component import Setup
from homeport.platforms.k0rdent.reconciler import KindReconciler
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope


def chain_error(spec: ChainSpec) -> str:
    """'' if the chain can be used."""
    listed = {each.name for each in spec.supported_templates}
    upgrades = [(each.name, upgrade) for each in spec.supported_templates for upgrade in each.available_upgrades]
    for name, upgrade in upgrades:
        if upgrade.name not in listed:
            return f'template "{upgrade.name}", which {name} leads to, is not in spec.supportedTemplates'
        if upgrade.name == name:
            return f"template {name} leads to itself"
    if len({bool(upgrade.version) for _, upgrade in upgrades}) > 1:
        return "some upgrades have a version and others do not: give all of them one, or none"
    return ""


def upgrades_of(template: str, chains: Iterable[ClusterTemplateChain]) -> list[str]:
    """Templates that may follow, by all valid chains."""
    return sorted(
        {
            upgrade.name
            for chain in chains
            if not chain_error(chain.spec)
            for each in chain.spec.supported_templates
            if each.name == template
            for upgrade in each.available_upgrades
        }
    )


class ChainReconciler(KindReconciler[Any]):
    condition = ""
    workers = 1

    def __init__(self, setup: Setup, kind: type[Any]) -> None:
        super().__init__(setup.manager, kind)

    def phases(self, scope: Scope[Any]) -> Sequence[Phase[Scope[Any]]]:
        return [self._judge]

    async def _judge(self, scope: Scope[Any]) -> Wait | None:
        status = scope.object.status
        status.validation_error = chain_error(scope.object.spec)
        status.valid = not status.validation_error
        status.observed_generation = scope.object.metadata.generation
        return None


def install(setup: Setup) -> None:
    for kind in (ClusterTemplateChain, ServiceTemplateChain):
        setup.manager.add(ChainReconciler(setup, kind).controller)
