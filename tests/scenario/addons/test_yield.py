"""An add-on that yields: somebody installs a release of the same name with Helm, and later uninstalls it."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.addons.catalogue import catalogue
from homeport.addons.catalogue.standin import standin_chart
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.client.protocol import Key, MergePatch, Query
from homeport.helm.release.desired import Desired
from homeport.helm.release.releases import Releases
from homeport.runtime.testing import virtual
from scenario.addons.port import Port, port
from scenario.addons.stage import DEPLOYMENT, SECRET, addon
from scenario.capi.look import says

APP = Key("default", "app")
SPACE = "flux-system"
CONTROLLER = Key(SPACE, "source-controller")
READY = says("Ready", status="True")


def helm(p: Port) -> Releases:
    """Releases as Helm keeps them, of somebody who knows nothing of add-ons."""
    return Releases(p.of("one"), p.plane.clock)


async def begin(p: Port, **spec: Any) -> None:
    await p.open("one")
    await p.start()
    await p.plane.have(addon("app", addon="flux", wait=False, **{"conflictPolicy": "Yield", **spec}))
    await p.plane.until(ClusterAddon, APP, READY, 60)


async def install(p: Port) -> None:
    """As `helm install flux ... -n flux-system` does it: without taking ownership of anything."""
    files = standin_chart(catalogue()["flux"], "2.16.4")
    outcome = await helm(p).install(Desired("flux", SPACE, files, create_namespace=True))
    assert outcome.wait is None
    assert outcome.release is not None
    assert outcome.release.status == "deployed"


async def records(p: Port, owner: str) -> list[str]:
    return [each.name for each in (await p.of("one").list(SECRET, Query(labels=f"owner={owner}"))).items]


@virtual
async def test_helm_installs_over_the_add_on_which_then_leaves_the_release_alone() -> None:
    async with port() as p:
        await begin(p)
        assert await records(p, "helm") == []
        before = (await p.of("one").get(DEPLOYMENT, CONTROLLER)).uid
        await install(p)
        found = await p.plane.until(ClusterAddon, APP, says("Ready", "flux-system/flux was installed with Helm"), 60)
        assert READY(found)
        assert found.status.version == "2.16.4"
        await p.plane.settle(quiet=120)
        assert await records(p, "homeport") == []
        assert await records(p, "helm") == ["sh.helm.release.v1.flux.v1"]
        live = await p.of("one").get(DEPLOYMENT, CONTROLLER)
        assert live.uid == before, "the objects were taken over, not created again"
        await p.client.delete(ClusterAddon, APP)
        await p.plane.gone(ClusterAddon, APP, 60)
        assert await records(p, "helm") == ["sh.helm.release.v1.flux.v1"]
        await p.of("one").get(DEPLOYMENT, CONTROLLER)


@virtual
async def test_the_add_on_comes_back_when_the_other_release_is_uninstalled() -> None:
    async with port() as p:
        await begin(p)
        await install(p)
        await p.plane.until(ClusterAddon, APP, says("Ready", "was installed with Helm"), 60)
        outcome = await helm(p).uninstall(SPACE, "flux")
        while outcome.wait is not None:
            outcome = await helm(p).uninstall(SPACE, "flux")
        newest = catalogue()["flux"].versions[0]
        await p.plane.until(ClusterAddon, APP, lambda each: each.status.version == newest and READY(each), 120)
        assert await records(p, "helm") == []
        assert len(await records(p, "homeport")) == 1
        await p.of("one").get(DEPLOYMENT, CONTROLLER)
        await p.client.delete(ClusterAddon, APP)
        await p.plane.gone(ClusterAddon, APP, 60)
        assert await records(p, "homeport") == []
        assert not (await p.of("one").list(DEPLOYMENT, Query(namespace=SPACE))).items


@virtual
@pytest.mark.parametrize(("policy", "owner"), [("Yield", "homeport"), ("Refuse", "helm")])
async def test_a_change_of_the_policy_moves_the_records(policy: str, owner: str) -> None:
    async with port() as p:
        await begin(p, conflictPolicy="Refuse" if policy == "Yield" else "Yield")
        before = (await p.of("one").get(DEPLOYMENT, CONTROLLER)).metadata["resourceVersion"]
        await p.client.patch(ClusterAddon, APP, MergePatch({"spec": {"conflictPolicy": policy}}))
        await p.plane.settle(quiet=120)
        other = "helm" if owner == "homeport" else "homeport"
        assert len(await records(p, owner)) == 1
        assert await records(p, other) == []
        assert (await p.of("one").get(DEPLOYMENT, CONTROLLER)).metadata["resourceVersion"] == before
        await p.client.delete(ClusterAddon, APP)
        await p.plane.gone(ClusterAddon, APP, 60)
        assert not (await p.of("one").list(DEPLOYMENT, Query(namespace=SPACE))).items
