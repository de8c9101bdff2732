"""networking: subnets, their addresses, reservations and NICs."""

from __future__ import annotations

import json
from ipaddress import ip_address, ip_network
from typing import Any, Final

import msgspec

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.core import Core, replace
from homeport.sim.prism.entity import Nic, Reservation, Subnet, Task, Vm, parse_range
from homeport.sim.prism.error import Refusal, conflict, invalid, missing, rejected
from homeport.sim.prism.rule import check_subnet
from homeport.sim.prism.site import Routes, Site
from homeport.sim.prism.usage import taken
from homeport.sim.prism.v4 import envelope
from homeport.sim.prism.v4.envelope import Dialect, Json, Listing
from homeport.sim.prism.v4.reading import readers
from homeport.sim.prism.world import derive_id

NS: Final = "networking.v4.config"
SUBNETS: Final = "/api/networking/{v}/config/subnets"
LARGEST_RESERVATION: Final = 1000
_TASK: Final = f"{NS}.TaskReferenceApiResponse"
LISTING: Final = envelope.listing(
    f"{NS}.Subnet",
    """bridgeName clusterName clusterNameList clusterReference clusterReferenceList description dhcpOptions
        dynamicIpAddresses extId externalDhcpServers hypervisorType ipConfig ipPrefix ipUsage isAdvancedNetworking
        isConnected isExternal isNatEnabled layer2StretchReference links metadata migrationState name
        networkFunctionChainReference networkId projectExtId reservedIpAddresses sharedWithProjects subnetType
        tenantId virtualSwitch virtualSwitchReference vpc vpcReference""",
    projected=True,
)
RESERVED: Final = Listing(
    f"{NS}.ListSubnetReservedIpsApiResponse",
    f"{NS}.ReservedIp",
    envelope.names("extId ipv4Address clientContext links tenantId"),
)
VNICS: Final = Listing(
    f"{NS}.ListSubnetVnicsApiResponse",
    f"{NS}.Vnic",
    envelope.names("extId macAddress vmReference assignedIpv4Addresses learnedIpv4Addresses links tenantId"),
)


def add_routes(routes: Routes) -> None:
    routes.add("GET", SUBNETS, list_subnets, LISTING.response_type)
    routes.add("POST", SUBNETS, create_subnet, _TASK, table="subnets", param="")
    one = f"{SUBNETS}/{{extId}}"
    routes.add("GET", one, get_subnet, f"{NS}.GetSubnetApiResponse", table="subnets")
    routes.add("PUT", one, update_subnet, _TASK, table="subnets")
    routes.add("DELETE", one, delete_subnet, _TASK, table="subnets")
    routes.add("POST", f"{one}/addresses/$actions/reserve", reserve, _TASK, table="subnets")
    routes.add("POST", f"{one}/addresses/$actions/unreserve", unreserve, _TASK, table="subnets")
    routes.add("GET", f"{one}/reserved-ips", list_reserved, RESERVED.response_type, table="subnets")
    routes.add("GET", f"{one}/vnics", list_vnics, VNICS.response_type, table="subnets")


def subnet_view(site: Site, d: Dialect, subnet: Subnet) -> Json:
    clusters = [cluster for each in subnet.clusters if (cluster := site.world.clusters.get(each)) is not None]
    fields: dict[str, Any] = {
        "extId": subnet.ext_id,
        "name": subnet.name,
        "description": subnet.description or None,
        "subnetType": subnet.type,
        "networkId": subnet.vlan if subnet.type == "VLAN" else None,
        "clusterReference": clusters[0].ext_id if clusters else None,
        "clusterReferenceList": [cluster.ext_id for cluster in clusters] or None,
        "clusterName": clusters[0].name if clusters else None,
        "vpcReference": subnet.vpc or None,
        "isNatEnabled": False if subnet.external else None,
        "isExternal": subnet.external,
        "isAdvancedNetworking": subnet.type == "OVERLAY",
        "hypervisorType": "acropolis",
        "bridgeName": "br0" if subnet.type == "VLAN" else None,
        "ipPrefix": subnet.cidr or None,
        "reservedIpAddresses": [d.ip(each.address) for each in subnet.reserved] or None,
        **_addressing(site, d, subnet),
    }
    return d.typed(f"{NS}.Subnet", fields)


list_subnets, get_subnet = readers(lambda world: world.subnets, LISTING, subnet_view)


def _addressing(site: Site, d: Dialect, subnet: Subnet) -> Json:
    if not subnet.managed:
        return {}
    network = ip_network(subnet.cidr)
    base = d.typed(
        f"{NS}.IPv4Subnet",
        {"ip": d.ipv4(str(network.network_address)), "prefixLength": network.prefixlen},
    )
    config = {
        "ipSubnet": base,
        "defaultGatewayIp": d.ipv4(subnet.gateway),
        "dhcpServerAddress": d.ipv4(subnet.dhcp_server),
        "poolList": [_pool(d, text) for text in subnet.pools] or None,
    }
    options = {
        "domainNameServers": [d.ip(address) for address in subnet.name_servers] or None,
        "domainName": subnet.domain or None,
    }
    return {
        "ipConfig": [d.typed(f"{NS}.IPConfig", {"ipv4": d.typed(f"{NS}.IPv4Config", config)})],
        "dhcpOptions": d.typed(f"{NS}.DhcpOptions", options),
        "ipUsage": _usage(site, d, subnet),
    }


def _usage(site: Site, d: Dialect, subnet: Subnet) -> Json:
    pools = site.core.usage.free_addresses(subnet)
    held = site.core.usage.held(subnet.ext_id)
    return d.typed(
        f"{NS}.IPUsage",
        {
            "numMacs": len(held),
            "numFreeIPs": sum(free for _, _, free in pools),
            "numAssignedIPs": len(held) + len(subnet.reserved),
            "ipPoolUsages": [
                d.typed(f"{NS}.IPPoolUsage", {"numFreeIPs": free, "numTotalIPs": total, "range": _pool(d, text)})
                for text, total, free in pools
            ]
            or None,
        },
    )


def _pool(d: Dialect, text: str) -> Json:
    first, last = parse_range(text)
    ends = {"startIp": d.ipv4(str(ip_address(first))), "endIp": d.ipv4(str(ip_address(last)))}
    return d.typed(f"{NS}.IPv4Pool", ends)


def read_subnet(body: Body, before: Subnet) -> Subnet:
    clusters = body.texts("clusterReferenceList") or (
        (body.text("clusterReference"),) if body.text("clusterReference") else before.clusters
    )
    subnet = replace(
        before,
        name=body.text("name", before.name),
        description=body.text("description", before.description),
        type=body.text("subnetType", before.type, choices=("VLAN", "OVERLAY")),
        vlan=body.integer("networkId", before.vlan),
        clusters=clusters,
        vpc=body.text("vpcReference", before.vpc),
        external=body.flag("isExternal", before.external),
    )
    options = body.object("dhcpOptions")
    if options is not None:
        servers = [each.object("ipv4") for each in options.objects("domainNameServers")]
        subnet = replace(subnet, name_servers=tuple(each.text("value") for each in servers if each is not None))
    for config in body.objects("ipConfig"):
        ipv4 = config.object("ipv4")
        if ipv4 is not None:
            subnet = _with_addressing(subnet, ipv4)
    return subnet


def _with_addressing(subnet: Subnet, ipv4: Body) -> Subnet:
    base = ipv4.object("ipSubnet")
    if base is None:
        raise invalid(f"{ipv4.path}.ipSubnet", "is required")
    pools = tuple(
        f"{pool.reference('startIp', 'value')}-{pool.reference('endIp', 'value')}" for pool in ipv4.objects("poolList")
    )
    cidr = f"{base.reference('ip', 'value')}/{base.integer('prefixLength')}"
    try:
        return replace(
            subnet,
            cidr=str(ip_network(cidr)),
            gateway=ipv4.reference("defaultGatewayIp", "value"),
            dhcp_server=ipv4.reference("dhcpServerAddress", "value"),
            pools=pools,
        )
    except ValueError as error:
        raise invalid(ipv4.path, str(error)) from error


def create_subnet(site: Site, call: Call) -> Answer:
    body = Body(call.body)
    subnet = read_subnet(body, Subnet(ext_id=site.core.new_id(), name=body.required_text("name")))
    check_subnet(site, subnet)
    task = site.start("kSubnetCreate", "subnet-put", {"subnet": msgspec.to_builtins(subnet)}, subnet, call.user)
    return envelope.accepted(call, _TASK, task.ext_id)


def update_subnet(site: Site, call: Call) -> Answer:
    before = site.find(site.world.subnets, call.params["extId"])
    envelope.check_match(call, before)
    subnet = read_subnet(Body(call.body), before)
    check_subnet(site, subnet)
    task = site.start("kSubnetUpdate", "subnet-put", {"subnet": msgspec.to_builtins(subnet)}, subnet, call.user)
    return envelope.accepted(call, _TASK, task.ext_id)


def delete_subnet(site: Site, call: Call) -> Answer:
    subnet = site.find(site.world.subnets, call.params["extId"])
    task = site.start("kSubnetDelete", "subnet-drop", {"subnet": subnet.ext_id}, subnet, call.user)
    return envelope.accepted(call, _TASK, task.ext_id)


def reserve(site: Site, call: Call) -> Answer:
    return _reservation(site, call, "kSubnetReserveIps", "subnet-reserve")


def unreserve(site: Site, call: Call) -> Answer:
    return _reservation(site, call, "kSubnetUnreserveIps", "subnet-unreserve")


def _reservation(site: Site, call: Call, operation: str, action: str) -> Answer:
    subnet = site.find(site.world.subnets, call.params["extId"])
    if not subnet.managed:
        raise rejected("", f"The subnet {subnet.name} has no address management.")
    body = Body(call.body)
    start = body.object("startIpAddress")
    first = start.reference("ipv4", "value") if start is not None else ""
    wanted = [each.reference("ipv4", "value") for each in body.objects("ipAddresses")]
    count = body.integer("count", len(wanted) or 1)
    if not 1 <= count <= LARGEST_RESERVATION:
        raise invalid("count", f"must be from 1 to {LARGEST_RESERVATION}")
    try:
        if first:
            wanted = [str(ip_address(int(ip_address(first)) + step)) for step in range(count)]
        wanted = [str(ip_address(each)) for each in wanted]
    except ValueError as error:
        raise invalid("ipAddresses", str(error)) from error
    arguments: dict[str, object] = {
        "subnet": subnet.ext_id,
        "addresses": wanted,
        "count": count,
        "context": body.text("clientContext"),
    }
    task = site.start(operation, action, arguments, subnet, call.user)
    return envelope.accepted(call, _TASK, task.ext_id)


def list_reserved(site: Site, call: Call) -> Answer:
    d = envelope.dialect_of(call)
    subnet = site.find(site.world.subnets, call.params["extId"])

    def view(each: Reservation) -> Json:
        fields = {
            "extId": derive_id(subnet.ext_id, each.address),
            "ipv4Address": each.address,
            "clientContext": each.context or None,
        }
        return d.typed(f"{NS}.ReservedIp", fields)

    return envelope.listed(call, RESERVED, subnet.reserved, view)


def list_vnics(site: Site, call: Call) -> Answer:
    d = envelope.dialect_of(call)
    subnet = site.find(site.world.subnets, call.params["extId"])

    def view(pair: tuple[Vm, Nic]) -> Json:
        vm, nic = pair
        fields = {
            "extId": nic.ext_id,
            "macAddress": nic.mac,
            "vmReference": vm.ext_id,
            "assignedIpv4Addresses": [d.ip(nic.address)] if nic.address else None,
            "learnedIpv4Addresses": [d.ip(address) for address in nic.learned] or None,
        }
        return d.typed(f"{NS}.Vnic", fields)

    pairs = [(vm, nic) for vm in site.world.vms for nic in vm.nics if nic.subnet == subnet.ext_id]
    return envelope.listed(call, VNICS, pairs, view)


def perform_put(core: Core, task: Task) -> None:
    core.put(core.world.subnets, msgspec.convert(task.arguments["subnet"], Subnet))


def perform_drop(core: Core, task: Task) -> None:
    subnet = _subnet(core, task)
    if any(nic.subnet == subnet.ext_id for vm in core.world.vms for nic in vm.nics):
        raise conflict(f"The subnet {subnet.name} is used by VMs.", group="SUBNET_IN_USE")
    core.drop(core.world.subnets, subnet.ext_id)


def _subnet(core: Core, task: Task) -> Subnet:
    subnet = core.world.subnets.get(task.arguments["subnet"])
    if subnet is None:
        raise missing("subnet", task.arguments["subnet"])
    return subnet


def perform_reserve(core: Core, task: Task) -> dict[str, str]:
    subnet = _subnet(core, task)
    held = core.usage.held(subnet.ext_id)
    known = {each.address for each in subnet.reserved}
    addresses: list[str] = list(task.arguments["addresses"])
    for address in addresses:
        if address in held or address in known:
            raise taken(address, subnet)
    while len(addresses) < task.arguments["count"]:
        address = core.usage.take_address(subnet, "reservation", not_these=addresses)
        core.usage.held(subnet.ext_id).pop(address, None)
        addresses.append(address)
    reserved = tuple(Reservation(address, task.arguments["context"]) for address in addresses)
    core.put(core.world.subnets, subnet, reserved=(*subnet.reserved, *reserved))
    return {"reserved_ips": json.dumps({"reserved_ips": addresses})}


def perform_unreserve(core: Core, task: Task) -> None:
    subnet = _subnet(core, task)
    addresses, context = set(task.arguments["addresses"]), task.arguments["context"]
    gone = {
        each.address
        for each in subnet.reserved
        if each.address in addresses or (not addresses and context and each.context == context)
    }
    if addresses - gone:
        raise Refusal(400, f"Not reserved: {', '.join(sorted(addresses - gone))}.", "", "IP_ADDRESS_NOT_RESERVED")
    core.put(core.world.subnets, subnet, reserved=tuple(each for each in subnet.reserved if each.address not in gone))
