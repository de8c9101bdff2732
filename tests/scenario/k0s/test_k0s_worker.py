"""Workers on Nutanix join a k0s control plane of Pods."""

from __future__ import annotations

import base64
from typing import Any

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from homeport.api.k0s.v1beta2 import K0sWorkerConfig
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import NODE
from scenario.k0s import manifest
from scenario.nutanix.site import SECRET, Site, nutanix_site


async def joined(site: Site, workers: int) -> list[Machine]:
    await site.until(
        MachineDeployment,
        "one-md-0",
        lambda m: m.status.ready_replicas == workers == m.status.replicas,
        1800,
        what=f"{workers} workers ready",
    )
    return await site.list(Machine)


async def nodes(site: Site) -> dict[str, Any]:
    (cluster,) = site.fleet.hosted.values()
    return {each.name: each for each in (await cluster.client().list(NODE)).items}


@virtual
async def test_workers_join_a_hosted_control_plane() -> None:
    async with nutanix_site(hosted=True) as site:
        await site.have(*manifest.hosted("one", 2))
        machines = await joined(site, 2)
        found = await nodes(site)
        assert {each.metadata.name for each in machines} == set(found)
        for machine in machines:
            node = found[machine.metadata.name]
            assert node["spec"]["providerID"] == machine.spec.provider_id
            assert node["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.33.4+k0s")
            assert node.metadata["labels"]["k0smotron.io/machine-name"] == machine.metadata.name
            assert not node["spec"].get("taints")


@virtual
async def test_labels_and_taints_reach_nodes_also_those_that_kubelet_may_not_set() -> None:
    async with nutanix_site(hosted=True) as site:
        args = [
            "--labels=tier=web,node-role.kubernetes.io/worker=",
            "--taints=dedicated=web:NoSchedule",
            "--kubelet-extra-args=--cloud-provider=external",
        ]
        labels = {"node.cluster.x-k8s.io/pool": "a"}
        await site.have(*manifest.hosted("one", 1, labels=labels, args=args))
        [machine] = await joined(site, 1)
        node = (await nodes(site))[machine.metadata.name]
        kept = node.metadata["labels"]
        assert (kept["tier"], kept["node-role.kubernetes.io/worker"]) == ("web", "")
        assert kept["node.cluster.x-k8s.io/pool"] == "a"
        assert {"key": "dedicated", "value": "web", "effect": "NoSchedule"} in node["spec"]["taints"]


@virtual
async def test_a_worker_waits_for_the_secret_of_its_file_and_gets_k0s_from_a_mirror() -> None:
    async with nutanix_site(hosted=True) as site:
        source = {"secretRef": {"name": "mirror-ca", "key": "ca.crt"}}
        files = [{"path": "/usr/local/share/ca-certificates/mirror.crt", "contentFrom": source}]
        url = f"https://mirror.example/k0s-{manifest.VERSION}-amd64"
        config: Any = {"files": files, "downloadURL": url, "preK0sCommands": ["update-ca-certificates"]}
        await site.have(*manifest.hosted("one", 1, **config))
        await site.until(MachineDeployment, "one-md-0", lambda m: m.status.replicas == 1, what="a Machine")
        [machine] = await site.list(Machine)
        text = "Secret 'mirror-ca', which does not exist: create it"
        await site.condition(
            K0sWorkerConfig, machine.metadata.name, "Ready", "False", "DataSecretGenerationFailed", text, timeout=300
        )
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mirror-ca", "namespace": "default"}}
        await site.have({**secret, "stringData": {"ca.crt": "certificate"}})
        await joined(site, 1)
        config = await site.get(K0sWorkerConfig, machine.metadata.name)
        assert config.status.initialization.data_secret_created
        data = (await site.get(SECRET, machine.metadata.name))["data"]
        assert base64.b64decode(data["bootstrap-token"]).decode() not in str(config)
