"""Subnets in v3."""

from __future__ import annotations

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.core import replace
from homeport.sim.prism.entity import Subnet
from homeport.sim.prism.error import invalid
from homeport.sim.prism.rule import check_subnet
from homeport.sim.prism.site import Handlers, Routes, Site
from homeport.sim.prism.v3 import envelope
from homeport.sim.prism.v3.envelope import Json


def add_routes(routes: Routes) -> None:
    handlers = Handlers(list_subnets, create_subnet, get_subnet, update_subnet, delete_subnet)
    envelope.add_entity_routes(routes, "subnets", handlers)


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
        spec["cluster_reference"] = envelope.reference("cluster", subnet.clusters[0], cluster.name if cluster else "")
    if subnet.description:
        spec["description"] = subnet.description
    status = {**spec, "state": "COMPLETE", "resources": {**resources, "ip_usage_stats": stats}}
    return envelope.entity_view(envelope.metadata(site, "subnet", subnet), spec, status)


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
        return {**envelope.named(subnet), "vlan_id": subnet.vlan, "subnet_type": subnet.type}

    return envelope.listed(call, "subnet", tuple(site.world.subnets), lambda each: subnet_view(site, each), values)


def get_subnet(site: Site, call: Call) -> Answer:
    return Answer(200, subnet_view(site, site.find(site.world.subnets, call.params["uuid"])))


def _read_subnet(before: Subnet, spec: Body, resources: Body) -> Subnet:
    cluster = spec.reference("cluster_reference", "uuid")
    subnet = replace(
        before,
        name=spec.required_text("name"),
        description=spec.text("description"),
        type=resources.text("subnet_type", before.type, choices=("VLAN", "OVERLAY")),
        vlan=resources.integer("vlan_id", before.vlan),
        clusters=(cluster,) if cluster else before.clusters,
    )
    config = resources.object("ip_config")
    if config is None:
        return subnet
    options = config.object("dhcp_options")
    try:
        return replace(
            subnet,
            cidr=f"{config.required_text('subnet_ip')}/{config.integer('prefix_length', 24)}",
            gateway=config.text("default_gateway_ip"),
            pools=tuple(each.required_text("range").replace(" ", "-") for each in config.objects("pool_list")),
            dhcp_server=config.reference("dhcp_server_address", "ip"),
            name_servers=options.texts("domain_name_server_list") if options is not None else subnet.name_servers,
        )
    except ValueError as error:
        raise invalid("spec.resources.ip_config", str(error)) from error


def create_subnet(site: Site, call: Call) -> Answer:
    spec, _, resources = envelope.spec_of(call)
    subnet = _read_subnet(Subnet(ext_id=site.core.new_id(), name=""), spec, resources)
    check_subnet(site, subnet)
    return envelope.put(site, call, "subnet", subnet, spec)


def update_subnet(site: Site, call: Call) -> Answer:
    before = site.find(site.world.subnets, call.params["uuid"])
    spec, meta, resources = envelope.spec_of(call)
    envelope.check_version(before.version - 1, meta)
    subnet = _read_subnet(before, spec, resources)
    check_subnet(site, subnet)
    return envelope.put(site, call, "subnet", subnet, spec, before.version - 1)


def delete_subnet(site: Site, call: Call) -> Answer:
    subnet = site.find(site.world.subnets, call.params["uuid"])
    return envelope.deleting(
        site.start("kSubnetDelete", "subnet-drop", {"subnet": subnet.ext_id}, subnet, call.user).ext_id
    )
