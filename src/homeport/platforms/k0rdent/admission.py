"""What objects of k0rdent's kinds may say. Nothing is changed: the stored object is the one that was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from homeport.api.k0rdent.v1beta1 import (
    AccessManagement,
    ClusterAuditPolicy,
    ClusterAuthentication,
    ClusterDeployment,
    ClusterTemplate,
    ClusterTemplateChain,
    Credential,
    Management,
    Release,
)
from homeport.capi.k0s import version as k0sversion
from homeport.client.absence import find_object
from homeport.client.errors import Cause, NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.infra.preflight.near import near
from homeport.platforms.k0rdent.access.use import users_of
from homeport.platforms.k0rdent.catalogue import CLUSTER_CHARTS, VENDORS, chart_name, is_built_in
from homeport.platforms.k0rdent.cluster.config import ClusterConfig
from homeport.platforms.k0rdent.cluster.reading import ROOT
from homeport.platforms.k0rdent.deployment.access import CONFIG_MAP
from homeport.platforms.k0rdent.deployment.address import endpoint_host
from homeport.platforms.k0rdent.deployment.check import read_values
from homeport.platforms.k0rdent.management.chain import chain_error, upgrades_of
from homeport.platforms.k0rdent.management.credential import identity_error
from homeport.platforms.k0rdent.name import MANAGEMENT, SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.template.value import check_values, unknown_values
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]
T = TypeVar("T")

_LONGEST_NAME = 52  # machines and Services add endings to it, and have 63 characters


def register(hooks: Hooks, client: Client) -> None:
    """`client` reads templates, chains and other deployments."""
    for single in (Management, AccessManagement):
        hooks.add(single, validate=_only_one)
    hooks.add(Credential, validate=_credential)
    hooks.add(ClusterTemplateChain, warn=_chain)
    judge = Judge(client)
    hooks.add(ClusterDeployment, validate=judge.deployment, warn=judge.deployment_warnings)
    hooks.add(Management, validate=judge.management, validate_delete=judge.management_deletion)
    hooks.add(AccessManagement, validate_delete=judge.access_deletion)
    for kind in (ClusterTemplate, Credential, ClusterAuthentication, ClusterAuditPolicy):
        hooks.add(kind, validate_delete=judge.deletion)
    hooks.add(Release, validate_delete=judge.release_deletion)


def _read(kind: type[T], obj: Json) -> T:
    return msgspec.convert(obj, kind, strict=False)


def _is_settled(obj: Json, old: Json | None) -> bool:
    """Nothing that is judged changed, or the object is on its way out."""
    if old is None:
        return False
    return bool(obj["metadata"].get("deletionTimestamp")) or obj.get("spec") == old.get("spec")


def _only_one(obj: Json, old: Json | None) -> list[Cause]:
    name = str(obj["metadata"].get("name") or "")
    if old is not None or name == MANAGEMENT:
        return []
    return [Cause.invalid("metadata.name", f'"{name}": the only {obj["kind"]} is named {MANAGEMENT}')]


def _credential(obj: Json, old: Json | None) -> list[Cause]:
    if _is_settled(obj, old):
        return []
    wrong = identity_error(_read(Credential, obj))
    field, _, text = wrong.partition(": ")
    return [Cause.invalid(field, text)] if wrong else []


def _chain(obj: Json, old: Json | None) -> list[str]:
    wrong = chain_error(_read(ClusterTemplateChain, obj).spec)
    return [f"the chain has no effect: {wrong}"] if wrong else []


class Judge:
    """Objects that are judged together with others."""

    def __init__(self, client: Client) -> None:
        self._client = client

    # -- ClusterDeployment -------------------------------------------------------------------------------------

    async def deployment(self, obj: Json, old: Json | None) -> list[Cause]:
        if _is_settled(obj, old):
            return []
        made = _read(ClusterDeployment, obj)
        before = None if old is None else _read(ClusterDeployment, old)
        found = list(_name(made)) if before is None else []
        template = await self._template(made)
        if template is None:
            names = [each.metadata.name for each in await self._templates(made.metadata.namespace)]
            text = f'ClusterTemplate "{made.spec.template}" not found in namespace {made.metadata.namespace}'
            where = await self._elsewhere(made) or near(made.spec.template, names)
            return [*found, Cause.invalid("spec.template", f"{text}{where}")]
        if before is not None:
            found += await self._template_change(made, before)
        if not is_built_in(template):
            return [*found, *await self._own_values(template, made)]
        if chart_name(template.spec.helm) not in CLUSTER_CHARTS:
            return found  # the controller reports what is wrong with the template
        config, wrong = read_values(template, made)
        found += [Cause.invalid(each.field, each.message) for each in wrong]
        if before is not None:
            found += await self._change(made, before, config)
        return [*found, *await self._endpoint(made)]

    async def _elsewhere(self, made: ClusterDeployment) -> str:
        """A template that the namespace could have."""
        if not await self._exists(ClusterTemplate, SYSTEM_NAMESPACE, made.spec.template):
            return ""
        return (
            f"; {SYSTEM_NAMESPACE} has it: list it in a ClusterTemplateChain there, and add a rule with this chain and "
            f"namespace {made.metadata.namespace} to spec.accessRules of AccessManagement {MANAGEMENT}"
        )

    async def _change(
        self, made: ClusterDeployment, before: ClusterDeployment, config: ClusterConfig | None
    ) -> list[Cause]:
        found: list[Cause] = []
        running = await self._config(before)
        if config is not None and running is not None:
            found += _version_change(running, config)
            found += _fixed(running, config)
        return found

    async def _template_change(self, made: ClusterDeployment, before: ClusterDeployment) -> list[Cause]:
        found = list(_data_source(made, before))
        if made.spec.template == before.spec.template:
            return found
        chains = (await self._client.list(ClusterTemplateChain, Query(namespace=made.metadata.namespace))).items
        allowed = upgrades_of(before.spec.template, chains)
        if made.spec.template not in allowed:
            shown = ", ".join(allowed) or "none"
            text = (
                f"cluster upgrade is forbidden: no ClusterTemplateChain leads from {before.spec.template} to "
                f"{made.spec.template}; available upgrades: {shown}"
            )
            found.append(Cause.forbidden("spec.template", text))
        old, new = await self._template(before), await self._template(made)
        if old is not None and new is not None and (text := _other_kind(old, new)):
            found.append(Cause.forbidden("spec.template", text))
        return found

    async def _own_values(self, template: ClusterTemplate, made: ClusterDeployment) -> list[Cause]:
        """By the schema that the template published; the controller checks again with the chart itself."""
        schema = await self._schema(template)
        wrong = check_values(schema, template.status.config, made.spec.config or {})
        return [Cause.invalid(each.field, each.message) for each in wrong]

    async def _schema(self, template: ClusterTemplate) -> bytes | None:
        name = template.status.schema_config_map_name
        if not name:
            return None
        found = await find_object(self._client, CONFIG_MAP, Key(template.metadata.namespace, name))
        if found is None:
            return None
        return str((found.get("data") or {}).get("schema") or "").encode() or None

    async def _config(self, deployment: ClusterDeployment) -> ClusterConfig | None:
        template = await self._template(deployment)
        if template is None or chart_name(template.spec.helm) not in CLUSTER_CHARTS:
            return None
        return read_values(template, deployment)[0]

    async def _endpoint(self, made: ClusterDeployment) -> list[Cause]:
        """Two API servers can't have one address."""
        host = endpoint_host(made)
        if not host or made.spec.dry_run:
            return []
        for each in (await self._client.list(ClusterDeployment, Query())).items:
            same = (each.metadata.namespace, each.metadata.name) == (made.metadata.namespace, made.metadata.name)
            if not same and not each.spec.dry_run and endpoint_host(each) == host:
                where = f"{each.metadata.namespace}/{each.metadata.name}"
                section = next(each.name for each in VENDORS if each.name in (made.spec.config or {}))
                field = f"{ROOT}.{section}.controlPlaneEndpoint.host"
                return [Cause.invalid(field, f'"{host}": ClusterDeployment {where} already uses this address')]
        return []

    async def deployment_warnings(self, obj: Json, old: Json | None) -> list[str]:
        if _is_settled(obj, old):
            return []
        made = _read(ClusterDeployment, obj)
        found = []
        if made.spec.credential and not await self._exists(Credential, made.metadata.namespace, made.spec.credential):
            found.append(f'spec.credential: Credential "{made.spec.credential}" does not exist yet')
        if made.spec.data_source:
            found.append("spec.dataSource has no effect: hosted control planes keep their data in an etcd of their own")
        template = await self._template(made)
        if template is not None and not is_built_in(template):
            schema = await self._schema(template)
            found += unknown_values(schema, template.status.config, made.spec.config or {})
        config = await self._config(made)
        if config is not None and not config.hosted and config.control_planes % 2 == 0:
            found.append(
                f"{ROOT}.controlPlaneNumber: {config.control_planes} control planes survive no more failures than "
                f"{config.control_planes - 1}: use an odd number"
            )
        return found

    # -- others ------------------------------------------------------------------------------------------------

    async def management(self, obj: Json, old: Json | None) -> list[Cause]:
        """A provider that clusters use stays."""
        if old is None or _is_settled(obj, old):
            return []
        made, before = _read(Management, obj), _read(Management, old)
        gone = {each.name for each in before.spec.providers} - {each.name for each in made.spec.providers}
        used = {each.spec.template for each in (await self._client.list(ClusterDeployment, Query())).items}
        if not gone or not used:
            return []
        lost = {name for each in gone for name in _exposed(before, each)}
        needed = {
            name
            for each in (await self._client.list(ClusterTemplate, Query())).items
            if each.metadata.name in used
            for name in each.status.providers
        }
        if missing := sorted(lost & needed):
            text = f"clusters use {', '.join(missing)}: delete their ClusterDeployments first"
            return [Cause.forbidden("spec.providers", text)]
        return []

    async def management_deletion(self, obj: Json) -> list[Cause]:
        found = (await self._client.list(ClusterDeployment, Query())).items
        if not found:
            return []
        names = ", ".join(f"{each.metadata.namespace}/{each.metadata.name}" for each in found[:3])
        return [Cause.forbidden("metadata.name", f"ClusterDeployments exist ({names}): delete them first")]

    async def access_deletion(self, obj: Json) -> list[Cause]:
        if not await self._exists(Management, "", MANAGEMENT):
            return []
        return [Cause.forbidden("metadata.name", "Management kcm exists: remove rules from spec.accessRules instead")]

    async def deletion(self, obj: Json) -> list[Cause]:
        """What a cluster uses stays, until the last machine of the cluster is gone."""
        meta = obj["metadata"]
        found = (await self._client.list(ClusterDeployment, Query(namespace=meta["namespace"]))).items
        using = users_of(obj["kind"], meta["name"], found)
        if not using:
            return []
        more = f" and {len(using) - 3} more" if len(using) > 3 else ""
        text = (
            f"ClusterDeployments use the {obj['kind']}: {', '.join(using[:3])}{more}. Delete them, or change them first"
        )
        return [Cause.forbidden("metadata.name", text)]

    async def release_deletion(self, obj: Json) -> list[Cause]:
        management = await find_object(self._client, Management, Key("", MANAGEMENT))
        if management is None:
            return []
        if management.spec.release != obj["metadata"]["name"]:
            return []
        return [
            Cause.forbidden(
                "metadata.name", "Management kcm uses the release: set its spec.release to another one first"
            )
        ]

    async def _template(self, deployment: ClusterDeployment) -> ClusterTemplate | None:
        return await find_object(
            self._client, ClusterTemplate, Key(deployment.metadata.namespace, deployment.spec.template)
        )

    async def _templates(self, namespace: str) -> Iterable[ClusterTemplate]:
        return (await self._client.list(ClusterTemplate, Query(namespace=namespace))).items

    async def _exists(self, kind: Any, namespace: str, name: str) -> bool:
        try:
            await self._client.get(kind, Key(namespace, name))
        except NotFound:
            return False
        return True


def _exposed(management: Management, provider: str) -> list[str]:
    held = management.status.components.get(provider)
    return held.exposed_providers if held is not None else []


def _name(made: ClusterDeployment) -> Iterator[Cause]:
    name = made.metadata.name
    if len(name) > _LONGEST_NAME:
        yield Cause.invalid(
            "metadata.name", f'"{name}": has {len(name)} characters, and at most {_LONGEST_NAME} are possible'
        )
    if "." in name:
        yield Cause.invalid("metadata.name", f'"{name}": must not contain dots: it is the name of the cluster')


def _other_kind(old: ClusterTemplate, new: ClusterTemplate) -> str:
    """Why a cluster of one template can't become one of the other; '' if it can."""
    if is_built_in(old) != is_built_in(new):
        return "a cluster can't change between a template of Homeport and one with another chart: create a new cluster"
    charts = [CLUSTER_CHARTS.get(chart_name(each.spec.helm)) for each in (old, new)]
    before, after = (None if each is None else each.chart for each in charts)
    if before is None or after is None or before.distribution.name == after.distribution.name:
        return ""
    names = f"{before.distribution.name} to {after.distribution.name}"
    return f"a cluster can't change from {names}: create a new cluster"


def _data_source(made: ClusterDeployment, before: ClusterDeployment) -> Iterator[Cause]:
    if made.spec.data_source != before.spec.data_source:
        yield Cause.forbidden("spec.dataSource", "immutable: the cluster keeps its data where it began")


def _version_change(running: ClusterConfig, wanted: ClusterConfig) -> Iterator[Cause]:
    old, new = k0sversion.parse(running.version), k0sversion.parse(wanted.version)  # plain ones as well
    field = f"{ROOT}.{wanted.chart.distribution.name}.version"
    step = f"from {running.version} to {wanted.version}"
    if new < old:
        yield Cause.forbidden(field, f"downgrade {step}: a cluster can only be upgraded")
    elif new.line[0] != old.line[0] or new.line[1] > old.line[1] + 1:
        yield Cause.forbidden(field, f"upgrade {step}: upgrade one minor version at a time")


def _fixed(running: ClusterConfig, wanted: ClusterConfig) -> Iterator[Cause]:
    for path, attribute in (
        (f"{wanted.chart.vendor.name}.controlPlaneEndpoint.host", "host"),
        (f"{wanted.chart.vendor.name}.controlPlaneEndpoint.port", "host_port"),
        ("clusterNetwork.pods.cidrBlocks", "pods"),
        ("clusterNetwork.services.cidrBlocks", "services"),
        ("network.provider", "network_provider"),
    ):
        if getattr(running, attribute) != getattr(wanted, attribute):
            yield Cause.forbidden(f"{ROOT}.{path}", "immutable: the cluster already uses it; create another cluster")
