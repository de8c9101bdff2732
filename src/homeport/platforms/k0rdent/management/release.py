"""Release: ready when the templates that it lists exist and are valid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.k0rdent.v1beta1 import ProviderTemplate, Release
from homeport.capi.component import Setup
from homeport.client.protocol import Key
from homeport.platforms.k0rdent.name import FIELD_MANAGER
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler


class ReleaseReconciler(ObjectReconciler[Release, Scope[Release]]):
    controller_name = "k0rdent-release"
    kind = Release
    condition = "TemplatesValid"
    waits_are_events = False
    field_manager = FIELD_MANAGER
    workers = 1

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)
        self._templates = self.informers.get(ProviderTemplate).cache
        self.controller.map(ProviderTemplate, self._all)

    def _all(self, obj: Any) -> Iterable[Key]:
        del obj
        return [Key("", each.metadata.name) for each in self.objects]

    def load(self, obj: Release) -> Scope[Release] | None:
        return None if obj.metadata.deletion_timestamp else Scope(obj)

    def phases(self, scope: Scope[Release]) -> Sequence[Phase[Scope[Release]]]:
        return [self._judge]

    async def _judge(self, scope: Scope[Release]) -> Wait | None:
        spec, status = scope.object.spec, scope.object.status
        status.observed_generation = scope.object.metadata.generation
        names = [spec.kcm.template, spec.capi.template, *(each.template for each in spec.providers)]
        if spec.regional is not None:
            names.append(spec.regional.template)
        found = {name: self._templates.get(Key("", name)) for name in names if name}
        missing = sorted(name for name, each in found.items() if each is None)
        now = rfc3339(self.clock.now())
        said = f"ProviderTemplates do not exist: {', '.join(missing)}" if missing else ""
        scope.report(
            "TemplatesCreated", "False" if missing else "True", "Failed" if missing else "Succeeded", said, now
        )
        invalid = sorted(name for name, each in found.items() if each is not None and not each.status.valid)
        status.ready = not missing and not invalid
        if missing:
            return Wait("Failed", said)
        return Wait("Failed", f"ProviderTemplates are not valid: {', '.join(invalid)}") if invalid else None


def install(setup: Setup) -> None:
    setup.manager.add(ReleaseReconciler(setup).controller)
