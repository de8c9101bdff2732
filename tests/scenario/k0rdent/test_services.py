"""Services in a simulated cluster: order, values, upgrades along a chain, conflicts, removal."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.k0rdent.v1beta1 import (
    ClusterDeployment,
    MultiClusterService,
    ServiceSet,
    ServiceTemplate,
)
from homeport.api.meta import Unstructured
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from scenario.k0rdent.stage import (
    CONFIG_MAP,
    SPACE,
    Stage,
    credential,
    deployments,
    hosted,
    is_ready,
    k0rdent,
    secret,
)

NAME = "nutanix-hcp-demo"
OBJECT = """apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-settings"}
data:
  version: "{{ .Chart.Version }}"
  color: "{{ .Values.color }}"
  cluster: "{{ .Values.cluster }}"
  password: "{{ .Values.password }}"
"""


def chart(name: str, version: str, text: str = OBJECT) -> dict[str, Any]:
    files = {
        "Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\ndescription: A small web server\n",
        "values.yaml": "color: blue\ncluster: none\npassword: none\n",
        "settings.yaml": text,
    }
    key = f"{name}-{version.replace('.', '-')}"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key, "namespace": SPACE}, "data": files}


def template(name: str, version: str = "1.0.0") -> dict[str, Any]:
    key = f"{name}-{version.replace('.', '-')}"
    source = {"localSourceRef": {"kind": "ConfigMap", "name": key}}
    return k0rdent("ServiceTemplate", key, {"helm": {"chartSource": source}, "version": version})


def service(name: str, of: str = "web-1-0-0", **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "apps", "template": of, **more}


async def settings(client: Client, name: str) -> dict[str, str]:
    found: Unstructured = await client.get(CONFIG_MAP, Key("apps", f"{name}-settings"))
    return dict(found["data"])


async def repaired(client: Client, name: str, **data: str) -> None:
    """Returns when the object has these data again."""
    query = Query(namespace="apps", fields=f"metadata.name={name}-settings")
    async with asyncio.timeout(600.0), client.watch(CONFIG_MAP, query, initial_events=True) as events:
        async for event in events:
            if event.type != "BOOKMARK" and data.items() <= (event.object.get("data") or {}).items():
                return


async def absent(client: Client, name: str) -> bool:
    try:
        await settings(client, name)
    except NotFound:
        return True
    return False


def states(obj: ClusterDeployment | MultiClusterService | ServiceSet) -> dict[str, tuple[str, str]]:
    return {each.name: (each.state, each.template) for each in obj.status.services}


SETS = "WaitingForServiceSetsDeletion"


def deletion_reason(obj: ClusterDeployment) -> str:
    return str((condition.find(obj.status.conditions, "Deleting") or {}).get("reason"))


async def have_services(stage: Stage, *services: dict[str, Any]) -> None:
    await stage.patch(NAME, {"serviceSpec": {"services": list(services)}})


async def deployed(stage: Stage, **templates: str) -> ClusterDeployment:
    """Once the services are deployed from these templates, and the cluster is Ready."""
    wanted = {name: ("Deployed", of) for name, of in templates.items()}
    return await stage.until(
        NAME, lambda obj: states(obj) == wanted and is_ready(obj), f"having services {wanted}", 1200.0
    )


CHAIN = k0rdent(
    "ServiceTemplateChain",
    "web",
    {
        "supportedTemplates": [
            {"name": "web-1-0-0", "availableUpgrades": [{"name": "web-1-1-0"}]},
            {"name": "web-1-1-0", "availableUpgrades": [{"name": "web-2-0-0"}]},
            {"name": "web-2-0-0"},
        ]
    },
)
VERSIONS = ("1.0.0", "1.1.0", "2.0.0")


@virtual
async def test_services_are_installed_in_order_upgraded_along_their_chain_and_removed() -> None:
    async with deployments() as stage:
        await stage.have(secret(), credential(), *(chart("web", each) for each in VERSIONS), CHAIN)
        await stage.have(*(template("web", each) for each in VERSIONS))
        await stage.have(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "login", "namespace": SPACE},
                "stringData": {"values.yaml": "password: hidden\ncolor: red\n"},
            }
        )
        body = hosted(workersNumber=1)
        body["spec"]["serviceSpec"] = {
            "services": [
                service("back", dependsOn=[{"name": "front", "namespace": "apps"}]),
                service(
                    "front",
                    templateChain="web",
                    values="color: green\ncluster: '{{ .Cluster.metadata.name }}'\n",
                    valuesFrom=[{"kind": "Secret", "name": "login"}],
                ),
            ]
        }
        await stage.have(body)
        made = await deployed(stage, front="web-1-0-0", back="web-1-0-0")
        found: ServiceTemplate = await stage.client.get(ServiceTemplate, Key(SPACE, "web-1-0-0"))
        assert (found.status.valid, found.status.chart_version) == (True, "1.0.0")
        services = condition.find(made.status.conditions, "ServicesInReadyState") or {}
        assert services["message"] == "3/3"
        [paths] = [each for each in made.status.services_upgrade_paths if each.name == "front"]
        assert [each.upgrade_paths for each in paths.available_upgrades] == [["web-1-1-0", "web-2-0-0"]]
        inside = await stage.inside(NAME)
        assert await settings(inside, "front") == {
            "version": "1.0.0",
            "color": "green",
            "cluster": NAME,
            "password": "hidden",
        }
        own: ServiceSet = await stage.client.get(ServiceSet, Key(SPACE, NAME))
        assert [each.name for each in own.spec.services] == ["front", "back"]
        assert "hidden" not in str(own)

        # Along the chain, one step after the other; across a restart of the controllers.
        await have_services(stage, service("front", "web-2-0-0", templateChain="web"), service("back"))
        await stage.restart()
        await deployed(stage, front="web-2-0-0", back="web-1-0-0")
        assert (await settings(inside, "front"))["version"] == "2.0.0"
        addon: ClusterAddon = await stage.client.get(ClusterAddon, Key(SPACE, f"{NAME}.apps.front"))
        assert addon.status.release.revision == 3

        # A version that can't be installed is reported, and can be taken back.
        await stage.have(chart("web", "3.0.0", '{{ fail "out of order" }}'), template("web", "3.0.0"))
        await have_services(stage, service("front", "web-3-0-0"), service("back"))
        await stage.says(NAME, "apps/front: Failed", "out of order", kind="ServicesInReadyState")
        assert (await settings(inside, "front"))["version"] == "2.0.0"
        await have_services(stage, service("front", "web-2-0-0"), service("back"))
        await deployed(stage, front="web-2-0-0", back="web-1-0-0")

        # What others change is repaired if the user wants that.
        await stage.patch(NAME, {"serviceSpec": {"syncMode": "ContinuousWithDriftDetection"}})
        await stage.plane.until(
            ClusterAddon, Key(SPACE, f"{NAME}.apps.back"), lambda obj: obj.spec.sync_policy == "Continuous", 60.0
        )
        await deployed(stage, front="web-2-0-0", back="web-1-0-0")
        changed = MergePatch({"data": {"color": "pink"}})
        await inside.patch(CONFIG_MAP, Key("apps", "back-settings"), changed)
        await repaired(inside, "back", color="blue")

        # A MultiClusterService with a higher priority takes the service over as it is, without a new installation.
        before = await inside.get(CONFIG_MAP, Key("apps", "back-settings"))
        label = MergePatch({"metadata": {"labels": {"env": "prod"}}})
        await stage.client.patch(ClusterDeployment, Key(SPACE, NAME), label)
        shared = {"priority": 200, "services": [service("back", "web-1-1-0")]}
        spec = {"clusterSelector": {"matchLabels": {"env": "prod"}}, "serviceSpec": shared}
        await stage.have(k0rdent("MultiClusterService", "shared", spec, ""))
        await stage.plane.until(
            MultiClusterService,
            Key("", "shared"),
            lambda obj: [each.deployed for each in obj.status.matching_clusters] == [True],
            600.0,
            what="being deployed",
        )
        after = await inside.get(CONFIG_MAP, Key("apps", "back-settings"))
        assert (after.uid, after["data"]["version"]) == (before.uid, "1.1.0")
        await stage.says(NAME, "apps/back: Failed: MultiClusterService shared", kind="ServicesInReadyState")
        await stage.client.delete(MultiClusterService, Key("", "shared"))
        await deployed(stage, front="web-2-0-0", back="web-1-0-0")

        # Removed services leave the cluster, and those that are left go before the cluster does.
        await have_services(stage, service("back"))
        await deployed(stage, back="web-1-0-0")
        assert await absent(inside, "front")
        await stage.delete(NAME)
        removing = await stage.until(NAME, lambda obj: deletion_reason(obj) == SETS, SETS, 60.0)
        assert "apps/back" in str((condition.find(removing.status.conditions, "Deleting") or {})["message"])
        await stage.gone(NAME)
        assert not (await stage.client.list(ServiceSet, Query(namespace=SPACE))).items
        assert not (await stage.client.list(ClusterAddon, Query(namespace=SPACE))).items


@virtual
async def test_charts_without_hooks_and_definitions_and_objects_that_others_may_change() -> None:
    async with deployments() as stage:
        body = hosted(workersNumber=1)
        options = {"skipCRDs": True, "disableHooks": True}
        body["spec"]["serviceSpec"] = {
            "syncMode": "ContinuousWithDriftDetection",
            "driftIgnore": [{"version": "v1", "kind": "ConfigMap", "name": "web-settings", "namespace": "apps"}],
            "services": [service("web", helmOptions=options), service("other")],
        }
        hook = OBJECT.replace("-settings", "-hook").replace(
            "metadata: {", 'metadata: {annotations: {"helm.sh/hook": pre-install}, '
        )
        files = chart("web", "1.0.0")
        files["data"]["hook.yaml"] = hook
        await stage.have(files, template("web"), secret(), credential(), body)
        await stage.ready(NAME)
        inside = await stage.inside(NAME)
        names = {each.name for each in (await inside.list(CONFIG_MAP, Query(namespace="apps"))).items}
        assert {"web-settings", "other-settings", "other-hook"} <= names
        assert "web-hook" not in names
        addons = {each.spec.release_name: each.spec for each in (await stage.client.list(ClusterAddon)).items}
        assert (addons["web"].skip_crds, addons["web"].disable_hooks) == (True, True)
        assert (addons["other"].skip_crds, addons["other"].disable_hooks) == (False, False)
        for name in ("web", "other"):
            await inside.patch(CONFIG_MAP, Key("apps", f"{name}-settings"), MergePatch({"data": {"color": "mauve"}}))
        await repaired(inside, "other", color="blue")
        await stage.plane.settle(600)
        assert (await settings(inside, "web"))["color"] == "mauve"
