"""One loop over a topology: what is made from a class, and what is left as it is."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster, ClusterClass, Machine, MachineDeployment, MachineSet
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch, Query, Write
from homeport.runtime.testing import versions
from present import present
from reconcile.topology.topology_kit import (
    CONFIG,
    COPIES,
    INFRA,
    MACHINE,
    NAME,
    OTHER,
    OWNED,
    PLANE,
    STEP,
    C,
    bench,
    cluster,
    cluster_class,
    core_of,
    said,
    template,
    templates,
    workers,
)


async def test_everything_is_made_from_the_class_in_one_loop_and_nothing_in_the_next() -> None:
    async with bench() as b:
        _, found = await b.loop()
        assert said(found) == ("True", "ReconcileSucceeded", "")
        infra, plane = await b.infra(), await b.plane()
        (md,) = (await b.deployments()).values()
        assert found.metadata.labels[OWNED] == ""
        assert infra["spec"] == {"network": "blue"}, "an endpoint that says nothing is left out"
        assert (plane["spec"]["version"], plane["spec"]["replicas"]) == ("v1.30.0", 3)
        for made in (infra, plane):
            (owner,) = made.metadata["ownerReferences"]
            assert (owner["kind"], owner["uid"], owner["controller"]) == ("Cluster", found.metadata.uid, True)
            assert (
                made.metadata["labels"] | {OWNED: "", "cluster.x-k8s.io/cluster-name": "c"} == made.metadata["labels"]
            )
        machines = await b.copies(MACHINE)
        mine = machines[plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"]]
        assert mine.metadata["labels"]["kept"] == "yes"
        assert mine.metadata["annotations"]["cluster.x-k8s.io/cloned-from-name"] == "k-cp"
        assert core_of(mine) == {"cores": 2, "disk": "20Gi"}
        labels = plane["spec"]["machineTemplate"]["metadata"]["labels"]
        assert labels == {"from": "template", OWNED: "", "cluster.x-k8s.io/cluster-name": "c"}
        assert (md.spec.replicas, md.spec.template.spec.version) == (2, "v1.30.0")
        assert present(md.spec.template.spec.infrastructure_ref).name in machines
        assert present(md.spec.template.spec.bootstrap.config_ref).name in await b.copies(CONFIG)
        before = versions(b.p)
        outcome, _ = await b.loop()
        assert (outcome.written, versions(b.p)) == ((), before)


async def test_a_loop_that_remembers_nothing_has_nothing_to_write() -> None:
    async with bench() as b:
        await b.settled()
        before = versions(b.p)
        b.reconciler = b.fresh(b.p.manager)
        await b.loop()
        assert versions(b.p) == before


class Dying:
    """A client whose process ends after so many writes."""

    def __init__(self, inner: Any, after: int) -> None:
        self._inner, self.left = inner, after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("create", "patch", "apply", "delete"):
            return found

        async def write(*args: Any, **kwargs: Any) -> Any:
            dry = any(isinstance(each, Write) and each.dry_run for each in args)
            if not dry:
                if self.left <= 0:
                    raise KilledError
                self.left -= 1
            return await found(*args, **kwargs)

        return write


class KilledError(Exception):
    pass


@pytest.mark.parametrize("change", ["create", "rotate"])
async def test_a_controller_that_is_killed_at_any_write_leaves_no_orphans_and_makes_nothing_twice(change: str) -> None:
    async with bench(cluster_class(controlPlane=checked()), cluster()) as b:
        if change == "rotate":
            await b.settled()
            await b.edit(lambda t: t.update(variables=[{"name": "cores", "value": 4}]))
        client, died = b.p.manager.client, 0
        for _ in range(30):
            b.p.manager.client = Dying(client, 1)
            b.reconciler = b.fresh(b.p.manager)
            outcome = await b.p.reconcile(b.reconciler, C)
            if not isinstance(outcome.error, KilledError):
                break
            died += 1
        b.p.manager.client = client
        assert died > 3
        b.reconciler = b.fresh(b.p.manager)
        await b.settled()
        await b.settled()
        made = sorted(kind for kind, _ in await b.everything())
        assert made == [
            "FakeCluster", "FakeConfigTemplate", "FakeControlPlane", "FakeMachineTemplate", "FakeMachineTemplate",
            "MachineDeployment", "MachineHealthCheck",
        ]  # fmt: skip
        assert {core_of(each)["cores"] for each in (await b.copies(MACHINE)).values()} == {
            4 if change == "rotate" else 2
        }


def checked(**more: Any) -> dict[str, Any]:
    given: dict[str, Any] = cluster_class()["spec"]["controlPlane"]
    return {**given, "healthCheck": {"checks": {"nodeStartupTimeoutSeconds": 300}}, **more}


async def test_fields_of_users_stay() -> None:
    async with bench() as b:
        await b.settled()
        (md,) = (await b.deployments()).values()
        plane = await b.plane()
        await b.say(MachineDeployment, md.metadata.name, metadata={"labels": {"mine": "1"}}, spec={"paused": True})
        await b.say(PLANE, plane.name, spec={"extra": {"mine": True}}, metadata={"annotations": {"mine": "1"}})
        await b.edit(lambda t: t["workers"]["machineDeployments"][0].update(replicas=5))
        await b.settled()
        (md,) = (await b.deployments()).values()
        assert (md.spec.replicas, md.spec.paused, md.metadata.labels["mine"]) == (5, True, "1")
        plane = await b.plane()
        assert (plane["spec"]["extra"], plane.metadata["annotations"]["mine"]) == ({"mine": True}, "1")


async def test_what_the_class_says_is_put_right_when_somebody_changes_it() -> None:
    async with bench() as b:
        await b.settled()
        (md,) = (await b.deployments()).values()
        await b.say(MachineDeployment, md.metadata.name, spec={"replicas": 7})
        await b.say(PLANE, (await b.plane()).name, spec={"version": "v1.29.0"})
        await b.up("v1.29.0")
        await b.settled()
        (md,) = (await b.deployments()).values()
        assert (md.spec.replicas, (await b.plane())["spec"]["version"]) == (2, "v1.30.0")


# -- templates -------------------------------------------------------------------------------------------------------


async def test_another_spec_makes_another_template_and_the_old_one_goes_when_nobody_uses_it() -> None:
    async with bench() as b:
        await b.settled()
        before = await b.copies(MACHINE)
        (md,) = (await b.deployments()).values()
        old = present(md.spec.template.spec.infrastructure_ref).name
        await b.p.have(machine_set("s1", old))
        await b.edit(lambda t: t.update(variables=[{"name": "cores", "value": 4}]))
        await b.settled()
        (md,) = (await b.deployments()).values()
        now = await b.copies(MACHINE)
        assert set(now) & set(before) == {old}, "what a MachineSet uses stays, what nobody uses goes"
        assert core_of(now[present(md.spec.template.spec.infrastructure_ref).name]) == {"cores": 4, "disk": "20Gi"}
        assert set(await b.copies(CONFIG)) == {present(md.spec.template.spec.bootstrap.config_ref).name}
        await b.client.delete(MachineSet, Key("default", "s1"))
        await b.settled()
        assert old not in await b.copies(MACHINE)
        assert len(await b.copies(MACHINE)) == 2


def machine_set(name: str, infrastructure: str) -> dict[str, Any]:
    ref = {"apiGroup": MACHINE.group, "kind": MACHINE.kind, "name": infrastructure}
    labels = {"cluster.x-k8s.io/cluster-name": "c", OWNED: "", NAME: "a"}
    machine = {"clusterName": "c", "bootstrap": {"dataSecretName": "x"}, "infrastructureRef": ref, "version": "v1.30.0"}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineSet",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "clusterName": "c",
            "replicas": 0,
            "selector": {"matchLabels": {"set": name}},
            "template": {"metadata": {"labels": {"set": name}}, "spec": machine},
        },
    }


def _set_cores(topology: dict[str, Any], cores: int) -> None:
    topology.update(variables=[{"name": "cores", "value": cores}])


async def test_there_and_back_again_uses_the_template_that_is_still_there() -> None:
    used: list[str] = []
    async with bench() as b:
        await b.settled()
        for cores in (4, 8, 4):
            await b.edit(partial(_set_cores, cores=cores))
            await b.settled()
            (md,) = (await b.deployments()).values()
            name = present(md.spec.template.spec.infrastructure_ref).name
            used.append(name)
            if len(used) == 1:
                await b.p.have(machine_set("s1", name))
        assert used[2] == used[0] != used[1]


async def test_what_the_server_fills_in_is_no_change() -> None:
    async with bench() as b:
        await b.settled()
        before = set(await b.copies(MACHINE))
        # What the class names now is what the server filled in before.
        await b.client.patch(MACHINE, Key("default", "k-md"), MergePatch({"spec": core({"disk": "20Gi"})}))
        b.reconciler = b.fresh(b.p.manager)
        await b.settled()
        assert set(await b.copies(MACHINE)) == before


def core(spec: dict[str, Any]) -> dict[str, Any]:
    return {"template": {"spec": spec}}


async def test_a_change_of_metadata_alone_is_made_in_place() -> None:
    async with bench() as b:
        await b.settled()
        before = set(await b.copies(MACHINE))
        await b.client.patch(MACHINE, Key("default", "k-cp"), MergePatch({"metadata": {"labels": {"new": "1"}}}))
        await b.settled()
        now = await b.copies(MACHINE)
        assert set(now) == before
        assert sorted(each.metadata["labels"].get("new", "") for each in now.values()) == ["", "1"]


async def test_a_template_that_somebody_deleted_is_made_again() -> None:
    async with bench() as b:
        await b.settled()
        before = set(await b.copies(CONFIG))
        await b.client.delete(CONFIG, Key("default", *before))
        await b.settled()
        assert set(await b.copies(CONFIG)) == before


async def test_workers_may_get_bootstrap_configs_of_another_kind() -> None:
    async with bench() as b:
        await b.settled()
        await b.p.have(template(OTHER, "k-md", {"join": "otherwise"}))
        ref = {"apiVersion": OTHER.api_version, "kind": OTHER.kind, "name": "k-md"}
        await b.class_edit(lambda s: s["workers"]["machineDeployments"][0]["bootstrap"].update(templateRef=ref))
        await b.settled()
        (md,) = (await b.deployments()).values()
        assert present(md.spec.template.spec.bootstrap.config_ref).kind == OTHER.kind
        assert (len(await b.copies(OTHER)), len(await b.copies(CONFIG))) == (1, 0)


# -- workers ---------------------------------------------------------------------------------------------------------


async def test_replicas_that_the_topology_does_not_name_are_left_alone() -> None:
    async with bench(cluster_class(), cluster(workers=workers("a", replicas=None))) as b:
        await b.settled()
        (md,) = (await b.deployments()).values()
        assert md.spec.replicas == 1
        await b.say(MachineDeployment, md.metadata.name, spec={"replicas": 9})
        await b.edit(lambda t: t.update(variables=[{"name": "cores", "value": 4}]))
        await b.settled()
        assert (await b.deployments())["a"].spec.replicas == 9


async def test_replicas_that_are_no_longer_named_stay_as_they_are() -> None:
    async with bench() as b:
        await b.settled()
        await b.edit(lambda t: t["workers"]["machineDeployments"][0].update(replicas=6))
        await b.settled()
        await b.edit(lambda t: t["workers"]["machineDeployments"][0].pop("replicas"))
        b.reconciler = b.fresh(b.p.manager)
        await b.settled()
        assert (await b.deployments())["a"].spec.replicas == 6
        await b.edit(lambda t: t["workers"]["machineDeployments"][0].update(replicas=3))
        await b.settled()
        assert (await b.deployments())["a"].spec.replicas == 3


async def test_a_deployment_that_the_topology_no_longer_names_goes_with_its_check_and_templates() -> None:
    given = cluster_class()["spec"]["workers"]["machineDeployments"][0]
    check = {"checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 60}]}}
    classes = {"machineDeployments": [{**given, "healthCheck": check}]}
    async with bench(cluster_class(workers=classes), cluster(workers=workers("a", "b"))) as b:
        await b.settled()
        assert len(await b.checks()) == 2
        gone = (await b.deployments())["b"].metadata.name
        await b.edit(lambda t: t["workers"]["machineDeployments"].pop())
        await b.loop()
        deleted = (await b.deployments())["b"]
        assert deleted.metadata.deletion_timestamp
        await b.client.patch(MachineDeployment, Key("default", gone), MergePatch({"metadata": {"finalizers": None}}))
        await b.settled()
        assert list(await b.deployments()) == ["a"]
        assert gone not in await b.checks()
        assert (len(await b.copies(MACHINE)), len(await b.copies(CONFIG))) == (2, 1)


async def test_what_topology_and_class_say_of_machines_is_put_together() -> None:
    given = cluster_class()["spec"]["workers"]["machineDeployments"][0]
    classes = {
        **given,
        "metadata": {"labels": {"a": "class", "b": "class"}, "annotations": {"c": "class"}},
        "deletion": {"nodeDrainTimeoutSeconds": 10, "nodeDeletionTimeoutSeconds": 20, "order": "Oldest"},
        "failureDomain": "one",
        "minReadySeconds": 5,
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}},
        "healthCheck": {"remediation": {"maxInFlight": 1}},
        "naming": {"template": "{{ .cluster.name }}-workers-{{ .machineDeployment.topologyName }}"},
    }
    wanted = {
        "metadata": {
            "labels": {"a": "topology"},
            "annotations": {"d": "topology", "topology.cluster.x-k8s.io/defer-upgrade": ""},
        },
        "deletion": {"nodeDrainTimeoutSeconds": 30},
        "failureDomain": "two",
        "rollout": {"after": "2026-02-01T00:00:00Z"},
    }
    async with bench(
        cluster_class(workers={"machineDeployments": [classes]}), cluster(workers=workers("a", **wanted))
    ) as b:
        await b.settled()
        (md,) = (await b.deployments()).values()
        machine = md.spec.template
        assert md.metadata.name == "c-workers-a"
        assert {key: md.metadata.labels[key] for key in "ab"} == {"a": "topology", "b": "class"}
        assert {key: machine.metadata.labels[key] for key in "ab"} == {"a": "topology", "b": "class"}
        assert machine.metadata.annotations == {"c": "class", "d": "topology"}
        deletion = machine.spec.deletion
        assert (deletion.node_drain_timeout_seconds, deletion.node_deletion_timeout_seconds) == (30, 20)
        assert (md.spec.deletion.order, machine.spec.failure_domain, machine.spec.min_ready_seconds) == (
            "Oldest",
            "two",
            5,
        )
        rollout = md.spec.rollout
        assert (rollout.after, rollout.strategy.rolling_update.max_surge) == ("2026-02-01T00:00:00Z", 2)
        assert (md.spec.remediation.max_in_flight, await b.checks()) == (1, {})


async def test_overrides_are_for_one_part_alone() -> None:
    listed = workers("a", "b")
    listed["machineDeployments"][1]["variables"] = {"overrides": [{"name": "cores", "value": 8}]}
    async with bench(cluster_class(), cluster(workers=listed)) as b:
        await b.settled()
        machines, found = await b.copies(MACHINE), await b.deployments()
        cores = {
            name: core_of(machines[present(md.spec.template.spec.infrastructure_ref).name])["cores"]
            for name, md in found.items()
        }
        assert cores == {"a": 2, "b": 8}


# -- the control plane -----------------------------------------------------------------------------------------------

PLANE_PARTS: dict[str, Any] = {
    "replicas": 3,
    "metadata": {"labels": {"x": "1"}, "annotations": {"y": "2"}},
    "deletion": {"nodeDrainTimeoutSeconds": 10},
    "rollout": {"after": "2026-02-01T00:00:00Z"},
    "readinessGates": [{"conditionType": "Good"}],
}


async def test_the_control_plane_gets_what_the_topology_says() -> None:
    async with bench(cluster_class(), cluster(controlPlane=PLANE_PARTS)) as b:
        await b.settled()
        spec = (await b.plane())["spec"]
        assert spec["rollout"] == {"after": "2026-02-01T00:00:00Z"}
        machine = spec["machineTemplate"]
        assert machine["spec"]["deletion"] == {"nodeDrainTimeoutSeconds": 10}
        assert machine["spec"]["readinessGates"] == [{"conditionType": "Good"}]
        assert (machine["metadata"]["labels"]["x"], machine["metadata"]["annotations"]) == ("1", {"y": "2"})
        assert machine["spec"]["infrastructureRef"]["apiGroup"] == MACHINE.group


async def test_a_provider_of_the_old_contract_finds_everything_where_it_looks_for_it() -> None:
    async with bench(cluster_class(), cluster(controlPlane=PLANE_PARTS), contract="v1beta1") as b:
        await b.settled()
        spec = (await b.plane())["spec"]
        machine = spec["machineTemplate"]
        assert (spec["rolloutAfter"], machine["nodeDrainTimeout"]) == ("2026-02-01T00:00:00Z", "10s")
        assert machine["readinessGates"] == [{"conditionType": "Good"}]
        ref = machine["infrastructureRef"]
        assert (ref["apiVersion"], ref["kind"], ref["namespace"]) == (MACHINE.api_version, MACHINE.kind, "default")
        old = ref["name"]
        await b.edit(lambda t: t.update(variables=[{"name": "cores", "value": 4}]))
        await b.settled()
        new = (await b.plane())["spec"]["machineTemplate"]["infrastructureRef"]["name"]
        assert new != old
        assert old not in await b.copies(MACHINE)


async def test_a_health_check_comes_changes_and_goes() -> None:
    async with bench(cluster_class(controlPlane=checked()), cluster()) as b:
        await b.settled()
        plane = await b.plane()
        check = (await b.checks())[plane.name]
        assert check.spec.selector == {"matchLabels": {OWNED: "", "cluster.x-k8s.io/control-plane": ""}}
        assert check.spec.checks.node_startup_timeout_seconds == 300
        said_so = {"checks": {"nodeStartupTimeoutSeconds": 900}}
        await b.edit(lambda t: t["controlPlane"].update(healthCheck=said_so))
        await b.settled()
        assert (await b.checks())[plane.name].spec.checks.node_startup_timeout_seconds == 900
        await b.edit(lambda t: t["controlPlane"]["healthCheck"].update(enabled=False))
        await b.settled()
        assert await b.checks() == {}


# -- versions --------------------------------------------------------------------------------------------------------


async def test_an_upgrade_begins_with_the_control_plane_and_goes_on_with_the_workers() -> None:
    async with bench(cluster_class(), cluster(workers=workers("a", "b"))) as b:
        await b.settled()
        await b.up()
        await b.edit(lambda t: t.update(version="v1.31.0", variables=[{"name": "cores", "value": 4}]))
        found = await b.settled()
        assert said(found)[:2] == ("False", "ClusterUpgrading")
        assert "is being upgraded to v1.31.0" in said(found)[2]
        assert "waiting for the control plane" in said(found)[2]
        assert found.metadata.annotations[STEP] == "v1.31.0"
        assert [each.version for each in found.status.workers.upgrade_plan] == ["v1.31.0"]
        assert (await b.plane())["spec"]["version"] == "v1.31.0"
        assert {md.spec.template.spec.version for md in (await b.deployments()).values()} == {"v1.30.0"}
        assert sorted(core_of(m)["cores"] for m in (await b.copies(MACHINE)).values()) == [2, 2, 4]
        await b.up("v1.31.0")
        await b.p.have(machine("a-1", "a", "v1.30.0"))
        found = await b.settled()
        versions_now = {name: md.spec.template.spec.version for name, md in (await b.deployments()).items()}
        assert versions_now == {"a": "v1.31.0", "b": "v1.30.0"}
        await b.client.patch(Machine, Key("default", "a-1"), MergePatch({"spec": {"version": "v1.31.0"}}))
        found = await b.settled()
        assert said(found)[0] == "True", said(found)
        assert STEP not in found.metadata.annotations
        assert found.status.workers.upgrade_plan == []


def machine(name: str, topology: str, version: str) -> dict[str, Any]:
    ref = {"apiGroup": MACHINE.group, "kind": "FakeMachine", "name": name}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": "c", OWNED: "", NAME: topology}},
        "spec": {
            "clusterName": "c",
            "version": version,
            "bootstrap": {"dataSecretName": "x"},
            "infrastructureRef": ref,
        },
    }


async def test_an_annotation_holds_an_upgrade_and_says_so() -> None:
    hook = "before-upgrade.hook.cluster.cluster.x-k8s.io/backup"
    async with bench() as b:
        await b.settled()
        await b.up()
        await b.say(Cluster, "c", metadata={"annotations": {hook: ""}})
        await b.edit(lambda t: t.update(version="v1.31.0"))
        found = await b.settled()
        assert (said(found)[1], hook in said(found)[2]) == ("ClusterUpgrading", True)
        assert (await b.plane())["spec"]["version"] == "v1.30.0"
        await b.say(Cluster, "c", metadata={"annotations": {hook: None}})
        await b.settled()
        assert (await b.plane())["spec"]["version"] == "v1.31.0"


# -- what is wrong ---------------------------------------------------------------------------------------------------


async def test_a_class_that_is_missing_or_not_ready_is_waited_for() -> None:
    async with bench(cluster_class(), cluster(), ready=False) as b:
        _, found = await b.loop()
        assert said(found) == (
            "False",
            "ClusterClassNotReconciled",
            "ClusterClass default/k has not been reconciled yet",
        )
        assert await b.everything() == set()
    async with bench(cluster(), ready=False) as b:
        _, found = await b.loop()
        assert said(found) == ("False", "ClusterClassNotReconciled", "ClusterClass default/k does not exist")


@pytest.mark.parametrize(
    ("given", "wanted", "part"),
    [
        (cluster_class(), cluster(variables=[{"name": "cores", "value": "many"}]), "spec.topology.variables[cores]"),
        (cluster_class(), cluster(workers={"machineDeployments": [{"class": "x", "name": "a"}]}), "has no class 'x'"),
    ],
)
async def test_what_is_wrong_is_said_and_nothing_is_made(
    given: dict[str, Any], wanted: dict[str, Any], part: str
) -> None:
    async with bench(wanted, ready=False) as b:  # before there was a class that could have refused it
        await b.p.have(given)
        await b.class_ready()
        outcome, found = await b.loop()
        assert said(found)[:2] == ("False", "ReconcileFailed")
        assert part in said(found)[2]
        assert await b.everything() == set()
        assert outcome.wait is not None


async def test_workers_that_the_server_refuses_do_not_hold_up_the_others() -> None:
    async with bench(cluster_class(), cluster(workers=workers("a", "b"))) as b:
        await b.settled()
        nonsense = {"annotations": {"machineset.cluster.x-k8s.io/skip-preflight-checks": "Nonsense"}}

        def change(topology: dict[str, Any]) -> None:
            one, two = topology["workers"]["machineDeployments"]
            one["metadata"] = nonsense
            two["replicas"] = 7

        await b.edit(change)
        outcome = await b.p.reconcile(b.reconciler, C)
        assert isinstance(outcome.error, Invalid)
        assert {name: md.spec.replicas for name, md in (await b.deployments()).items()} == {"a": 2, "b": 7}
        assert said(await b.cluster())[1] == "ReconcileFailed"
        assert "Nonsense" in said(await b.cluster())[2]


async def test_a_kind_that_nobody_serves_is_named() -> None:
    ref = {"apiVersion": f"{MACHINE.group}/v1", "kind": "NobodyClusterTemplate", "name": "k"}
    async with bench(cluster_class(infrastructure={"templateRef": ref}), cluster()) as b:
        _, found = await b.loop()
        assert said(found)[1] == "ReconcileFailed"
        assert "kind NobodyClusterTemplate of group provider.example.com is not installed" in said(found)[2]


async def test_a_class_that_is_just_being_changed_is_no_news() -> None:
    async with bench() as b:
        await b.settled()
        key = Key("default", "k")
        await b.client.patch(ClusterClass, key, MergePatch({"spec": {"kubernetesVersions": ["v1.30.0"]}}))
        outcome, found = await b.loop()
        assert (outcome.written, said(found)[0]) == ((), "True")
        assert outcome.wait is not None
        assert outcome.wait.quiet
        await b.class_ready()
        outcome, _ = await b.loop()
        assert outcome.wait is None


async def test_a_missing_template_is_named() -> None:
    async with bench() as b:
        await b.client.delete(CONFIG, Key("default", "k-md"))
        _, found = await b.loop()
        assert "FakeConfigTemplate k-md does not exist in namespace default" in said(found)[2]
        await b.p.have(template(CONFIG, "k-md", {}))
        assert said(await b.settled())[0] == "True"


async def test_machine_pools_are_not_made_and_that_is_said() -> None:
    worker = cluster_class()["spec"]["workers"]["machineDeployments"][0]
    classes = {"machineDeployments": [worker], "machinePools": [{**worker, "class": "p"}]}
    listed = {**workers("a"), "machinePools": [{"class": "p", "name": "pool"}]}
    async with bench(cluster_class(workers=classes), cluster(workers=listed)) as b:
        found = await b.settled()
        assert said(found)[:2] == ("False", "MachinePoolsCreatePending")
        assert "pool of spec.topology.workers.machinePools is not created" in said(found)[2]
        assert list(await b.deployments()) == ["a"]


async def test_paused_means_that_nothing_is_changed() -> None:
    async with bench() as b:
        await b.settled()
        await b.say(Cluster, "c", spec={"paused": True})
        await b.edit(lambda t: t["workers"]["machineDeployments"][0].update(replicas=9))
        _, found = await b.loop()
        assert said(found)[:2] == ("False", "Paused")
        assert (await b.deployments())["a"].spec.replicas == 2
        await b.say(Cluster, "c", spec={"paused": False})
        await b.settled()
        assert (await b.deployments())["a"].spec.replicas == 9


async def test_a_cluster_that_goes_is_left_to_others() -> None:
    async with bench() as b:
        await b.settled()
        before = await b.everything()
        await b.client.delete(Cluster, C)
        _, found = await b.loop()
        assert said(found)[:2] == ("False", "Deleting")
        assert await b.everything() == before


async def test_a_class_of_another_namespace_is_used_in_place() -> None:
    async with bench(cluster(classRef={"name": "k", "namespace": "classes"}), ready=False) as b:
        await b.p.have({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "classes"}})
        far = [
            {**each, "metadata": {**each["metadata"], "namespace": "classes"}}
            for each in (*templates(), cluster_class())
        ]
        await b.p.have(*far)
        await b.class_ready("k", "classes")
        assert said(await b.settled())[0] == "True"
        assert {kind for kind, _ in await b.everything()} >= {"FakeCluster", "FakeControlPlane", "MachineDeployment"}


async def test_another_class_takes_over_what_is_there() -> None:
    async with bench() as b:
        await b.settled()
        before = await b.everything()
        await b.p.have(cluster_class("k2", patches=None, variables=None), template(MACHINE, "k2", {"cores": 16}))
        ref = {"apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "name": "k2"}
        await b.class_edit(
            lambda s: s["workers"]["machineDeployments"][0]["infrastructure"].update(templateRef=ref), "k2"
        )
        await b.edit(lambda t: (t.update(classRef={"name": "k2"}), t.pop("variables", None)))
        await b.settled()
        after = await b.everything()
        assert {each for each in before if each[0] not in (MACHINE.kind,)} == {e for e in after if e[0] != MACHINE.kind}
        assert sorted(core_of(m)["cores"] for m in (await b.copies(MACHINE)).values()) == [2, 16]


async def test_an_object_that_was_not_made_for_a_topology_is_not_taken() -> None:
    async with bench() as b:
        await b.settled()
        infra = await b.infra()
        await b.client.patch(INFRA, Key("default", infra.name), MergePatch({"metadata": {"labels": {OWNED: None}}}))
        _, found = await b.loop()
        assert f"FakeCluster {infra.name} was not created for a topology" in said(found)[2]


async def test_copies_of_another_cluster_are_not_touched() -> None:
    async with bench() as b:
        await b.settled()
        other = cluster()
        other["metadata"] = {"name": "d"}
        await b.p.have(other)
        await b.p.reconcile(b.reconciler, Key("default", "d"))
        await b.settled()
        for kind in COPIES[:2]:
            found = await b.client.list(kind, Query(namespace="default", labels="cluster.x-k8s.io/cluster-name=d"))
            assert found.items, kind.kind
        assert await b.client.get(ClusterClass, Key("default", "k"))


async def test_a_name_that_another_cluster_uses_is_not_taken_over() -> None:
    worker = {**cluster_class()["spec"]["workers"]["machineDeployments"][0]}
    worker["naming"] = {"template": "pool-{{ .machineDeployment.topologyName }}"}
    other = cluster()
    other["metadata"]["name"] = "d"
    async with bench(cluster_class(workers={"machineDeployments": [worker]}), cluster(), other) as b:
        await b.settled()
        _, found = await b.loop(Key("default", "d"))
        status, reason, message = said(found)
        assert (status, reason) == ("False", "ReconcileFailed")
        assert "MachineDeployment pool-a belongs to Cluster c, so Cluster d can't use that name" in message
        held = await b.client.get(MachineDeployment, Key("default", "pool-a"))
        assert [each.name for each in held.metadata.owner_references] == ["c"]
        assert held.spec.cluster_name == "c"
        assert (await b.client.get(PLANE, Key("default", present(found.spec.control_plane_ref).name))) is not None


async def test_templates_of_the_class_that_are_missing_are_reported_on_the_cluster_though_it_does_not_use_them() -> (
    None
):
    async with bench() as b:
        await b.settled()
        missing = "spec.workers.machineDeployments[1].bootstrap.templateRef: FakeConfigTemplate x does not exist"
        told = {"type": "RefVersionsUpToDate", "status": "False", "reason": "TemplatesNotUsable", "message": missing}
        given = await b.client.get(ClusterClass, Key("default", "k"))
        conditions = [*given.status.conditions, {**told, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        body = MergePatch({"status": {"conditions": conditions}})
        await b.client.patch(ClusterClass, Key("default", "k"), body, subresource="status")
        _, found = await b.loop()
        assert said(found) == ("False", "TemplatesNotUsable", f"ClusterClass k: {missing}")
        await b.edit(lambda topology: topology["workers"]["machineDeployments"][0].update(replicas=5))
        await b.loop()
        assert {md.spec.replicas for md in (await b.deployments()).values()} == {5}
