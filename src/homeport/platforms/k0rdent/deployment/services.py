"""The services of a ClusterDeployment: its ServiceSet, and what all ServiceSets of the cluster report."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.k0rdent.v1beta1.service import ServiceState
from homeport.api.meta import wire
from homeport.platforms.k0rdent.deployment.render import diff
from homeport.platforms.k0rdent.deployment.scope import DeploymentScope
from homeport.platforms.k0rdent.deployment.state import (
    SERVICES,
    Finding,
    addons_of,
    failed,
    good,
    progressing,
    unknown,
)
from homeport.platforms.k0rdent.service.holder import SetHolder, current, of_cluster, render_set, states_of
from homeport.platforms.k0rdent.service.name import set_key
from homeport.platforms.k0rdent.service.state import is_done, settled, told

REFERENCES = "ServicesReferencesValidation"
DEPENDENCIES = "ServicesDependencyValidation"


class DeploymentServices:
    def __init__(self, holder: SetHolder) -> None:
        self._holder = holder

    async def converge(self, scope: DeploymentScope, now: str) -> list[Finding]:
        """Also where the cluster itself can't be changed: what is in it is kept."""
        obj, key = scope.object, set_key(scope.namespace, scope.name)
        spec = obj.spec.service_spec
        made = self._holder.plan(spec, key, self._holder.shelf(scope.namespace), now)
        held = self._holder.sets.get(key)
        if obj.spec.dry_run:
            if spec.services:
                before = None if held is None else {**wire(held), "kind": "ServiceSet"}
                changes = diff(before, render_set(obj, scope.key, spec, made))
                obj.status.dry_run_diff = "\n".join(filter(None, (obj.status.dry_run_diff, changes)))
        elif not scope.foreign:
            await self._holder.hold(obj, scope.key, spec, made, scope.key)
        obj.status.services_upgrade_paths = made.upgrades
        own = states_of(held, made, now)
        more = [
            each
            for other in of_cluster(self._holder.sets.list(scope.namespace), scope.key)
            if other.metadata.name != key.name
            for each in other.status.services
        ]
        obj.status.services = settled([*own, *more], obj.status.services)
        done = current(held, made) or obj.spec.dry_run
        found = _checks(scope, made.references, made.dependencies)
        if obj.spec.dry_run and scope.near.cluster is None:
            return found
        return [*found, self._count(scope, [*own, *more], done)]

    def _count(self, scope: DeploymentScope, states: Sequence[ServiceState], settled: bool) -> Finding:
        if scope.near.cluster is None and not scope.near.rendered:
            return unknown(SERVICES, "")
        ready, total, said = addons_of(scope.near.addons, scope.addons)
        ready += sum(is_done(each) for each in states)
        total += len(states)
        if text := told(states):
            said.append(text)
        elif not settled:
            said.append("services are being changed")
        if not said:
            return good(SERVICES, f"{ready}/{total}")
        return progressing(SERVICES, f"{ready}/{total}: {'; '.join(said)}")


def _checks(scope: DeploymentScope, references: Sequence[str], dependencies: Sequence[str]) -> list[Finding]:
    """Conditions that only ClusterDeployments with services have."""
    held = {str(each["type"]) for each in scope.object.status.conditions}
    found = []
    for kind, wrong in ((REFERENCES, references), (DEPENDENCIES, dependencies)):
        if wrong:
            found.append(failed(kind, "; ".join(wrong)))
        elif scope.object.spec.service_spec.services or kind in held:
            found.append(good(kind))
    return found
