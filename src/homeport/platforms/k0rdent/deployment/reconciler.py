"""ClusterDeployment: checked, applied as a Cluster with a topology, and reported on.

It decides by what it observes: never by what it wrote into its own status before.
"""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.k0rdent.v1beta1 import ClusterDeployment, ClusterTemplate
from homeport.capi.component import Setup
from homeport.capi.k0s import version as k0sversion
from homeport.capi.name import PAUSED
from homeport.capi.object.paused import has_annotation
from homeport.client.errors import BadRequest, Forbidden, Invalid
from homeport.client.protocol import Key
from homeport.platforms.k0rdent.catalogue import is_built_in
from homeport.platforms.k0rdent.cluster.config import ClusterConfig
from homeport.platforms.k0rdent.cluster.vendor import Access
from homeport.platforms.k0rdent.deployment import state
from homeport.platforms.k0rdent.deployment.access import find_bundle, find_secret
from homeport.platforms.k0rdent.deployment.address import Addresses
from homeport.platforms.k0rdent.deployment.advice import advise
from homeport.platforms.k0rdent.deployment.check import check, template_finding
from homeport.platforms.k0rdent.deployment.cleanup import Cleanup
from homeport.platforms.k0rdent.deployment.composition import Composition
from homeport.platforms.k0rdent.deployment.ipam import find_addresses, with_addresses
from homeport.platforms.k0rdent.deployment.neighbour import NeighbourView
from homeport.platforms.k0rdent.deployment.own import OwnTemplates
from homeport.platforms.k0rdent.deployment.removal import Caches, Removal
from homeport.platforms.k0rdent.deployment.scope import DeploymentScope
from homeport.platforms.k0rdent.deployment.services import DeploymentServices
from homeport.platforms.k0rdent.deployment.state import Finding, failed, good, progressing, ready_of, unknown
from homeport.platforms.k0rdent.name import CLUSTER_FINALIZER
from homeport.platforms.k0rdent.reconciler import K0rdentReconciler
from homeport.platforms.k0rdent.service.holder import SetHolder
from homeport.platforms.k0rdent.setting.find import Settings, find_settings
from homeport.platforms.k0rdent.setting.render import with_settings
from homeport.platforms.k0rdent.template.chart import TemplateCharts
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

_RESYNC_SECONDS = 600.0
_RETRY_SECONDS = 60.0


class ClusterDeploymentReconciler(K0rdentReconciler[ClusterDeployment, DeploymentScope]):
    controller_name = "k0rdent-clusterdeployment"
    kind = ClusterDeployment
    finalizer = CLUSTER_FINALIZER
    workers = 16

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)
        caches = self.informers
        self._templates = caches.get(ClusterTemplate).cache
        self._machines = caches.get(Machine).cache
        self._neighbours = NeighbourView(caches)
        self._composition = Composition(self.client, self.applier)
        self._services = DeploymentServices(SetHolder(self.client, caches, self.applier))
        charts = TemplateCharts(self.client, setup.environment.charts)
        self._own = OwnTemplates(self.client, self.clock, charts, self._composition)
        self._remotes = setup.capi.remotes
        cleanup = Cleanup(self._remotes, self.clock)
        self._removal = Removal(self.client, self.clock, self._own, cleanup, Caches.of(caches))
        self._addresses = Addresses(setup.environment.ranges)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._composition.forget(key)
        self._own.releases.forget(key)

    def load(self, obj: ClusterDeployment) -> DeploymentScope:
        return DeploymentScope(obj, self._neighbours.of(obj))

    def pause(self, scope: DeploymentScope) -> bool:
        paused = has_annotation(scope.object)
        reason, now = "Paused" if paused else "NotPaused", rfc3339(self.clock.now())
        text = f"the annotation {PAUSED} is set: nothing is changed until it is removed" if paused else ""
        scope.report(state.PAUSED, "True" if paused else "False", reason, text, now)
        return paused

    def phases(self, scope: DeploymentScope) -> Sequence[Phase[DeploymentScope]]:
        if scope.deleting:
            removal = self._removal
            return [
                removal.drop_sets,
                removal.drop_cloud_resources,
                removal.drop_services,
                removal.drop_cluster,
                removal.drop_services,
                removal.await_sets,
                removal.drop_release,
                removal.finish,
                self._release,
            ]
        return [self.hold_finalizer, self._converge]

    async def _release(self, scope: DeploymentScope) -> Wait | None:
        self._addresses.hold(self.objects)
        return await self.drop_finalizer(scope)

    def expected(self, scope: DeploymentScope, error: Exception) -> Wait | None:
        """What the API server refuses stays refused until somebody changes something."""
        if not isinstance(error, Invalid | Forbidden | BadRequest):
            return None
        scope.note(failed(state.RELEASE, str(error)), rfc3339(self.clock.now()))
        return Wait(state.FAILED, str(error), after=_RETRY_SECONDS, warning=True)

    async def _converge(self, scope: DeploymentScope) -> Wait | None:
        status = scope.object.status
        status.observed_generation = scope.object.metadata.generation
        status.available_upgrades = list(scope.near.upgrades)
        now = rfc3339(self.clock.now())
        status.dry_run_diff = ""
        for each in [*await self._findings(scope), *await self._services.converge(scope, now)]:
            scope.note(each, now)
        self._report_data_source(scope, now)
        scope.drop_absent()
        ready = ready_of(scope.findings)
        scope.timer = Wait("Resync", after=scope.seconds or _RESYNC_SECONDS, quiet=True)
        return None if ready.good else Wait(ready.reason, ready.message, warning=ready.error)

    def _report_data_source(self, scope: DeploymentScope, now: str) -> None:
        """It can't be removed from the spec, so that it must not keep a cluster from being Ready."""
        if scope.object.spec.data_source:
            text = "spec.dataSource has no effect: hosted control planes keep their data in an etcd of their own"
            scope.report(state.DATA, "False", "NotActedOn", text, now)

    async def _usable(self, scope: DeploymentScope, cluster: Cluster, summary: Finding, *, k0s: bool) -> Finding:
        """A Cluster that is ready may have Nodes that no Pod can use; one that is not may wait for an unseen cause."""
        remote = self._remotes.get(scope.key)
        if summary.good:
            said = state.nodes_of(list(remote.nodes)) if remote is not None else ""
            return progressing(state.SUMMARY, said) if said else summary
        machines = [each for each in self._machines.list(scope.namespace) if each.spec.cluster_name == scope.name]
        summary, seconds = await advise(summary, cluster, machines, remote, self.clock.now(), k0s=k0s)
        if seconds is not None:
            scope.look_after(seconds)
        return summary

    async def _findings(self, scope: DeploymentScope) -> list[Finding]:
        names = [each.metadata.name for each in self._templates.list(scope.namespace)]
        template = scope.near.template
        if template is not None and not is_built_in(template):
            finding = template_finding(scope.object, template, scope.near.available_providers, names)
            if not scope.object.spec.dry_run:
                self._addresses.hold(self.objects)
            if not finding.good:
                return [finding]
            addressing = await find_addresses(scope, self.applier)
            if not addressing.good:
                return [finding, *addressing.findings, *self._reported(scope)]
            own = await self._own.findings(scope, template, addressing.values)
            return [finding, *addressing.findings, *own]
        checked = check(scope.object, scope.near.template, scope.near.available_providers, names)
        found = list(checked.findings)
        if checked.config is None:
            return [*found, *self._reported(scope)]
        scope.object.status.k8s_version = checked.config.version.partition("+")[0]
        credential = await find_secret(self.client, scope.object, scope.near.credential, checked.config)
        bundle = await find_bundle(self.client, scope.namespace, checked.config)
        near = scope.near
        line = k0sversion.parse(checked.config.version).line
        settings = await find_settings(self.client, scope.object, near.authentication, near.policy, line)
        addressing = await find_addresses(scope, self.applier)
        found += [credential.finding, bundle.finding, *settings.findings, *addressing.findings]
        if credential.secret is None or not bundle.finding.good or not settings.good or not addressing.good:
            return [*found, *self._reported(scope)]
        access = Access(credential.secret, bundle.bundle)
        config = with_addresses(with_settings(checked.config, settings, scope.name), addressing)
        return [*found, *await self._applied(scope, config, access, settings)]

    async def _applied(
        self, scope: DeploymentScope, config: ClusterConfig, access: Access, settings: Settings
    ) -> list[Finding]:
        if scope.foreign:
            text = f"Cluster {scope.key} exists and does not belong to this ClusterDeployment: choose another name"
            return [failed(state.RELEASE, text)]
        if scope.object.spec.dry_run:
            scope.object.status.dry_run_diff = self._composition.diff(scope, config, access)
            return self._reported(scope) if scope.near.cluster is not None else []
        self._addresses.hold(self.objects)
        await self._composition.hold_settings(scope, settings)
        shown = await self._composition.hold_cluster(scope, config, access)
        if scope.near.cluster is None:
            waits = progressing(state.RELEASE, f"Cluster {scope.key} is being created")
            return [waits, unknown(state.SUMMARY)]
        scope.addons = await self._composition.hold_services(scope, config, access)
        release = good(state.RELEASE) if shown else progressing(state.RELEASE, f"Cluster {scope.key} is being changed")
        summary = state.summary_of(scope.near.cluster, self.clock.now(), config.workers)
        k0s = "k0s" in config.version
        return [release, await self._usable(scope, scope.near.cluster, summary, k0s=k0s)]

    def _reported(self, scope: DeploymentScope) -> list[Finding]:
        """A cluster that exists is reported on, whatever stands in the way of changing it."""
        if scope.near.cluster is None or scope.foreign:
            return []
        return [state.summary_of(scope.near.cluster, self.clock.now())]
