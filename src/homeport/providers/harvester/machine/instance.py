"""A VM as an instance: whose it is, what it reports, and what is wrong with it."""

from __future__ import annotations

from homeport.api.meta import Unstructured
from homeport.capi.cloud import Address
from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured
from homeport.infra.protocol import Instance
from homeport.machinery import condition
from homeport.providers.harvester.infracluster.belonging import holder_of
from homeport.providers.harvester.infracluster.resource import (
    CLAIM_TEMPLATES,
    MACHINE_NAME,
    MACHINE_NAMESPACE,
    MACHINE_UID,
)
from homeport.providers.harvester.machine import shape
from homeport.providers.harvester.machine.observation import (
    HARVESTER,
    KUBEVIRT,
    Machine,
    addresses_of,
    conditions_of,
    network_names,
    power_of,
    rendered,
    vm_id,
)
from homeport.providers.harvester.machine.plan import (
    Scope,
)
from homeport.runtime.cache import labels_of

MIGRATABLE = "VMLiveMigratable"


def check_shape(scope: Scope) -> None:
    """For objects that no admission has seen. Raises Misconfigured."""
    template = scope.infra.spec.virtual_machine_template
    vm = {"metadata": template.metadata, "spec": template.spec}
    for cause in shape.wrong(vm, shape.VIRTUAL_MACHINE, "spec.virtualMachineTemplate"):
        raise Misconfigured(f"{cause.field}: {cause.message}")
    inner = (template.spec.get("template") or {}).get("spec") or {}
    claims = (template.metadata.get("annotations") or {}).get(CLAIM_TEMPLATES)
    own = inner.get("volumes") or template.spec.get("dataVolumeTemplates") or claims
    if not own and scope.infra.spec.boot_disk is None:
        text = "is required, because spec.virtualMachineTemplate has no volume to boot from: give the name of an image"
        raise Misconfigured(f"spec.bootDisk: {text}")


def taken_text(kind: str, key: Key, found: Unstructured) -> str:
    return (
        f"{kind} {key} exists and was not created for this machine: it {holder_of(found)}: delete the Machine, so that "
        "one with another name replaces it, or set another namespace in spec.virtualMachineTemplate.metadata.namespace"
    )


def is_ours(scope: Scope, vm: Unstructured) -> bool:
    """By the UID on it, or because we know the VM's own UID. Upstream wrote neither, but its name and namespace."""
    labels, known = labels_of(vm), scope.infra.spec.provider_id
    if labels.get(MACHINE_UID) == scope.uid or (vm.uid and vm.uid == vm_id(known)):
        return True
    meta = scope.infra.metadata
    upstream = MACHINE_UID not in labels and known == f"{KUBEVIRT}{vm.name}"
    named = (labels.get(MACHINE_NAME), labels.get(MACHINE_NAMESPACE)) == (meta.name, meta.namespace)
    return upstream and named


def is_our_instance(scope: Scope, vmi: Unstructured) -> bool:
    owners = {each.get("uid") for each in vmi.metadata.get("ownerReferences") or ()}
    return labels_of(vmi).get(MACHINE_UID) == scope.uid or vm_id(scope.infra.spec.provider_id) in owners


def render_instance(scope: Scope, machine: Machine, *, complete: bool = True) -> Instance:
    vm, power = machine.vm, power_of(machine)
    found = addresses_of(machine, virtual=scope.endpoint, first=scope.family)
    if not found and power == "on":
        found = _static_addresses(scope)
    known = scope.infra.spec.provider_id
    prefix = HARVESTER if scope.session.harvester else KUBEVIRT
    addresses: tuple[Address, ...] = rendered(found, vm.name)
    return Instance(
        id=vm.uid,
        # What a Node was once told stays: upstream's form has no UID.
        provider_id=known if known == f"{KUBEVIRT}{vm.name}" or vm_id(known) == vm.uid else f"{prefix}{vm.uid}",
        name=vm.name,
        power=power,
        addresses=addresses,
        failure_domain=scope.failure_domain,
        complete=complete,
        vendor=machine,
    )


def _static_addresses(scope: Scope) -> list[str]:
    """Those of pools: the machine has them whether or not an agent reports them. Later on its status knows them."""
    if not scope.infra.spec.addresses_from_pools:
        return []
    known = [each.address for each in scope.infra.status.addresses if each.type == "InternalIP"]
    return [each.address for each in scope.addresses] or known


def report_migratable(scope: Scope, machine: Machine) -> None:
    found = condition.find(conditions_of(machine.vmi), "LiveMigratable")
    if found is not None:
        good = found.get("status") == "True"
        said = "" if good else str(found.get("message") or "")
        scope.report(MIGRATABLE, good, "Succeeded" if good else str(found.get("reason") or "NotMigratable"), said)


def no_address_text(machine: Machine) -> str:
    networks = ", ".join(network_names(machine.vm)) or "its network"
    return (
        f"VM {name_of(machine.vm)} has no address yet: check that the image runs qemu-guest-agent, that "
        f"{networks} has a DHCP server, and that the switch carries its VLAN to the hosts (the API does not show that)"
    )


def deletion_text(vm: Unstructured) -> str:
    """How far it is: a VM that stays in deletion waits for whoever has to remove a finalizer."""
    text, since = f"VM {name_of(vm)} is being deleted", vm.metadata.get("deletionTimestamp")
    held = ", ".join(vm.metadata.get("finalizers") or ())
    return f"{text} since {since}{f' and held by {held}' if held else ''}" if since else text


def name_of(vm: Unstructured) -> str:
    return f"{vm.namespace}/{vm.name}"
