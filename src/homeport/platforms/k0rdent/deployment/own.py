"""A ClusterDeployment whose template is the chart of a user: a Helm release of the plane with a Cluster in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.k0rdent.v1beta1 import ClusterTemplate
from homeport.capi.object.ownership import owner_reference
from homeport.client.errors import BadRequest, Forbidden, Invalid
from homeport.client.protocol import Client
from homeport.helm.errors import HelmError, SourceError
from homeport.helm.release.desired import Desired
from homeport.helm.release.record import Release
from homeport.machinery import condition
from homeport.machinery.chart import Chart
from homeport.platforms.k0rdent.deployment import state
from homeport.platforms.k0rdent.deployment.composition import Composition
from homeport.platforms.k0rdent.deployment.render import release_labels
from homeport.platforms.k0rdent.deployment.scope import DeploymentScope
from homeport.platforms.k0rdent.deployment.state import Finding, failed, good, progressing, unknown
from homeport.platforms.k0rdent.setting.find import Settings, find_settings
from homeport.platforms.k0rdent.setting.render import AUDIT_KEY, AUTHENTICATION_KEY, audit_name, authentication_name
from homeport.platforms.k0rdent.template.chart import TemplateCharts
from homeport.platforms.k0rdent.template.client import template_client
from homeport.platforms.k0rdent.template.release import Subject, TemplateReleases, release_of
from homeport.platforms.k0rdent.template.value import check_values, complete_values, declares
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

Json = dict[str, Any]

_GROUP = "cluster.x-k8s.io"
_UNKNOWN = (1, 30)  # a template that names no version of Kubernetes is trusted to have a new one


def subject_of(scope: DeploymentScope) -> Subject:
    return Subject(scope.namespace, scope.name, scope.name)


def client_of(client: Client, scope: DeploymentScope) -> Client:
    owners = [owner_reference(scope.object)]
    return template_client(client, release_labels(scope.object), owners, namespace=scope.namespace)


class OwnTemplates:
    def __init__(self, client: Client, clock: Clock, charts: TemplateCharts, composition: Composition) -> None:
        self._client = client
        self._clock = clock
        self._charts = charts
        self._composition = composition
        self.releases = TemplateReleases(clock)

    async def findings(self, scope: DeploymentScope, template: ClusterTemplate, more: Json) -> list[Finding]:
        """After the template was found valid. `more`: values that are added."""
        try:
            fetched = await self._charts.fetch_resolved(template)
        except SourceError as error:
            scope.look_after(60.0)
            return [failed(state.CHART, f"ClusterTemplate {template.metadata.name}: {error}"), *self._summary(scope)]
        scope.object.status.k8s_version = template.status.k8s_version
        chart, near = fetched.chart, scope.near
        line = _line(template.status.k8s_version)
        settings = await find_settings(self._client, scope.object, near.authentication, near.policy, line)
        found = [_credential(scope), *settings.findings, *_unheard(scope, chart)]
        wrong = check_values(chart.schema, chart.values, scope.object.spec.config or {})
        if wrong:
            found.append(failed(state.CHART, "; ".join(f"{each.field}: {each.message}" for each in wrong)))
        if not all(each.good for each in found):
            return [*found, *self._summary(scope)]
        values = complete_values(chart, scope.object, near.credential, {**more, **_values(scope, settings)})
        desired = release_of(subject_of(scope), fetched.files, values)
        client = client_of(self._client, scope)
        try:
            return [*found, *await self._applied(scope, client, desired, settings, chart.name)]
        except HelmError as error:
            return [*found, failed(state.CHART, str(error)), *self._summary(scope)]
        except (Invalid, Forbidden, BadRequest) as error:
            return [*found, good(state.CHART), failed(state.RELEASE, str(error)), *self._summary(scope)]

    async def _applied(
        self, scope: DeploymentScope, client: Client, desired: Desired, settings: Settings, chart: str
    ) -> list[Finding]:
        history = await self.releases.history(client, subject_of(scope))
        found = [good(state.CHART), *_renamed(history, chart)]
        if scope.object.spec.dry_run:
            objects = await self.releases.render(client, desired, history)
            scope.object.status.dry_run_diff = await self.releases.diff(client, desired, objects, history)
            return [*found, *self._summary(scope)]
        if not self.releases.is_current(desired, history):
            objects = await self.releases.render(client, desired, history)
            if wrong := _loss(scope, objects):
                return [*found, failed(state.RELEASE, wrong), *self._summary(scope)]
        await self._composition.hold_settings(scope, settings)
        outcome = await self.releases.ensure(client, desired)
        release = outcome.release
        if outcome.wait is not None:
            scope.look_after(outcome.wait.after or 5.0)
            return [*found, progressing(state.RELEASE, outcome.wait.message), *self._summary(scope)]
        if outcome.failed and release is not None:
            scope.look_after(60.0)
            return [*found, failed(state.RELEASE, release.description), *self._summary(scope)]
        return [
            *found,
            good(state.RELEASE),
            *(self._summary(scope) or [unknown(state.SUMMARY, "the Cluster is being read")]),
        ]

    def _summary(self, scope: DeploymentScope) -> list[Finding]:
        found = [state.summary_of(each, self._clock.now()) for each in scope.near.rendered]
        return sorted(found, key=lambda each: (each.good, not each.error))[:1]

    async def drop_release(self, scope: DeploymentScope) -> Wait | None:
        """What is left of the release when its Clusters are gone. Raises HelmError."""
        outcome = await self.releases.uninstall(client_of(self._client, scope), subject_of(scope))
        if outcome.wait is not None:
            return outcome.wait
        if outcome.failed and outcome.release is not None:
            return Wait("Failed", outcome.release.description, after=60.0, warning=True)
        return None


def _line(version: str) -> tuple[int, int]:
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else _UNKNOWN


def _credential(scope: DeploymentScope) -> Finding:
    name, credential = scope.object.spec.credential, scope.near.credential
    if not name:
        return good(state.CREDENTIAL, "No Credential is named")
    if credential is None:
        text = f'spec.credential: Credential "{name}" does not exist in namespace {scope.namespace}: create it'
        return failed(state.CREDENTIAL, text)
    if not credential.status.ready:
        said = condition.find(credential.status.conditions, "CredentialReady") or {}
        return failed(state.CREDENTIAL, f"Credential {name} is not ready: {said.get('message') or 'it is being read'}")
    return good(state.CREDENTIAL, "Credential is ready")


def _unheard(scope: DeploymentScope, chart: Chart) -> Iterable[Finding]:
    """Settings that the chart has no value for would silently have no effect."""
    spec = scope.object.spec
    for field, named, value, kind in (
        ("clusterAuth", spec.cluster_auth, "auth", state.AUTHENTICATION),
        ("auditPolicy", spec.audit_policy, "audit", state.AUDIT),
    ):
        if named and not declares(chart, value):
            yield failed(kind, f"spec.{field} can't reach the API server: chart {chart.name} has no value {value}")


def _values(scope: DeploymentScope, settings: Settings) -> Json:
    name, made = scope.name, {}
    if settings.authentication:
        made["auth"] = {"configSecret": {"name": authentication_name(name), "key": AUTHENTICATION_KEY}}
    if settings.audit:
        made["audit"] = {"policyRef": {"name": audit_name(name), "key": AUDIT_KEY}}
    return made


def _renamed(history: Sequence[Release], now: str) -> Iterable[Finding]:
    """For information: another chart took the place of the first one, in the same release."""
    names = [str((each.chart.get("metadata") or {}).get("name") or "") for each in history]
    before = next((each for each in reversed(names) if each and each != now), "")
    if before:
        text = f"the chart was {before} and is {now}: the release is upgraded in place"
        yield Finding(state.RENAMED, "True", state.RENAMED, text)


def _loss(scope: DeploymentScope, objects: Sequence[Json]) -> str:
    """Why the release must not be upgraded: a Cluster, with all its machines, would be deleted, or there is none."""
    wanted = {
        (each["metadata"].get("namespace"), each["metadata"]["name"])
        for each in objects
        if each["kind"] == "Cluster" and str(each["apiVersion"]).startswith(f"{_GROUP}/")
    }
    lost = [_name(each) for each in scope.near.rendered if _at(each) not in wanted]
    if not lost and scope.key not in wanted:
        return (
            f"the chart renders no Cluster {scope.key} with these values: it must have one, with the "
            "name {{ .Release.Name }}"
        )
    if not lost:
        return ""
    return (
        f"the chart no longer renders Cluster {', '.join(lost)}, which would be deleted with all its machines: change "
        "the values or the template back, or delete the ClusterDeployment if that is what you want"
    )


def _at(cluster: Cluster) -> tuple[str, str]:
    return cluster.metadata.namespace, cluster.metadata.name


def _name(cluster: Cluster) -> str:
    return f"{cluster.metadata.namespace}/{cluster.metadata.name}"
