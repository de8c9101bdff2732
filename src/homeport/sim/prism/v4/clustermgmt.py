"""clustermgmt: clusters, hosts, storage containers, GPU profiles."""

from __future__ import annotations

from typing import Any, Final

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.entity import Cluster, Container, GpuDevice, Host
from homeport.sim.prism.error import missing
from homeport.sim.prism.site import Routes, Site
from homeport.sim.prism.v4 import envelope
from homeport.sim.prism.v4.envelope import Dialect, Json, Listing
from homeport.sim.prism.v4.reading import readers

NS: Final = "clustermgmt.v4.config"
BASE: Final = "/api/clustermgmt/{v}/config"

CLUSTERS: Final = envelope.listing(
    f"{NS}.Cluster",
    """backupEligibilityScore categories clusterProfileExtId config containerName extId inefficientVmCount links
        name network nodes tenantId upgradeStatus vmCount""",
    projected=True,
)
_HOST_FIELDS: Final = envelope.names(
    """blockModel blockSerial bootTimeUsecs cluster controllerVm cpuCapacityHz cpuFrequencyHz cpuModel
    defaultVhdContainerUuid defaultVhdLocation defaultVmContainerUuid defaultVmLocation disk extId
    failoverClusterFqdn failoverClusterNodeStatus gpuDriverVersion gpuList hasCsr hostName hostType hypervisor ipmi
    isDegraded isHardwareVirtualized isRebootPending isSecureBooted keyManagementDeviceToCertStatus links
    maintenanceState memorySizeBytes nodeSerial nodeStatus numberOfCpuCores numberOfCpuSockets numberOfCpuThreads
    rackableUnitUuid tenantId"""
)
HOSTS: Final = Listing(f"{NS}.ListHostsApiResponse", f"{NS}.Host", _HOST_FIELDS, projected=True)
CLUSTER_HOSTS: Final = Listing(f"{NS}.ListHostsByClusterIdApiResponse", f"{NS}.Host", _HOST_FIELDS, projected=True)
CONTAINERS: Final = envelope.listing(
    f"{NS}.StorageContainer",
    """affinityHostExtId cacheDeduplication clusterExtId clusterName compressionDelaySecs containerExtId
        erasureCode erasureCodeDelaySecs extId hasHigherEcFaultDomainPreference isCompressionEnabled isEncrypted
        isInlineEcEnabled isInternal isMarkedForRemoval isNfsWhitelistInherited isShared
        isSoftwareEncryptionEnabled links logicalAdvertisedCapacityBytes logicalExplicitReservedCapacityBytes
        logicalImplicitReservedCapacityBytes maxCapacityBytes name nfsWhitelistAddress onDiskDedup ownerExtId
        replicationFactor storagePoolExtId tenantId""",
    projected=True,
)
PHYSICAL_GPUS: Final = envelope.listing(
    f"{NS}.PhysicalGpuProfile", "physicalGpuConfig allocatedVmExtIds extId links tenantId"
)
VIRTUAL_GPUS: Final = envelope.listing(
    f"{NS}.VirtualGpuProfile", "virtualGpuConfig allocatedVmExtIds extId links tenantId"
)


def add_routes(routes: Routes) -> None:
    clusters = f"{BASE}/clusters"
    routes.add("GET", clusters, list_clusters, CLUSTERS.response_type)
    routes.add("GET", f"{clusters}/{{extId}}", get_cluster, f"{NS}.GetClusterApiResponse", table="clusters")
    one = f"{clusters}/{{clusterExtId}}"
    for path, respond, response in (
        ("hosts", list_cluster_hosts, CLUSTER_HOSTS.response_type),
        ("hosts/{extId}", get_host, f"{NS}.GetHostApiResponse"),
        ("physical-gpu-profiles", list_physical_gpus, PHYSICAL_GPUS.response_type),
        ("virtual-gpu-profiles", list_virtual_gpus, VIRTUAL_GPUS.response_type),
    ):
        routes.add("GET", f"{one}/{path}", respond, response, table="clusters", param="clusterExtId")
    routes.add("GET", f"{BASE}/hosts", list_hosts, HOSTS.response_type)
    routes.add("GET", f"{BASE}/storage-containers", list_containers, CONTAINERS.response_type)
    routes.add(
        "GET",
        f"{BASE}/storage-containers/{{extId}}",
        get_container,
        f"{NS}.GetStorageContainerApiResponse",
        table="containers",
    )


def cluster_view(site: Site, d: Dialect, cluster: Cluster) -> Json:
    nodes = [
        d.typed(f"{NS}.NodeListItemReference", {"nodeUuid": host.ext_id, "hostIp": d.ip(host.address)})
        for host in cluster.hosts
    ]
    network = {
        "externalAddress": d.ip(cluster.address),
        "externalDataServiceIp": d.ip(cluster.data_services_address),
    }
    return d.typed(
        f"{NS}.Cluster",
        {
            "extId": cluster.ext_id,
            "name": cluster.name,
            "nodes": d.typed(f"{NS}.NodeReference", {"numberOfNodes": len(nodes), "nodeList": nodes or None}),
            "config": _cluster_config(site, d, cluster),
            "network": d.typed(f"{NS}.ClusterNetworkReference", network),
            "upgradeStatus": "SUCCEEDED",
            "vmCount": site.core.usage.by_cluster[cluster.ext_id],
            "categories": list(cluster.categories) or None,
        },
    )


list_clusters, get_cluster = readers(lambda world: world.clusters, CLUSTERS, cluster_view)


def _cluster_config(site: Site, d: Dialect, cluster: Cluster) -> Json:
    software = {"PRISM_CENTRAL": cluster.version_aos} if cluster.central else {"NOS": cluster.version_aos, "NCC": "5.1"}
    config: dict[str, Any] = {
        "incarnationId": 1,
        "buildInfo": d.typed(
            f"{NS}.BuildReference", {"buildType": "release", "version": cluster.version_aos, "commitId": "0" * 40}
        ),
        "hypervisorTypes": ["AHV"],
        "clusterFunction": ["PRISM_CENTRAL"] if cluster.central else ["AOS"],
        "timezone": cluster.timezone,
        "redundancyFactor": min(2, max(1, len(cluster.hosts))),
        "clusterSoftwareMap": [
            d.typed(f"{NS}.SoftwareMapReference", {"softwareType": kind, "version": version})
            for kind, version in software.items()
        ],
        "clusterArch": "X86_64",
        "operationMode": "NORMAL",
        "isLts": False,
        "isAvailable": not site.core.out_of_reach(cluster.ext_id),
    }
    return d.typed(f"{NS}.ClusterConfigReference", config)


def host_view(site: Site, d: Dialect, cluster: Cluster, host: Host) -> Json:
    out = site.core.out_of_reach(cluster.ext_id)
    hypervisor = {
        "externalAddress": d.ip(host.address),
        "fullName": "Nutanix 20230302.103014",
        "type": "AHV",
        "numberOfVms": site.core.usage.running[host.ext_id],
        "state": "ENTERED_MAINTENANCE_MODE" if host.maintenance else "ACROPOLIS_NORMAL",
        "acropolisConnectionState": "DISCONNECTED" if out else "CONNECTED",
    }
    gpus = [gpu.name for gpu in site.world.gpus if gpu.host in (host.name, host.ext_id)]
    return d.typed(
        f"{NS}.Host",
        {
            "extId": host.ext_id,
            "hostName": host.name,
            "hostType": "HYPER_CONVERGED",
            "hypervisor": d.typed(f"{NS}.HypervisorReference", hypervisor),
            "cluster": d.typed(f"{NS}.ClusterReference", {"uuid": cluster.ext_id, "name": cluster.name}),
            "isDegraded": False,
            "isSecureBooted": False,
            "isHardwareVirtualized": False,
            "numberOfCpuCores": host.cores,
            "numberOfCpuThreads": host.threads,
            "numberOfCpuSockets": host.sockets,
            "cpuCapacityHz": host.cores * 2_900_000_000,
            "cpuFrequencyHz": 2_900_000_000,
            "cpuModel": host.cpu_model,
            "gpuList": gpus or None,
            "memorySizeBytes": host.memory_bytes,
            "maintenanceState": "maintenance" if host.maintenance else "normal",
            "nodeStatus": "NORMAL",
            "blockModel": "Simulated",
        },
    )


def list_hosts(site: Site, call: Call) -> Answer:
    d = envelope.dialect_of(call)
    pairs = [(cluster, host) for cluster in site.world.clusters for host in cluster.hosts]
    return envelope.listed(call, HOSTS, pairs, lambda pair: host_view(site, d, *pair))


def list_cluster_hosts(site: Site, call: Call) -> Answer:
    d = envelope.dialect_of(call)
    cluster = site.find(site.world.clusters, call.params["clusterExtId"])
    return envelope.listed(call, CLUSTER_HOSTS, cluster.hosts, lambda host: host_view(site, d, cluster, host))


def get_host(site: Site, call: Call) -> Answer:
    cluster = site.find(site.world.clusters, call.params["clusterExtId"])
    for host in cluster.hosts:
        if host.ext_id == call.params["extId"]:
            view = host_view(site, envelope.dialect_of(call), cluster, host)
            return envelope.single(call, f"{NS}.GetHostApiResponse", view, version=cluster)
    raise missing("host", call.params["extId"])


def container_view(site: Site, d: Dialect, container: Container) -> Json:
    cluster = site.world.clusters.get(container.cluster)
    return d.typed(
        f"{NS}.StorageContainer",
        {
            "extId": container.ext_id,
            "containerExtId": container.ext_id,
            "name": container.name,
            "clusterExtId": container.cluster,
            "clusterName": cluster.name if cluster else None,
            "maxCapacityBytes": container.capacity_bytes,
            "logicalExplicitReservedCapacityBytes": 0,
            "logicalImplicitReservedCapacityBytes": 0,
            "replicationFactor": container.replication_factor,
            "isMarkedForRemoval": False,
            "isInternal": False,
            "isCompressionEnabled": True,
            "isEncrypted": False,
            "erasureCode": "OFF",
            "onDiskDedup": "OFF",
        },
    )


list_containers, get_container = readers(lambda world: world.containers, CONTAINERS, container_view)


def gpu_profile_view(site: Site, d: Dialect, gpu: GpuDevice) -> Json:
    used = [vm.ext_id for vm in site.world.vms for each in vm.gpus if each.device == gpu.ext_id]
    config: dict[str, Any] = {
        "deviceId": gpu.device_id,
        "deviceName": gpu.name,
        "vendorName": gpu.vendor,
        "isInUse": len(used) >= gpu.count,
        "assignable": gpu.count - len(used),
        "frameBufferSizeBytes": gpu.frame_buffer_bytes,
    }
    if gpu.mode == "VIRTUAL":
        config |= {"type": "VIRTUAL", "fraction": gpu.fraction, "numberOfVirtualDisplayHeads": 4}
        kind, field = "VirtualGpu", "virtualGpuConfig"
    else:
        config |= {"type": gpu.mode, "mode": "USED_FOR_PASSTHROUGH" if used else "UNUSED"}
        kind, field = "PhysicalGpu", "physicalGpuConfig"
    fields = {
        "extId": gpu.ext_id,
        field: d.typed(f"{NS}.{kind}Config", config),
        "allocatedVmExtIds": list(dict.fromkeys(used)) or None,
    }
    return d.typed(f"{NS}.{kind}Profile", fields)


def _gpus(site: Site, call: Call, listing: Listing, *, virtual: bool) -> Answer:
    d = envelope.dialect_of(call)
    cluster = site.find(site.world.clusters, call.params["clusterExtId"])
    devices = [gpu for gpu in site.world.gpus if gpu.cluster == cluster.ext_id and (gpu.mode == "VIRTUAL") == virtual]
    return envelope.listed(call, listing, devices, lambda gpu: gpu_profile_view(site, d, gpu))


def list_physical_gpus(site: Site, call: Call) -> Answer:
    return _gpus(site, call, PHYSICAL_GPUS, virtual=False)


def list_virtual_gpus(site: Site, call: Call) -> Answer:
    return _gpus(site, call, VIRTUAL_GPUS, virtual=True)
