"""Clusters and hosts in v3."""

from __future__ import annotations

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.entity import MIB, Cluster, Entity, Host
from homeport.sim.prism.error import missing
from homeport.sim.prism.site import Routes, Site
from homeport.sim.prism.v3 import envelope
from homeport.sim.prism.v3.envelope import BASE, Json


def add_routes(routes: Routes) -> None:
    routes.add("POST", f"{BASE}/clusters/list", list_clusters, reads=True)
    routes.add("GET", f"{BASE}/clusters/{{uuid}}", get_cluster, table="clusters", param="uuid")
    routes.add("POST", f"{BASE}/hosts/list", list_hosts, reads=True)
    routes.add("GET", f"{BASE}/hosts/{{uuid}}", get_host, table="", param="uuid")


def cluster_view(site: Site, cluster: Cluster) -> Json:
    config = {
        "service_list": ["PRISM_CENTRAL" if cluster.central else "AOS"],
        "is_available": not site.core.out_of_reach(cluster.ext_id),
        "timezone": cluster.timezone,
        "cluster_arch": "X86_64",
        "operation_mode": "NORMAL",
        "redundancy_factor": min(2, max(1, len(cluster.hosts))),
        "domain_awareness_level": "NODE",
        "software_map": {
            "NOS": {"software_type": "NOS", "status": "INSTALLED", "version": cluster.version_aos},
            "NCC": {"software_type": "NCC", "status": "INSTALLED", "version": "ncc-5.1.0"},
        },
        "build": {
            "build_type": "release",
            "version": cluster.version_aos,
            "full_version": cluster.version_aos,
            "commit_id": "0" * 40,
            "short_commit_id": "0" * 6,
        },
    }
    network = {"external_ip": cluster.address, "external_data_services_ip": cluster.data_services_address}
    network = {name: value for name, value in network.items() if value}
    nodes = [{"ip": host.address, "type": "AHV", "version": "20230302.103014"} for host in cluster.hosts]
    resources: Json = {"config": config, "network": network}
    status = {
        "name": cluster.name,
        "state": "COMPLETE",
        "resources": {**resources, "nodes": {"hypervisor_server_list": nodes} if nodes else {}},
    }
    meta = envelope.metadata(site, "cluster", cluster, **envelope.categories(site, cluster.categories))
    return envelope.entity_view(meta, {"name": cluster.name, "resources": {"network": network}}, status)


def list_clusters(site: Site, call: Call) -> Answer:
    return envelope.listed(
        call, "cluster", tuple(site.world.clusters), lambda each: cluster_view(site, each), envelope.named
    )


def get_cluster(site: Site, call: Call) -> Answer:
    return Answer(200, cluster_view(site, site.find(site.world.clusters, call.params["uuid"])))


class _HostEntity(Entity, frozen=True, kw_only=True):
    """A host with the cluster it belongs to, to be listed like an entity."""

    name: str
    host: Host
    cluster: Cluster


def _hosts(site: Site) -> list[_HostEntity]:
    return [
        _HostEntity(ext_id=host.ext_id, name=host.name, host=host, cluster=cluster)
        for cluster in site.world.clusters
        for host in cluster.hosts
    ]


def host_view(site: Site, entity: _HostEntity) -> Json:
    host, cluster = entity.host, entity.cluster
    gpus = [
        {
            "name": gpu.name,
            "mode": gpu.mode,
            "vendor": gpu.vendor.removeprefix("k").upper(),
            "device_id": gpu.device_id,
            "status": "UNUSED",
            "assignable": site.core.usage.gpus[gpu.ext_id] < gpu.count,
        }
        for gpu in site.world.gpus
        if gpu.host in (host.name, host.ext_id)
        for _ in range(gpu.count)
    ]
    resources = {
        "hypervisor": {
            "num_vms": site.core.usage.running[host.ext_id],
            "ip": host.address,
            "hypervisor_full_name": "Nutanix 20230302.103014",
        },
        "num_cpu_sockets": host.sockets,
        "num_cpu_cores": host.cores,
        "cpu_model": host.cpu_model,
        "memory_capacity_mib": host.memory_bytes // MIB,
        "host_type": "HYPER_CONVERGED",
        "gpu_list": gpus,
    }
    status = {
        "name": host.name,
        "state": "COMPLETE",
        "resources": resources,
        "cluster_reference": envelope.reference("cluster", cluster.ext_id),
    }
    return envelope.entity_view(envelope.metadata(site, "host", entity), {"name": host.name, "resources": {}}, status)


def list_hosts(site: Site, call: Call) -> Answer:
    return envelope.listed(call, "host", _hosts(site), lambda each: host_view(site, each), envelope.named)


def get_host(site: Site, call: Call) -> Answer:
    for entity in _hosts(site):
        if entity.ext_id == call.params["uuid"]:
            return Answer(200, host_view(site, entity))
    raise missing("host", call.params["uuid"])
