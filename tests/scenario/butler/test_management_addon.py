"""Add-ons of the plane itself."""

from __future__ import annotations

from typing import Any

from homeport.api.butler.v1alpha1 import ManagementAddon
from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import condition
from homeport.platforms.butler.addon.guard import GUARD_NAME
from homeport.platforms.butler.name import SYSTEM_NAMESPACE
from homeport.runtime.testing import virtual
from present import present
from scenario.butler.stage import Stage, butler, tenants
from scenario.butler.test_tenant_definition import definition

DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")


async def reports(stage: Stage, name: str, reason: str, *words: str) -> ManagementAddon:
    def fits(obj: Any) -> bool:
        found = condition.find(obj.status.conditions, "Ready") or {}
        said = str(found.get("message"))
        return found.get("reason") == reason and all(word in said for word in words)

    found: ManagementAddon = await stage.plane.until(
        ManagementAddon, Key("", name), fits, 600, what=f"{reason} {words}"
    )
    return found


@virtual
async def test_an_add_on_is_installed_in_the_plane_which_says_what_cannot_run_and_is_removed() -> None:
    async with tenants(any_chart=True) as stage:
        await stage.plane.settle(5)
        await stage.have(butler("ManagementAddon", "metrics", "", {"addon": "metrics-server"}))
        made = await reports(stage, "metrics", "NoNodes", "no Nodes and can't run its Pods", "no runner for image")
        release = present(made.status.helm_release)
        assert (release.namespace, release.name, release.status) == ("kube-system", "metrics-server", "deployed")
        assert made.status.installed_version
        assert condition.is_true(made.status.conditions, "Installed")
        assert condition.find(made.status.conditions, "Healthy")
        (found,) = (await stage.client.list(DEPLOYMENT, Query(namespace="kube-system"))).items
        assert found.name == "metrics-server"
        # After a restart it is known what belongs to it.
        await stage.restart()
        await stage.client.delete(ManagementAddon, Key("", "metrics"))
        await stage.plane.gone(ManagementAddon, Key("", "metrics"), 300)
        assert (await stage.client.list(DEPLOYMENT, Query(namespace="kube-system"))).items == []
        left = (await stage.client.list(CONFIG_MAP, Query(namespace="kube-system"))).items
        assert not [each.name for each in left if "addon" in each.name]


@virtual
async def test_a_definition_of_a_user_needs_the_mark_that_only_administrators_set() -> None:
    async with tenants(any_chart=True) as stage:
        await stage.plane.settle(5)
        await stage.have(definition("house"))
        await stage.have(butler("ManagementAddon", "house", "", {"addon": "house"}))
        await reports(stage, "house", "NotAdmitted", "AddonDefinition house is for tenant clusters", "/management")
        marked = definition("ours")
        marked["metadata"]["labels"] = {"butler.butlerlabs.dev/management": "true"}
        await stage.have(marked, butler("ManagementAddon", "ours", "", {"addon": "ours"}))
        made = await reports(stage, "ours", "NoNodes")
        assert present(made.status.helm_release).namespace == "house"
        await stage.have(butler("ManagementAddon", "typo", "", {"addon": "metrics-servr"}))
        await reports(stage, "typo", "UnknownAddon", "metrics-server")
        # What is older than the check of its author is not acted on.
        await stage.plane.settle(5)
        await stage.client.delete(CONFIG_MAP, Key(SYSTEM_NAMESPACE, GUARD_NAME))
        patch = MergePatch({"spec": {"addon": "metrics-server"}})
        await stage.client.patch(ManagementAddon, Key("", "typo"), patch)
        await reports(stage, "typo", "NotAdmitted", "delete it, and create it again")
