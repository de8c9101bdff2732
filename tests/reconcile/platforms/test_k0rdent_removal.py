"""A cluster that does not answer does not keep its ClusterDeployment from being deleted."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.k0rdent.v1beta1 import ClusterDeployment, ServiceSet
from homeport.capi.definition.kind import definitions as capi_definitions
from homeport.capi.object.ownership import owner_reference
from homeport.client.protocol import Key, MergePatch
from homeport.platforms.k0rdent.definition import definitions
from homeport.platforms.k0rdent.deployment.neighbour import Neighbours
from homeport.platforms.k0rdent.deployment.removal import Removal
from homeport.platforms.k0rdent.deployment.scope import DeploymentScope
from homeport.runtime.clock import SystemClock, rfc3339
from homeport.runtime.testing import plane
from scenario.k0rdent.stage import k0rdent

AT = Key("default", "one")


def scope_of(obj: ClusterDeployment) -> DeploymentScope:
    nothing: dict[str, Any] = dict.fromkeys(Neighbours.__slots__)
    return DeploymentScope(obj, Neighbours(**nothing))


async def test_services_of_a_cluster_that_does_not_answer_are_waited_for_two_minutes() -> None:
    async with plane(crds=[*definitions(), *capi_definitions()]) as p:
        body = k0rdent("ClusterDeployment", "one", {"template": "any"}, "default", finalizers=["example.com/wait"])
        await p.have(body)
        made: ClusterDeployment = await p.client.get(ClusterDeployment, AT)
        owner = [owner_reference(made, controller=True)]
        finalizers = ["example.com/wait"]
        held = k0rdent(
            "ServiceSet",
            "one",
            {"cluster": "one", "provider": {}},
            "default",
            ownerReferences=owner,
            finalizers=finalizers,
        )
        users = k0rdent("ServiceSet", "mine", {"cluster": "one", "provider": {}}, "default")
        meta = {"name": "one", "namespace": "default", "ownerReferences": owner}
        cluster = {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": meta,
            "spec": {"paused": True},
        }
        await p.have(held, users, cluster)
        await p.client.delete(ClusterDeployment, AT)
        made = await p.client.get(ClusterDeployment, AT)
        clock = SystemClock()
        unused: Any = None  # templates of users and what the cluster made outside are not part of this
        removal = Removal(p.client, clock, unused, unused)
        scope = scope_of(made)
        wait = await removal.drop_sets(scope)
        assert wait is not None
        assert "ServiceSets are being deleted: one" in wait.message
        made.metadata.deletion_timestamp = rfc3339(clock.now() - 121.0)
        assert await removal.drop_sets(scope_of(made)) is None
        # The cluster is gone, the ServiceSet is not yet: its name is not free.
        await p.client.delete(Cluster, AT)
        assert (await removal.await_sets(scope_of(made))) is not None
        await p.client.patch(ServiceSet, AT, MergePatch({"metadata": {"finalizers": None}}))
        assert await removal.await_sets(scope_of(made)) is None
        await p.client.get(ServiceSet, Key("default", "mine"))
