"""The guide's hosted cluster on simulated Nutanix: it comes up, changes, and leaves nothing behind."""

from __future__ import annotations

import asyncio

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.api.nutanix.v1beta1 import NutanixMachineTemplate
from homeport.client.protocol import Key, Query
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import NAMESPACE, NODE
from scenario.addons.stage import DEPLOYMENT
from scenario.k0rdent.stage import SECRET, SPACE, credential, deployments, hosted, is_ready, secret

NAME = "nutanix-hcp-demo"


@virtual
async def test_the_guides_hosted_cluster_becomes_ready_changes_and_leaves_nothing() -> None:
    async with deployments() as stage:
        await stage.have(secret(), credential(), hosted())
        made = await stage.ready(NAME)
        assert made.status.k8s_version == "v1.29.2"
        assert made.spec.config == hosted()["spec"]["config"]
        services = condition.find(made.status.conditions, "ServicesInReadyState") or {}
        assert services["message"] == "1/1"
        cluster: Cluster = await stage.client.get(Cluster, Key(SPACE, NAME))
        assert cluster.spec.control_plane_ref is not None
        assert cluster.spec.control_plane_ref.name == f"{NAME}-hcp-cp"
        assert cluster.spec.infrastructure_ref is not None
        assert cluster.spec.infrastructure_ref.name == f"{NAME}-cluster"
        assert cluster.spec.control_plane_endpoint.host == "10.1.1.200"
        templates = (await stage.client.list(NutanixMachineTemplate, Query(namespace=SPACE))).items
        assert [each for each in templates if each.metadata.name.startswith(f"{NAME}-hcp-worker-mt-")]
        first = {each.metadata.name for each in await stage.machines(NAME)}
        assert len(first) == 2
        inside = await stage.inside(NAME)
        nodes = (await inside.list(NODE, Query())).items
        assert len(nodes) == 2
        assert all("node-role.kubernetes.io/worker" in (each.metadata.get("labels") or {}) for each in nodes)

        await stage.patch(NAME, {"config": {"workersNumber": 3}})
        await stage.ready(NAME)
        assert {each.metadata.name for each in await stage.machines(NAME)} > first

        await stage.patch(NAME, {"config": {"k0s": {"version": "v1.30.1+k0s.0"}}})
        upgraded = await stage.ready(NAME)
        assert upgraded.status.k8s_version == "v1.30.1"
        machines = await stage.machines(NAME)
        assert {each.spec.version for each in machines} == {"v1.30.1+k0s.0"}
        assert not first & {each.metadata.name for each in machines}

        await stage.delete(NAME)
        await stage.gone(NAME)
        assert stage.vms() == []
        assert not (await stage.client.list(ClusterAddon, Query(namespace=SPACE))).items
        await stage.client.get(SECRET, Key(SPACE, "nutanix-cluster-creds"))


@virtual
async def test_deletion_reports_each_step_and_the_name_can_be_used_again_at_once() -> None:
    async with deployments() as stage:
        await stage.have(secret(), credential(), hosted(workersNumber=1))
        old = await stage.ready(NAME)
        await stage.delete(NAME)
        seen = await stage.until(
            NAME,
            lambda obj: (
                (condition.find(obj.status.conditions, "Deleting") or {}).get("reason")
                in ("WaitingForHelmReleaseDeletion", "WaitingForClusterDeletion")
            ),
            "the reason of the deletion",
        )
        ready = condition.find(seen.status.conditions, "Ready") or {}
        assert (ready["status"], ready["reason"]) == ("False", "Deleting")
        await stage.gone(NAME)
        await stage.have(hosted(workersNumber=1))
        new = await stage.ready(NAME)
        assert new.metadata.uid != old.metadata.uid


@virtual
async def test_two_deployments_share_a_class_and_a_secret_and_one_survives_the_other() -> None:
    async with deployments() as stage:
        await stage.have(secret(), credential(), hosted(workersNumber=1))
        await stage.have(hosted("second", "10.1.1.201", workersNumber=1))
        await stage.ready(NAME)
        await stage.ready("second")
        names = {
            each.metadata.name for each in (await stage.client.list(MachineDeployment, Query(namespace=SPACE))).items
        }
        assert names == {f"{NAME}-md", "second-md"}
        await stage.delete(NAME)
        await stage.gone(NAME)
        await stage.client.get(SECRET, Key(SPACE, "nutanix-cluster-creds"))
        await stage.patch("second", {"config": {"workersNumber": 2}})
        await stage.ready("second")
        assert len(await stage.machines("second")) == 2


@virtual
async def test_global_credentials_are_used_if_the_deployment_names_none() -> None:
    async with deployments() as stage:
        body = hosted(workersNumber=1)
        del body["spec"]["credential"]
        await stage.have(body)
        said = await stage.says(NAME, "create Secret capx-system/nutanix-creds")
        assert said.startswith("no credentials: set spec.credential")
        await stage.have(secret("nutanix-creds", "capx-system"))
        found = await stage.ready(NAME)
        ready = condition.find(found.status.conditions, "CredentialReady") or {}
        assert ready["message"] == "Secret capx-system/nutanix-creds is used"
        await stage.delete(NAME)
        await stage.gone(NAME)
        left = [each.name for each in (await stage.client.list(SECRET, Query(namespace=SPACE))).items]
        assert not [name for name in left if name.startswith(NAME)]


@virtual
async def test_controllers_that_start_again_change_nothing() -> None:
    async with deployments() as stage:
        await stage.have(secret(), credential(), hosted(workersNumber=1))
        await stage.ready(NAME)
        before: Cluster = await stage.client.get(Cluster, Key(SPACE, NAME))
        await stage.restart()
        await stage.patch(NAME, {"propagateCredentials": True})
        found: ClusterDeployment = await stage.ready(NAME)
        assert is_ready(found)
        after: Cluster = await stage.client.get(Cluster, Key(SPACE, NAME))
        assert after.metadata.generation == before.metadata.generation


@virtual
async def test_a_cluster_that_is_deleted_behind_its_deployment_is_made_again_with_its_services() -> None:
    async with deployments() as stage:
        await stage.have(secret(), credential(), hosted(workersNumber=1))
        await stage.ready(NAME)
        before: Cluster = await stage.client.get(Cluster, Key(SPACE, NAME))
        await stage.client.delete(Cluster, Key(SPACE, NAME))
        await stage.plane.until(
            Cluster, Key(SPACE, NAME), lambda each: each.metadata.uid != before.metadata.uid, 600.0, what="being new"
        )
        await stage.ready(NAME)
        inside = await stage.inside(NAME)
        await inside.get(DEPLOYMENT, Key("ntnx-system", "nutanix-csi-controller"))
        await inside.delete(NAMESPACE, Key("", "ntnx-system"))
        await asyncio.sleep(300)
        await stage.ready(NAME)
        await inside.get(DEPLOYMENT, Key("ntnx-system", "nutanix-csi-controller"))
