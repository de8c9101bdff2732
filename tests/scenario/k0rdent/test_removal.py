"""What a ClusterDeployment does before its cluster goes, and while it is paused; Nodes that no Pod can use."""

from __future__ import annotations

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from scenario.k0rdent.stage import SECRET, SPACE, credential, deployments, hosted, secret

SERVICE = Resource("", "v1", "Service", "services")
NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
CHARTS = [
    {
        "name": "ccm",
        "chartname": "nutanix/nutanix-cloud-controller-manager",
        "version": "0.3.0",
        "namespace": "kube-system",
    }
]


@virtual
async def test_load_balancers_are_removed_first_nodes_without_a_cloud_are_noticed_and_a_pause_holds_everything() -> (
    None
):
    async with deployments() as stage:
        await stage.have(secret(), credential())
        k0s = {"version": "v1.29.2+k0s.0", "config": {"spec": {"extensions": {"helm": {"charts": CHARTS}}}}}
        body = hosted(k0s=k0s, workersNumber=1)
        body["spec"]["cleanupOnDeletion"] = True
        await stage.have(body)
        name = body["metadata"]["name"]
        made = await stage.ready(name)
        assert (condition.find(made.status.conditions, "Paused") or {})["reason"] == "NotPaused"
        inside = await stage.inside(name)
        creds = await inside.get(SECRET, Key("kube-system", "nutanix-creds"))
        assert creds["data"] == (await stage.client.get(SECRET, Key(SPACE, "nutanix-cluster-creds")))["data"]
        await stage.client.get(ClusterAddon, Key(SPACE, f"{name}-ccm-credentials"))

        node = (await inside.list(NODE)).items[0].name
        taints = [{"key": TAINT, "effect": "NoSchedule", "value": "true"}]
        await inside.patch(NODE, Key("", node), MergePatch({"spec": {"taints": taints}}))
        await stage.until(name, lambda obj: "have the taint" in str(obj.status.conditions), "the taint")

        spec = {"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": "web"}}
        meta = {"name": "web", "namespace": "default", "finalizers": ["example.com/held"]}
        await inside.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}, kind=SERVICE)
        pause = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
        await stage.client.patch(ClusterDeployment, Key(SPACE, name), MergePatch(pause))
        await stage.until(name, lambda obj: condition.is_true(obj.status.conditions, "Paused"), "a pause")
        await stage.delete(name)
        resume = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": None}}}
        await stage.client.patch(ClusterDeployment, Key(SPACE, name), MergePatch(resume))
        said = await stage.says(name, "Service default/web", kind="CloudResourcesDeletedCondition")
        assert "waiting for the deletion of" in said
        assert stage.vms()
        await inside.patch(SERVICE, Key("default", "web"), MergePatch({"metadata": {"finalizers": None}}))
        await stage.gone(name)
        assert not stage.vms()
