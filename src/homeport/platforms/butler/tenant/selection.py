"""Which add-ons a tenant cluster gets: those of Homeport, and those of AddonDefinitions that users wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from homeport.api.butler.v1alpha1 import AddonDefinition, TenantAddon
from homeport.platforms.butler.addon.offer import ALIASES, NoOffer, Offer, find_offer
from homeport.platforms.butler.addon.render import child_name
from homeport.platforms.butler.tenant.addon import addon_requests
from homeport.platforms.butler.tenant.blueprint import AddonRequest
from homeport.platforms.butler.tenant.drawing import addons_of, default_addons
from homeport.platforms.butler.tenant.name import addon_name
from homeport.platforms.butler.tenant.scope import TenantScope
from homeport.runtime.cache import Cache
from homeport.runtime.outcome import Wait


class Selection:
    def __init__(self, definitions: Cache[AddonDefinition], tenant_addons: Cache[TenantAddon]) -> None:
        self._definitions = definitions
        self._tenant_addons = tenant_addons

    async def choose(self, scope: TenantScope) -> Wait | None:
        """A definition that is gone or wrong removes nothing: the cluster keeps its add-ons, and reports it."""
        assert scope.model is not None
        offers: dict[str, Offer] = {}
        named = addons_of(scope, scope.model)
        models = [*named, *default_addons(scope, scope.model, named)]
        for each in models:
            found = find_offer(each.provider, self._definitions)
            if isinstance(found, NoOffer):
                return Wait("UnknownAddon", f"{each.path}: {found.message}", warning=True)
            if each.source and found.definition is not None and found.definition.category == "cni":
                text = f'{each.path}: "{each.provider}" is a network plugin: name it in spec.addons.cni instead'
                return Wait("InvalidConfiguration", text, warning=True)
            offers[each.provider] = found
        requests = addon_requests(models, scope.addresses, offers)
        others = self._others(scope)
        made: list[AddonRequest] = []
        for request in requests:
            needed = request.definition.depends_on if request.definition is not None else ()
            names = [_provider_of(scope.key.name, name, requests, others) for name in needed]
            if "" in names:
                return _missing(request, needed[names.index("")])
            made.append(replace(request, depends_on=tuple(dict.fromkeys(names))))
        scope.addons = tuple(made)
        return None

    def _others(self, scope: TenantScope) -> Mapping[str, str]:
        """What TenantAddons of the cluster provide > the name of the ClusterAddon."""
        found: dict[str, str] = {}
        for each in self._tenant_addons.list(scope.key.namespace):
            if each.spec.cluster_ref.name == scope.key.name and not each.metadata.deletion_timestamp:
                child = child_name(scope.key.name, each.metadata.name)
                found |= {name: child for name in (each.spec.addon, each.metadata.name) if name}
        return found


def _provider_of(cluster: str, name: str, requests: Sequence[AddonRequest], others: Mapping[str, str]) -> str:
    """The ClusterAddon that a dependency stands for; '' if the cluster has none."""
    known = {each.addon for each in requests}
    own = next((each for each in (name, ALIASES.get(name, name)) if each in known), "")
    return addon_name(cluster, own) if own else others.get(name, "")


def _missing(request: AddonRequest, name: str) -> Wait:
    where = f"spec.addons.{request.name}" if request.name != request.addon else "clusterDefaults.defaultAddons"
    text = (
        f'{where}: AddonDefinition {request.addon} needs "{name}", which the cluster does not have: '
        "add it to spec.addons, or create a TenantAddon for it"
    )
    return Wait("DependencyNotFound", text, warning=True)
