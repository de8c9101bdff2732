"""The configuration of the cloud controller manager on Harvester, and the VMs of Nodes."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from homeport.api.meta import Unstructured
from homeport.client.dial import DIRECT
from homeport.infra.error import Misconfigured, Missing
from homeport.providers.harvester.cloud.balancer import IP_POOL, IPAM, HarvesterBalancer
from homeport.providers.harvester.cloud.config import CloudConfig, parse_config, reduced, render_config
from homeport.providers.harvester.cloud.instance import HarvesterCloud
from homeport.providers.harvester.infracluster.connection import Connector, HarvesterSession
from homeport.runtime.clock import SystemClock
from homeport.runtime.testing import plane, shared_pki
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.world import default_world
from unit.providers.harvester.test_harvester_connection import admin, encoded, kubeconfig

CONFIG = CloudConfig("one", ("default",), "creds", "kube-system", "10.0.0.9")


def node(provider: str = "") -> Unstructured:
    return Unstructured(metadata={"name": "n"}, spec={"providerID": provider} if provider else {})


def test_what_is_rendered_is_read_again() -> None:
    full = CloudConfig(
        "one",
        ("a", "b"),
        "creds",
        "kube-system",
        cluster_uid="u",
        ipam="dhcp",
        ip_pool="p",
        complete=False,
        pools={"default": "10.0.0.1-10.0.0.2"},
    )
    here = CloudConfig("one", ("a",), "", "elsewhere")  # VMs in the cluster that the manager reads Secrets from
    for each in (CONFIG, full, here, CloudConfig("one", ("a",), "creds", "kube-system", balances=False)):
        assert parse_config(render_config(each), "elsewhere") == each


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clusterName": ""}, "clusterName: is required"),
        ({"namespaces": "default"}, "namespaces: is required"),
        ({"kubeconfigSecret": {}}, "kubeconfigSecret.name: is required"),
        ({"kubeconfigSecret": "creds"}, "kubeconfigSecret: must be an object"),
        ({"complete": "no"}, "complete: must be true or false, not 'no'"),
    ],
)
def test_a_configuration_that_can_not_be_used_names_the_field(change: dict[str, Any], said: str) -> None:
    found = json.loads(render_config(CONFIG)) | change
    with pytest.raises(Misconfigured, match=said):
        parse_config(json.dumps(found), "default")


def test_only_the_current_context_leaves_the_plane() -> None:
    config = json.loads(kubeconfig("https://one:6443", {"token": "kept"}))
    config["users"].append({"name": "y", "user": {"token": "private"}})
    config["clusters"].append({"name": "y", "cluster": {"server": "https://two:6443"}})
    config["contexts"].append({"name": "y", "context": {"cluster": "y", "user": "y"}})
    found = reduced(json.dumps(config).encode())
    assert "kept" in found
    assert "private" not in found
    assert "two" not in found


def balanced(**spec: Any) -> Unstructured:
    return Unstructured(metadata={"name": "web", "namespace": "default", "uid": "u"}, spec=spec)


async def never() -> HarvesterSession:
    raise AssertionError("nothing is sent")


@pytest.mark.parametrize(
    ("service", "said"),
    [
        (balanced(ports=[{"port": 80}]), r"spec.ports\[0\] has no nodePort"),
        (balanced(ports=[{"port": 80, "nodePort": 1, "protocol": "SCTP"}]), "support TCP and UDP, not SCTP"),
    ],
)
def test_a_service_that_no_load_balancer_can_serve_is_refused_with_the_reason(service: Unstructured, said: str) -> None:
    with pytest.raises(Misconfigured, match=said):
        HarvesterBalancer(CONFIG, never)._balancer(service)


def test_the_pool_of_a_service_comes_before_that_of_its_cluster() -> None:
    config = replace(CONFIG, ip_pool="cluster")
    service = balanced(ports=[{"port": 53, "nodePort": 30053, "protocol": "UDP"}])
    made = HarvesterBalancer(config, never)._balancer(service)
    assert (made["ipam"], made["ipPool"]) == ("pool", "cluster")
    assert "healthCheck" not in made  # UDP can't be probed
    service.metadata["annotations"] = {IP_POOL: "own"}
    assert HarvesterBalancer(config, never)._balancer(service)["ipPool"] == "own"
    service.metadata["annotations"] = {IPAM: "dhcp"}
    assert "ipPool" not in HarvesterBalancer(config, never)._balancer(service)
    service.metadata["annotations"] = {IPAM: "static"}
    with pytest.raises(Misconfigured, match="must be pool or dhcp, not 'static'"):
        HarvesterBalancer(config, never)._balancer(service)


async def test_a_vm_is_gone_only_if_everything_was_seen_without_it() -> None:
    harvester = await Harvester.open(shared_pki(), world=default_world())
    async with plane() as p:
        url = await harvester.serve()
        text = kubeconfig(url, admin(shared_pki()), **{"certificate-authority-data": encoded(shared_pki().ca_pem)})
        data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
        meta = {"name": "creds", "namespace": "kube-system"}
        await p.have({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
        connector = Connector(p.client, SystemClock(), DIRECT)
        try:
            uid = "44b90a2a-145d-4951-aaed-cb2e99739675"
            assert await HarvesterCloud(CONFIG, connector).instance(node(f"harvester://{uid}")) is None
            with pytest.raises(Missing, match="it is not a VM of Harvester"):
                await HarvesterCloud(CONFIG, connector).instance(node(f"nutanix://{uid}"))
            partly = CloudConfig("one", ("default",), "creds", "kube-system", complete=False)
            with pytest.raises(Missing, match="other infrastructure clusters"):
                await HarvesterCloud(partly, connector).instance(node())
        finally:
            await connector.close()
            await harvester.close()
