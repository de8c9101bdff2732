"""Services of several clusters: ServiceSets, their ClusterAddons, copies, conflicts, pause and removal.

The add-on controller does not run: the tests report for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from homeport.addons.definition import definitions as addon_definitions
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.k0rdent.v1beta1 import ClusterDeployment, MultiClusterService, ServiceSet, ServiceTemplate
from homeport.app.object.deployment import create_namespaces
from homeport.builtin.install import install as install_builtin
from homeport.capi.component import Setup
from homeport.capi.definition.kind import definitions as capi_definitions
from homeport.capi.environment import Environment
from homeport.client.errors import Invalid, Unavailable
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.machinery import condition
from homeport.platforms.k0rdent.definition import definitions
from homeport.platforms.k0rdent.flux import definitions as source_definitions
from homeport.platforms.k0rdent.service.admission import register
from homeport.platforms.k0rdent.service.install import install
from homeport.platforms.k0rdent.service.name import PAUSED_ANNOTATION, set_key
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, plane, virtual
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks
from scenario.k0rdent.stage import CONFIG_MAP, SECRET, SPACE, k0rdent
from scenario.k0rdent.test_services import chart, template

WRITE = Write(field_manager="test")
CLUSTERS = {"one": "prod", "two": "test", "three": "prod"}


class Lossy:
    """Every write is carried out, and the first reply about each object is lost: as if we were killed right then."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.lost: set[tuple[str, str]] = set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        return partial(self._write, name, found) if name in ("create", "apply", "patch", "delete") else found

    async def _write(self, verb: str, work: Any, *given: Any, **options: Any) -> Any:
        made = await work(*given, **options)
        what = given[0]["metadata"]["name"] if verb in ("create", "apply") else str(given[1])
        mark = (f"{verb} {options.get('subresource', '')}", what)
        if mark not in self.lost and "/events" not in what:
            self.lost.add(mark)
            raise Unavailable("the reply is lost")
        return made


@asynccontextmanager
async def services_plane(wrap: Callable[[Client], Any] = lambda client: client) -> AsyncIterator[Plane]:
    crds = [*definitions(), *source_definitions(), *addon_definitions(), *capi_definitions()]
    async with plane(crds=crds) as p:
        hooks = Hooks()
        register(hooks, p.client)
        install_hooks(hooks, p.server)
        await create_namespaces(p.client, (SPACE, "team"))
        p.manager = Manager(wrap(p.server.client()), clock=p.clock)
        install_builtin(p.server, p.manager)
        install(Setup(p.manager, Environment(p.manager.client), ()))
        await p.start()
        yield p


def cluster(name: str, namespace: str = "team", **labels: str) -> dict[str, Any]:
    return k0rdent("ClusterDeployment", name, {"template": "any", "config": {}}, namespace, labels=labels)


async def have_clusters(p: Plane, *bodies: dict[str, Any]) -> None:
    """ClusterDeployments with their Clusters, as their controller would make them."""
    for body in bodies:
        [made] = await p.have(body)
        owner = {"apiVersion": body["apiVersion"], "kind": body["kind"], "name": made.name, "uid": made.uid}
        meta = {"name": made.name, "namespace": made.namespace, "ownerReferences": [owner]}
        await p.have(
            {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": meta, "spec": {"paused": True}}
        )


def multi(name: str, *services: dict[str, Any], **more: Any) -> dict[str, Any]:
    spec = {"clusterSelector": {"matchLabels": {"env": "prod"}}, **more}
    spec["serviceSpec"] = {**spec.get("serviceSpec", {}), "services": list(services)}
    return k0rdent("MultiClusterService", name, spec, "")


def web(name: str = "web", **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "apps", "template": "web-1-0-0", **more}


async def addon(p: Plane, owner: Key, service: str = "web") -> ClusterAddon:
    key = Key(owner.namespace, f"{owner.name}.apps.{service}")
    found: ClusterAddon = await p.until(ClusterAddon, key, lambda obj: True, 300.0, what="existing")
    return found


async def report(p: Plane, found: ClusterAddon, status: str = "True", reason: str = "Ready", message: str = "") -> None:
    """As the add-on controller would."""
    fresh: ClusterAddon = await p.client.get(ClusterAddon, Key(found.metadata.namespace, found.metadata.name))
    entry = {"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": fresh.metadata.generation}
    conditions = [
        {"type": "Ready", "status": status, "reason": reason, "message": message, **entry},
        {"type": "Installed", "status": "True", "reason": "Applied", "message": "", **entry},
    ]
    body = {"status": {"observedGeneration": fresh.metadata.generation, "conditions": conditions, "phase": "Installed"}}
    key = Key(fresh.metadata.namespace, fresh.metadata.name)
    await p.client.patch(ClusterAddon, key, MergePatch(body), WRITE, subresource="status")


def message(obj: Any, kind: str) -> str:
    return str((condition.find(obj.status.conditions, kind) or {}).get("message"))


async def counted(p: Plane, name: str, text: str) -> MultiClusterService:
    found: MultiClusterService = await p.until(
        MultiClusterService,
        Key("", name),
        lambda obj: message(obj, "ClusterInReadyState").startswith(text),
        300.0,
        what=f"counting {text}",
    )
    return found


async def test_a_multi_cluster_service_reaches_the_clusters_that_match_and_leaves_those_that_no_longer_do() -> None:
    async with services_plane() as p:
        login = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": SPACE}}
        await p.have({**login, "stringData": {"values.yaml": "password: hidden"}})
        await p.have(chart("web", "1.0.0"), template("web"))
        await have_clusters(p, *(cluster(name, env=env) for name, env in CLUSTERS.items()))
        await p.have(multi("web", web(valuesFrom=[{"kind": "Secret", "name": "login"}])))
        await counted(p, "web", "0/2")
        one, two = set_key("team", "one", "web"), set_key("team", "two", "web")
        made = await addon(p, one)
        # What is in kcm-system is copied to where the add-on can read it.
        assert made.spec.chart is not None
        assert made.spec.chart.secret_ref is not None
        held = await p.client.get(SECRET, Key("team", made.spec.chart.secret_ref.name))
        assert "Chart.yaml" in held["data"]
        values = made.spec.values_from[0]
        assert values.secret_ref is not None
        assert values.key == "*"
        await p.client.get(SECRET, Key("team", values.secret_ref.name))
        await report(p, made)
        found = await counted(p, "web", "1/2")
        assert [(each.name, each.deployed) for each in found.status.matching_clusters] == [
            ("one", True),
            ("three", False),
        ]
        await report(p, await addon(p, set_key("team", "three", "web")), "False", "ReleaseFailed", "hook failed")
        found = await counted(p, "web", "1/2: team/three: apps/web: Failed: hook failed")
        assert [each.state for each in found.status.services] == ["Failed"]

        await p.client.patch(
            ClusterDeployment, Key("team", "one"), MergePatch({"metadata": {"labels": {"env": "test"}}}), WRITE
        )
        await p.gone(ServiceSet, one, 30.0)
        await p.client.delete(MultiClusterService, Key("", "web"))
        await p.gone(MultiClusterService, Key("", "web"), 30.0)
        left = (await p.client.list(ClusterAddon, Query())).items
        assert [each.metadata.name for each in left] == []
        assert two.name != one.name


@virtual
async def test_services_arrive_and_leave_though_the_reply_to_every_write_is_lost_once() -> None:
    lossy: list[Lossy] = []

    def wrap(client: Client) -> Lossy:
        lossy.append(Lossy(client))
        return lossy[-1]

    async with services_plane(wrap) as p:
        await p.have(chart("web", "1.0.0"), template("web"))
        await have_clusters(p, cluster("one", env="prod"))
        await p.have(multi("web", web(), web("more", dependsOn=[{"name": "web", "namespace": "apps"}])))
        key = set_key("team", "one", "web")
        await report(p, await addon(p, key))
        await report(p, await addon(p, key, "more"))
        await counted(p, "web", "1/1")
        await p.client.delete(MultiClusterService, Key("", "web"))
        await p.gone(MultiClusterService, Key("", "web"), 600.0)
        assert not (await p.client.list(ServiceSet, Query())).items
        assert not (await p.client.list(ClusterAddon, Query())).items
        lost = {verb.split()[0] for each in lossy for verb, _ in each.lost}
        assert lost >= {"apply", "patch", "delete"}


async def test_of_two_owners_of_one_service_the_higher_priority_has_it_and_the_other_one_says_so() -> None:
    async with services_plane() as p:
        await p.have(chart("web", "1.0.0"), template("web"))
        await have_clusters(p, cluster("one", SPACE, env="prod"))
        await p.have(multi("low", web()))
        low, high = set_key(SPACE, "one", "low"), set_key(SPACE, "one", "high")
        first = await addon(p, low)
        assert first.spec.conflict_policy == "Refuse"
        await report(p, first)
        await counted(p, "low", "1/1")
        await p.have(multi("high", web(), serviceSpec={"priority": 200}))
        second = await addon(p, high)
        assert second.spec.conflict_policy == "Adopt"
        found = await counted(p, "low", "0/1: kcm-system/one: apps/web: Failed: MultiClusterService high has a service")
        assert "priority 200" in message(found, "ClusterInReadyState")
        await p.gone(ClusterAddon, Key(SPACE, first.metadata.name), 30.0)
        await report(p, second)
        await counted(p, "high", "1/1")
        await p.client.delete(MultiClusterService, Key("", "high"))
        await addon(p, low)


async def test_a_service_set_that_is_paused_changes_nothing_until_it_is_resumed() -> None:
    async with services_plane() as p:
        await p.have(chart("web", "1.0.0"), template("web"))
        await have_clusters(p, cluster("one", SPACE, env="prod"))
        await p.have(multi("web", web()))
        key = set_key(SPACE, "one", "web")
        made = await addon(p, key)
        await report(p, made)
        await counted(p, "web", "1/1")
        paused = MergePatch({"metadata": {"annotations": {PAUSED_ANNOTATION: "true"}}})
        await p.client.patch(ServiceSet, key, paused, WRITE)
        at = Key(SPACE, made.metadata.name)
        await p.until(ClusterAddon, at, lambda obj: obj.spec.paused, 30.0, what="being paused")
        found: ServiceSet = await p.until(
            ServiceSet, key, lambda obj: obj.status.provider.suspended, 30.0, what="being suspended"
        )
        assert (condition.find(found.status.conditions, "ServicesInReadyState") or {})["reason"] == "Paused"
        resumed = MergePatch({"metadata": {"annotations": {PAUSED_ANNOTATION: None}}})
        await p.client.patch(ServiceSet, key, resumed, WRITE)
        await p.until(ClusterAddon, at, lambda obj: not obj.spec.paused, 30.0, what="being resumed")


async def test_a_multi_cluster_service_waits_for_those_that_it_depends_on() -> None:
    async with services_plane() as p:
        await p.have(chart("web", "1.0.0"), template("web"))
        await have_clusters(p, cluster("one", SPACE, env="prod"))
        await p.have(multi("later", web("later"), dependsOn=["first"]))
        found = await counted(p, "later", "0/1: kcm-system/one: spec.dependsOn: MultiClusterService first does not")
        assert "first does not exist" in message(found, "MultiClusterServiceDependencyValidation")
        await p.have(multi("first", web("first")))
        await counted(p, "later", "0/1: kcm-system/one: waits for MultiClusterService first")
        assert len((await p.client.list(ServiceSet, Query())).items) == 1
        await report(p, await addon(p, set_key(SPACE, "one", "first"), "first"))
        await report(p, await addon(p, set_key(SPACE, "one", "later"), "later"))
        await counted(p, "later", "1/1")


async def test_a_template_says_what_is_wrong_with_its_source_and_recovers() -> None:
    async with services_plane() as p:
        bucket = {"localSourceRef": {"kind": "Bucket", "name": "a"}}
        await p.have(k0rdent("ServiceTemplate", "bucket", {"resources": bucket}))
        await p.have(template("web"))
        broken = chart("plain", "1.0.0")
        broken["data"] = {"a.yaml": "kind: ConfigMap"}
        source = {"localSourceRef": {"kind": "ConfigMap", "name": "plain-1-0-0"}}
        await p.have(broken, k0rdent("ServiceTemplate", "plain", {"resources": source}))

        async def says(name: str, *words: str) -> None:
            await p.until(
                ServiceTemplate,
                Key(SPACE, name),
                lambda obj: all(each in obj.status.validation_error for each in words),
                30.0,
                what=f"saying {words}",
            )

        await says("bucket", "spec.resources.localSourceRef.kind: Bucket is not supported")
        await says("web-1-0-0", "ConfigMap kcm-system/web-1-0-0 does not exist: create it")
        await says("plain", "ConfigMap kcm-system/plain-1-0-0", "apiVersion")
        await p.have(chart("web", "1.0.0"))
        await p.until(ServiceTemplate, Key(SPACE, "web-1-0-0"), lambda obj: obj.status.valid, 30.0, what="valid")
        good = {"data": {"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}}
        await p.client.patch(CONFIG_MAP, Key(SPACE, "plain-1-0-0"), MergePatch(good), WRITE)
        await p.until(ServiceTemplate, Key(SPACE, "plain"), lambda obj: obj.status.valid, 30.0, what="valid")


REFUSED = (
    (web(template="web-1-0"), "not found in namespace kcm-system"),
    (web("Web"), "it is the name of a Helm release"),
    (web(dependsOn=[{"name": "db"}]), "service default/db is not in the list"),
    (web(values="a: ["), "services.0..values"),
    (web(values="{{ .a"), "services.0..values"),
    (web(templateChain="web"), 'ServiceTemplateChain "web" does not exist'),
)


async def test_a_service_that_can_not_work_is_refused_with_its_field() -> None:
    async with services_plane() as p:
        await p.have(chart("web", "1.0.0"), template("web"))
        for service, said in REFUSED:
            with pytest.raises(Invalid, match=said):
                await p.client.create(multi("web", service), WRITE, kind=MultiClusterService.__resource__)


async def test_a_chain_does_not_allow_to_skip_a_template() -> None:
    async with services_plane() as p:
        listed = [
            {"name": "web-1-0-0", "availableUpgrades": [{"name": "web-1-1-0"}]},
            {"name": "web-1-1-0"},
            {"name": "web-2-0-0"},
        ]
        await p.have(k0rdent("ServiceTemplateChain", "web", {"supportedTemplates": listed}))
        await p.have(*(template("web", each) for each in ("1.0.0", "1.1.0", "2.0.0")))
        await p.have(multi("web", web(templateChain="web")))

        async def change(name: str) -> None:
            services = [web(template=name, templateChain="web")]
            patch = MergePatch({"spec": {"serviceSpec": {"services": services}}})
            await p.client.patch(MultiClusterService, Key("", "web"), patch, WRITE)

        with pytest.raises(Invalid, match="web does not lead from web-1-0-0 to web-2-0-0"):
            await change("web-2-0-0")
        await change("web-1-1-0")
        with pytest.raises(Invalid, match="services are made from the template: MultiClusterService web"):
            await p.client.delete(ServiceTemplate, Key(SPACE, "web-1-1-0"))
