"""ClusterTemplates that users bring: values with types, release, upgrade along a chain, dry run, removal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.k0rdent.v1beta1 import ClusterDeployment, ClusterTemplate, Management
from homeport.app.object.deployment import create_namespaces
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import condition, yaml
from homeport.platforms.k0rdent.cluster.config import read_config
from homeport.platforms.k0rdent.cluster.topology import render_topology
from homeport.platforms.k0rdent.cluster.vendor import Access
from homeport.platforms.k0rdent.nutanix.vendor import HCP
from homeport.runtime.testing import virtual
from scenario.k0rdent.stage import (
    CONFIG_MAP,
    HOSTED,
    SECRET,
    SPACE,
    Stage,
    credential,
    deployments,
    k0rdent,
    secret,
)

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["image"],
    "properties": {
        "workersNumber": {"type": "integer", "minimum": 0},
        "image": {"type": "string"},
        "clusterIdentity": {"type": "object"},
        "suffix": {"type": "string"},
        "nutanix": {"type": "object"},
    },
}
ENDPOINT = {"controlPlaneEndpoint": {"host": "10.1.1.200"}}  # the embedded plane hands it out
NOTE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-note"}
data: {image: {{ .Values.image | quote }}, identity: {{ (.Values.clusterIdentity).name | quote }}}
"""


def manifest() -> str:
    """A Cluster of the class that Homeport has, as somebody would write it by hand."""
    config, wrong = read_config(HCP, HOSTED)
    assert config is not None, wrong
    spec = render_topology(config, Access(Key(SPACE, "nutanix-cluster-creds")))
    spec["topology"]["workers"]["machineDeployments"][0]["replicas"] = "NUMBER"
    meta = {"name": "NAME"}
    text = yaml.dump({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": meta, "spec": spec})
    return text.replace("NUMBER", "{{ .Values.workersNumber }}").replace(
        "NAME", "{{ .Release.Name }}{{ .Values.suffix }}"
    )


def chart(name: str, namespace: str = SPACE, **more: str) -> list[dict[str, Any]]:
    """A ConfigMap with plain manifests, and a template that uses it."""
    values = "workersNumber: 1\nsuffix: ''\n"
    data = {"cluster.yaml": manifest(), "values.yaml": values, "values.schema.json": json.dumps(SCHEMA), **more}
    meta = {"name": name, "namespace": namespace}
    source = {"localSourceRef": {"kind": "ConfigMap", "name": name}}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data},
        k0rdent("ClusterTemplate", name, {"helm": {"chartSource": source}}, namespace),
    ]


def deployment(config: dict[str, Any], namespace: str = SPACE, **spec: Any) -> dict[str, Any]:
    return k0rdent("ClusterDeployment", "mine", {"template": "first", "config": config, **spec}, namespace)


async def valid(stage: Stage, name: str) -> ClusterTemplate:
    found: ClusterTemplate = await stage.plane.until(
        ClusterTemplate, Key(SPACE, name), lambda each: each.status.valid, 60.0, what="being valid"
    )
    return found


@virtual
async def test_a_cluster_from_plain_manifests_is_ready_is_upgraded_along_a_chain_and_goes_without_a_trace() -> None:
    async with deployments() as stage:
        await stage.have(secret(), credential(), *chart("first"), *chart("second", **{"note.yaml": NOTE}))
        template = await valid(stage, "first")
        assert template.status.config["workersNumber"] == 1
        for config, words in (
            ({"image": 5}, 'spec.config.image: Invalid value: the value is not of type "string"'),
            (
                {"image": "x", "worker": 2},
                'spec.config.worker: Invalid value: unknown field; did you mean "workersNumber"',
            ),
        ):
            with pytest.raises(Invalid) as refusal:
                await stage.have(deployment(config))
            assert words in str(refusal.value)

        # What would be applied, and nothing is.
        await stage.have(
            deployment(
                {"image": "ubuntu", "nutanix": ENDPOINT}, credential="nutanix-cluster-identity-cred", dryRun=True
            )
        )
        planned = await stage.until("mine", lambda obj: bool(obj.status.dry_run_diff), "a diff")
        assert "+kind: Cluster" in planned.status.dry_run_diff
        assert not (await stage.client.list(Cluster, Query(namespace=SPACE))).items
        await stage.patch("mine", {"dryRun": False})
        ready = await stage.ready("mine")
        assert ready.status.dry_run_diff == ""
        made: Cluster = await stage.client.get(Cluster, Key(SPACE, "mine"))
        assert made.metadata.labels["helm.toolkit.fluxcd.io/name"] == "mine"
        assert [each.kind for each in made.metadata.owner_references] == ["ClusterDeployment"]

        # A value that would rename the cluster must not delete the machines.
        await stage.patch("mine", {"config": {"suffix": "-2"}})
        await stage.says("mine", "which would be deleted with all its machines", kind="HelmReleaseReady")
        await stage.patch("mine", {"config": {"suffix": ""}})
        await stage.ready("mine")

        # Upgrade along a chain, over a restart.
        listed = [{"name": "first", "availableUpgrades": [{"name": "second"}]}, {"name": "second"}]
        await stage.have(k0rdent("ClusterTemplateChain", "mine", {"supportedTemplates": listed}))
        await stage.until("mine", lambda obj: obj.status.available_upgrades == ["second"], "an upgrade")
        await stage.patch("mine", {"template": "second"})
        await stage.restart()
        note = await stage.plane.until(CONFIG_MAP, Key(SPACE, "mine-note"), bool, 120.0, what="the new object")
        assert note["data"] == {"image": "ubuntu", "identity": "nutanix-cluster-creds"}
        upgraded = await stage.ready("mine")
        renamed = condition.find(upgraded.status.conditions, "HelmChartNameChanged") or {}
        assert renamed["message"] == "the chart was first and is second: the release is upgraded in place"

        await stage.delete("mine")
        await stage.gone("mine")
        assert not stage.vms()
        assert not (await stage.client.list(Cluster, Query(namespace=SPACE))).items
        names = [each.name for each in (await stage.client.list(SECRET, Query(namespace=SPACE))).items]
        assert not [each for each in names if each.startswith("sh.helm.release")]
        await stage.plane.gone(CONFIG_MAP, Key(SPACE, "mine-note"), 30.0)


@virtual
async def test_charts_of_teams_stay_in_their_namespace_and_sources_that_are_not_supported_say_so() -> None:
    async with deployments() as stage:
        await create_namespaces(stage.client, ("blue",))
        evil = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: evil}\n"
        evil += "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n"
        spy = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: spy}\ndata: {seen: {{ lookup "v1" "Secret" '
        spy += '"kcm-system" "nutanix-cluster-creds" | toJson | quote }}}\n'
        await stage.have(secret(), *chart("first", "blue", **{"evil.yaml": evil, "spy.yaml": spy}))
        await stage.have(deployment({"image": "ubuntu"}, "blue"))

        def refused(obj: ClusterDeployment) -> bool:
            said = condition.find(obj.status.conditions, "HelmReleaseReady") or {}
            return said.get("reason") == "Failed" and "outside of kcm-system may only have" in str(said["message"])

        await stage.plane.until(ClusterDeployment, Key("blue", "mine"), refused, 120.0, what="a refusal")
        seen = await stage.client.get(CONFIG_MAP, Key("blue", "spy"))
        assert seen["data"] == {"seen": "{}"}
        await stage.client.delete(ClusterDeployment, Key("blue", "mine"))
        await stage.plane.gone(ClusterDeployment, Key("blue", "mine"), 120.0)

        bucket = {"chartSpec": {"chart": "./charts/x", "sourceRef": {"kind": "Bucket", "name": "repo"}}}
        await stage.have(k0rdent("ClusterTemplate", "bucket", {"helm": bucket}))
        found = await stage.plane.until(
            ClusterTemplate,
            Key(SPACE, "bucket"),
            lambda each: bool(each.status.validation_error),
            30.0,
            what="an error",
        )
        assert "Bucket is not supported" in found.status.validation_error
        body = MergePatch({"data": {"Chart.yaml": "not: [valid"}})
        await stage.client.patch(CONFIG_MAP, Key("blue", "first"), body)
        await stage.plane.until(
            ClusterTemplate, Key("blue", "first"), lambda each: not each.status.valid, 30.0, what="being invalid"
        )


@virtual
async def test_a_provider_of_a_user_is_installed_with_its_template_and_removed_with_its_entry() -> None:
    async with deployments() as stage:
        before = await stage.management()
        data = {
            "Chart.yaml": "apiVersion: v2\nname: acme\nversion: 1.0.0\nannotations:\n"
            "  cluster.x-k8s.io/provider: infrastructure-acme\n  cluster.x-k8s.io/v1beta2: v1beta1\n",
            "values.schema.json": json.dumps(
                {"additionalProperties": False, "properties": {"level": {"type": "integer"}}}
            ),
            "note.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: acme}\ndata: {level: {{ .Values.level | quote }}}\n",
        }
        meta = {"name": "acme-chart", "namespace": SPACE}
        source = {"localSourceRef": {"kind": "ConfigMap", "name": "acme-chart"}}
        await stage.have(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data},
            k0rdent("ProviderTemplate", "acme-1", {"helm": {"chartSource": source}}, namespace=""),
        )
        listed = [{"name": each.name} for each in before.spec.providers]

        async def providers(*more: dict[str, Any]) -> None:
            body = MergePatch({"spec": {"providers": [*listed, *more]}})
            await stage.client.patch(Management, Key("", "kcm"), body)

        async def says(words: str) -> None:
            await stage.plane.until(
                Management,
                Key("", "kcm"),
                lambda obj: words in str(condition.find(obj.status.conditions, "Ready")),
                60.0,
                what=words,
            )

        await providers({"name": "acme", "template": "acme-1", "config": {"levle": 3}})
        await says('config.levle: unknown field; did you mean "level"?')
        await providers({"name": "acme", "template": "acme-1", "config": {"level": 3}})
        found = await stage.plane.until(
            Management,
            Key("", "kcm"),
            lambda obj: "infrastructure-acme" in obj.status.available_providers,
            60.0,
            what="the provider",
        )
        assert found.status.capi_contracts["infrastructure-acme"] == {"v1beta2": "v1beta1"}
        assert (await stage.client.get(CONFIG_MAP, Key(SPACE, "acme")))["data"] == {"level": "3"}
        await stage.restart()
        await providers()
        await stage.plane.gone(CONFIG_MAP, Key(SPACE, "acme"), 60.0)
        await stage.plane.until(
            Management, Key("", "kcm"), lambda obj: "acme" not in obj.status.components, 60.0, what="no such component"
        )
