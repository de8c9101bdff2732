"""AddonDefinition: entries of the catalogue. Those of Homeport itself are there from the start, and come back."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.addons.catalogue import catalogue
from homeport.api.butler.v1alpha1 import AddonDefinition
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Key
from homeport.platforms.butler.addon.offer import NoOffer, built_in_definition, find_offer, is_built_in
from homeport.platforms.butler.name import FIELD_MANAGER
from homeport.platforms.butler.normal.addon import normal_addon_definition
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler

_LOOK_SECONDS = 300.0


class AddonDefinitionReconciler(ObjectReconciler[AddonDefinition, Scope[AddonDefinition]]):
    controller_name = "butler-addondefinition"
    kind = AddonDefinition
    field_manager = FIELD_MANAGER
    workers = 2

    def __init__(self, manager: Manager) -> None:
        super().__init__(manager)
        for name in catalogue():
            self.controller.queue.add(Key("", name))  # each is created if it does not exist

    def load(self, obj: AddonDefinition) -> Scope[AddonDefinition] | None:
        return None if obj.metadata.deletion_timestamp else Scope(obj)

    async def gone(self, key: Key) -> Wait | None:
        entry = catalogue().get(key.name)
        if entry is not None:
            try:
                await self.client.create(built_in_definition(entry), self._write, kind=AddonDefinition.__resource__)
            except AlreadyExists:
                return None
        return None

    def phases(self, scope: Scope[AddonDefinition]) -> Sequence[Phase[Scope[AddonDefinition]]]:
        return [self._keep, self._check]

    async def _keep(self, scope: Scope[AddonDefinition]) -> Wait | None:
        """An entry of Homeport is as this release has it. One that somebody wrote is left alone."""
        entry = catalogue().get(scope.key.name)
        if entry is not None and is_built_in(scope.object):
            body = built_in_definition(entry)
            await self.client.apply(body, self._write, kind=AddonDefinition.__resource__, force=True)
        return None

    async def _check(self, scope: Scope[AddonDefinition]) -> Wait | None:
        scope.object.status.observed_generation = scope.object.metadata.generation
        normal = normal_addon_definition(scope.object)
        if normal.model is None:
            return Wait("InvalidConfiguration", normal.text, warning=True)
        for name in normal.model.depends_on:
            offer = find_offer(name, self.objects)
            if isinstance(offer, NoOffer):
                return Wait("DependencyNotFound", f"spec.dependsOn: {offer.message}", after=_LOOK_SECONDS)
        return None
