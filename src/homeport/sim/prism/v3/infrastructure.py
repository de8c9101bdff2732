"""Clusters, hosts, subnets, images, projects, tasks and the caller, in v3."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from homeport.runtime.clock import rfc3339
from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.core import replace
from homeport.sim.prism.entity import GIB, MIB, Cluster, Entity, Host, Image, Project, Subnet, Task, User
from homeport.sim.prism.error import Refusal, invalid, missing
from homeport.sim.prism.site import Routes, Site
from homeport.sim.prism.task import bare_id
from homeport.sim.prism.v3.envelope import (
    BASE,
    VERSION,
    Json,
    categories,
    deleting,
    entity_view,
    listed,
    metadata,
    pending,
    reference,
)
from homeport.sim.prism.v4.image import check_image, guess_os
from homeport.sim.prism.v4.networking import check_subnet

_TASK_STATUS: Final = {"CANCELED": "ABORTED"}


def add_routes(routes: Routes) -> None:
    for kind, lister, getter, table in (
        ("clusters", list_clusters, get_cluster, "clusters"),
        ("hosts", list_hosts, get_host, ""),
        ("subnets", list_subnets, get_subnet, "subnets"),
        ("images", list_images, get_image, "images"),
        ("projects", list_projects, get_project, "projects"),
        ("tasks", list_tasks, get_task, "tasks"),
    ):
        routes.add("POST", f"{BASE}/{kind}/list", lister, reads=True)
        routes.add("GET", f"{BASE}/{kind}/{{uuid}}", getter, table=table, param="uuid")
    routes.add("GET", f"{BASE}/users/me", me)
    routes.add("POST", f"{BASE}/users/list", list_users, reads=True)
    routes.add("POST", f"{BASE}/tasks/poll", poll_tasks, reads=True)
    for kind, create, update, delete in (
        ("images", create_image, update_image, delete_image),
        ("subnets", create_subnet, update_subnet, delete_subnet),
    ):
        routes.add("POST", f"{BASE}/{kind}", create, table=kind, param="")
        routes.add("PUT", f"{BASE}/{kind}/{{uuid}}", update, table=kind, param="uuid")
        routes.add("DELETE", f"{BASE}/{kind}/{{uuid}}", delete, table=kind, param="uuid")


def _values(entity: Entity) -> Json:
    return {"name": getattr(entity, "name", ""), "uuid": entity.ext_id}


# Clusters and hosts.


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
    meta = metadata(site, "cluster", cluster, **categories(site, cluster.categories))
    return entity_view(meta, {"name": cluster.name, "resources": {"network": network}}, status)


def list_clusters(site: Site, call: Call) -> Answer:
    return listed(call, "cluster", tuple(site.world.clusters), lambda each: cluster_view(site, each), _values)


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
        "cluster_reference": reference("cluster", cluster.ext_id),
    }
    return entity_view(metadata(site, "host", entity), {"name": host.name, "resources": {}}, status)


def list_hosts(site: Site, call: Call) -> Answer:
    return listed(call, "host", _hosts(site), lambda each: host_view(site, each), _values)


def get_host(site: Site, call: Call) -> Answer:
    for entity in _hosts(site):
        if entity.ext_id == call.params["uuid"]:
            return Answer(200, host_view(site, entity))
    raise missing("host", call.params["uuid"])


# Subnets.


def subnet_view(site: Site, subnet: Subnet) -> Json:
    resources: Json = {"subnet_type": subnet.type}
    if subnet.type == "VLAN":
        resources |= {"vlan_id": subnet.vlan, "vswitch_name": "br0"}
    if subnet.managed:
        resources["ip_config"] = _ip_config(subnet)
    pools = site.core.usage.free_addresses(subnet)
    held = site.core.usage.held(subnet.ext_id)
    stats = {
        "num_macs": len(held),
        "num_free_ips": sum(free for _, _, free in pools),
        "num_assigned_ips": len(held) + len(subnet.reserved),
        "ip_pools_stats": [
            {"range": text.replace("-", " "), "num_total_ips": total, "num_free_ips": free}
            for text, total, free in pools
        ],
    }
    spec: Json = {"name": subnet.name, "resources": resources}
    if subnet.clusters:
        cluster = site.world.clusters.get(subnet.clusters[0])
        spec["cluster_reference"] = reference("cluster", subnet.clusters[0], cluster.name if cluster else "")
    if subnet.description:
        spec["description"] = subnet.description
    status = {**spec, "state": "COMPLETE", "resources": {**resources, "ip_usage_stats": stats}}
    return entity_view(metadata(site, "subnet", subnet), spec, status)


def _ip_config(subnet: Subnet) -> Json:
    address, _, prefix = subnet.cidr.partition("/")
    found: Json = {
        "subnet_ip": address,
        "prefix_length": int(prefix),
        "default_gateway_ip": subnet.gateway,
        "pool_list": [{"range": text.replace("-", " ")} for text in subnet.pools],
        "dhcp_options": {"domain_name_server_list": list(subnet.name_servers)},
    }
    if subnet.dhcp_server:
        found["dhcp_server_address"] = {"ip": subnet.dhcp_server}
    return found


def list_subnets(site: Site, call: Call) -> Answer:
    def values(subnet: Subnet) -> Json:
        return {**_values(subnet), "vlan_id": subnet.vlan, "subnet_type": subnet.type}

    return listed(call, "subnet", tuple(site.world.subnets), lambda each: subnet_view(site, each), values)


def get_subnet(site: Site, call: Call) -> Answer:
    return Answer(200, subnet_view(site, site.find(site.world.subnets, call.params["uuid"])))


def _spec(call: Call) -> tuple[Body, Body, Body]:
    body = Body(call.body)
    spec, meta = body.object("spec"), body.object("metadata")
    if spec is None or meta is None:
        raise invalid("spec" if spec is None else "metadata", "is a required property")
    return spec, meta, spec.object("resources") or Body({}, "spec.resources")


def _read_subnet(before: Subnet, spec: Body, resources: Body) -> Subnet:
    cluster = spec.reference("cluster_reference", "uuid")
    subnet = replace(
        before,
        name=spec.required_text("name"),
        description=spec.text("description"),
        type=resources.text("subnet_type", before.type, choices=("VLAN", "OVERLAY")),
        vlan=resources.whole("vlan_id", before.vlan),
        clusters=(cluster,) if cluster else before.clusters,
    )
    config = resources.object("ip_config")
    if config is None:
        return subnet
    options = config.object("dhcp_options")
    try:
        return replace(
            subnet,
            cidr=f"{config.required_text('subnet_ip')}/{config.whole('prefix_length', 24)}",
            gateway=config.text("default_gateway_ip"),
            pools=tuple(each.required_text("range").replace(" ", "-") for each in config.objects("pool_list")),
            dhcp_server=config.reference("dhcp_server_address", "ip"),
            name_servers=options.texts("domain_name_server_list") if options is not None else subnet.name_servers,
        )
    except ValueError as error:
        raise invalid("spec.resources.ip_config", str(error)) from error


def create_subnet(site: Site, call: Call) -> Answer:
    spec, _, resources = _spec(call)
    subnet = _read_subnet(Subnet(ext_id=site.core.new_id(), name=""), spec, resources)
    check_subnet(site, subnet)
    task = site.start("kSubnetCreate", "subnet-put", {"subnet": msgspec.to_builtins(subnet)}, subnet, call.user)
    return pending("subnet", subnet.ext_id, 0, spec.value, task.ext_id)


def update_subnet(site: Site, call: Call) -> Answer:
    before = site.find(site.world.subnets, call.params["uuid"])
    spec, meta, resources = _spec(call)
    check_version(before, meta)
    subnet = _read_subnet(before, spec, resources)
    check_subnet(site, subnet)
    task = site.start("kSubnetUpdate", "subnet-put", {"subnet": msgspec.to_builtins(subnet)}, subnet, call.user)
    return pending("subnet", subnet.ext_id, before.version - 1, spec.value, task.ext_id)


def delete_subnet(site: Site, call: Call) -> Answer:
    subnet = site.find(site.world.subnets, call.params["uuid"])
    return deleting(site.start("kSubnetDelete", "subnet-drop", {"subnet": subnet.ext_id}, subnet, call.user).ext_id)


def check_version(entity: Entity, meta: Body) -> None:
    given = meta.whole("spec_version", -1)
    if 0 <= given < entity.version - 1:
        message = f"Edit conflict: please verify that spec version {given} is the latest ({entity.version - 1})."
        raise Refusal(409, message, "", "", "CONCURRENT_REQUESTS_NOT_ALLOWED")


# Images.


def image_view(site: Site, image: Image) -> Json:
    resources: Json = {"image_type": image.type, "architecture": "X86_64"}
    if image.source:
        resources["source_uri"] = image.source
    if image.checksum.startswith("sha256:"):
        resources["checksum"] = {"checksum_algorithm": "SHA_256", "checksum_value": image.checksum[7:]}
    spec: Json = {"name": image.name, "resources": resources}
    if image.description:
        spec["description"] = image.description
    placed = list(image.clusters) or [each.ext_id for each in site.world.clusters if not each.central]
    status = {
        **spec,
        "state": "COMPLETE",
        "resources": {
            **resources,
            "size_bytes": image.size_bytes,
            "current_cluster_reference_list": [reference("cluster", each) for each in placed],
        },
    }
    return entity_view(metadata(site, "image", image, **categories(site, image.categories)), spec, status)


def list_images(site: Site, call: Call) -> Answer:
    def values(image: Image) -> Json:
        return {**_values(image), "image_type": image.type}

    return listed(call, "image", tuple(site.world.images), lambda each: image_view(site, each), values)


def get_image(site: Site, call: Call) -> Answer:
    return Answer(200, image_view(site, site.find(site.world.images, call.params["uuid"])))


def _read_image(before: Image, spec: Body, resources: Body) -> Image:
    kind: Any = resources.text("image_type", before.type, choices=("DISK_IMAGE", "ISO_IMAGE"))
    return replace(
        before,
        name=spec.required_text("name"),
        description=spec.text("description"),
        type=kind,
        source=resources.text("source_uri", before.source),
    )


def create_image(site: Site, call: Call) -> Answer:
    spec, _, resources = _spec(call)
    image = _read_image(Image(ext_id=site.core.new_id(), name="", size_bytes=10 * GIB), spec, resources)
    image = replace(image, os=guess_os(image.name))
    task = site.start("kImageCreate", "image-put", {"image": msgspec.to_builtins(image)}, image, call.user)
    return pending("image", image.ext_id, 0, spec.value, task.ext_id)


def update_image(site: Site, call: Call) -> Answer:
    before = site.find(site.world.images, call.params["uuid"])
    spec, meta, resources = _spec(call)
    check_version(before, meta)
    image = _read_image(before, spec, resources)
    check_image(site, image)
    task = site.start("kImageUpdate", "image-put", {"image": msgspec.to_builtins(image)}, image, call.user)
    return pending("image", image.ext_id, before.version - 1, spec.value, task.ext_id)


def delete_image(site: Site, call: Call) -> Answer:
    image = site.find(site.world.images, call.params["uuid"])
    return deleting(site.start("kImageDelete", "image-drop", {"image": image.ext_id}, image, call.user).ext_id)


# Projects and people.


def project_view(site: Site, project: Project) -> Json:
    limits = (
        ("VCPUS", project.vcpu_limit, site.core.usage.project_vcpus[project.ext_id]),
        ("MEMORY", project.memory_limit_bytes, site.core.usage.project_memory[project.ext_id]),
        ("STORAGE", project.storage_limit_bytes, site.core.usage.project_storage[project.ext_id]),
    )
    units = {"VCPUS": "COUNT", "MEMORY": "BYTES", "STORAGE": "BYTES"}
    domain = {
        "resources": [
            {"resource_type": kind, "limit": limit, "units": units[kind]} for kind, limit, _ in limits if limit
        ]
    }
    used = {
        "resources": [
            {"resource_type": kind, "limit": limit, "units": units[kind], "value": value}
            for kind, limit, value in limits
        ]
    }
    resources: Json = {
        "subnet_reference_list": [reference("subnet", each) for each in project.subnets],
        "cluster_reference_list": [reference("cluster", each) for each in project.clusters],
        "user_reference_list": [],
        "external_user_group_reference_list": [],
    }
    spec: Json = {"name": project.name, "resources": {**resources, "resource_domain": domain}}
    if project.description:
        spec["description"] = project.description
    status = {
        **spec,
        "state": "COMPLETE",
        "resources": {**resources, "is_default": project.default, "resource_domain": used},
    }
    return entity_view({**metadata(site, "project", project), "name": project.name}, spec, status)


def list_projects(site: Site, call: Call) -> Answer:
    return listed(call, "project", tuple(site.world.projects), lambda each: project_view(site, each), _values)


def get_project(site: Site, call: Call) -> Answer:
    return Answer(200, project_view(site, site.find(site.world.projects, call.params["uuid"])))


def user_view(site: Site, user: User) -> Json:
    resources = {
        "user_type": "LOCAL",
        "display_name": user.display_name or user.name,
        "projects_reference_list": [],
        "access_control_policy_reference_list": [],
    }
    status = {"name": user.name, "state": "COMPLETE", "resources": resources}
    return entity_view(metadata(site, "user", user), {"resources": {}}, status)


def me(site: Site, call: Call) -> Answer:
    user = site.world.user(call.user)
    if user is None:
        raise missing("user", call.user)
    return Answer(200, user_view(site, user))


def list_users(site: Site, call: Call) -> Answer:
    return listed(call, "user", tuple(site.world.users), lambda each: user_view(site, each), _values)


# Tasks.


def task_view(site: Site, kept: Task) -> Json:
    task = site.tasks.shown(kept)
    found: Json = {
        "api_version": VERSION,
        "uuid": task.ext_id,
        "operation_type": task.operation,
        "status": _TASK_STATUS.get(task.status, task.status),
        "percentage_complete": task.progress,
        "progress_message": "",
        "creation_time": rfc3339(task.created),
        "creation_time_usecs": int(task.created * 1_000_000),
        "start_time": rfc3339(task.started),
        "start_time_usecs": int(task.started * 1_000_000),
        "last_update_time": rfc3339(task.completed or task.updated),
        "logical_timestamp": task.version,
        "entity_reference_list": [reference(each.kind, each.ext_id, each.name) for each in task.affected],
        "subtask_reference_list": [reference("task", each) for each in task.children],
    }
    if task.cluster:
        found["cluster_reference"] = reference("cluster", task.cluster)
    if task.parent:
        found["parent_task_reference"] = reference("task", task.parent)
    if task.completed:
        found["completion_time"] = rfc3339(task.completed)
        found["completion_time_usecs"] = int(task.completed * 1_000_000)
    if task.failure is not None:
        found["error_code"] = task.failure.group or "INTERNAL_ERROR"
        found["error_detail"] = task.failure.message
    return found


def get_task(site: Site, call: Call) -> Answer:
    task = site.world.tasks.get(bare_id(call.params["uuid"]))
    if task is None:
        raise missing("task", call.params["uuid"])
    return Answer(200, task_view(site, site.tasks.read(task)))


def list_tasks(site: Site, call: Call) -> Answer:
    def values(task: Task) -> Json:
        shown = site.tasks.shown(task)
        return {
            "status": shown.status,
            "operation_type": task.operation,
            "uuid": task.ext_id,
            "entity_reference_list": [each.ext_id for each in task.affected],
        }

    newest = tuple(site.world.tasks)[::-1]
    return listed(call, "task", newest, lambda each: task_view(site, each), values)


def poll_tasks(site: Site, call: Call) -> Answer:
    wanted = Body(call.body).texts("task_uuid_list")
    found = [site.world.tasks.get(each) for each in wanted]
    views = [task_view(site, site.tasks.read(each)) for each in found if each is not None]
    return Answer(200, {"api_version": VERSION, "is_timed_out": False, "task_list": views})
