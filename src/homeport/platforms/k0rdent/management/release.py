"""Release: ready when the templates that it lists exist and are valid."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.k0rdent.v1beta1 import ProviderTemplate, Release
from homeport.capi.component import Setup
from homeport.client.protocol import Key
from homeport.platforms.k0rdent.reconciler import CheckReconciler
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope


class ReleaseReconciler(CheckReconciler[Release]):
    controller_name = "k0rdent-release"
    kind = Release
    condition = "TemplatesValid"
    workers = 1

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)
        self._templates = self.informers.get(ProviderTemplate).cache
        self.controller.map(ProviderTemplate, self.all_keys)

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
