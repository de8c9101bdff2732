"""What kinds of the KubeVirt provider may say: found out when they are applied, not minutes later in a loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.kubevirt.v1alpha1 import (
    KubevirtCluster,
    KubevirtClusterTemplate,
    KubevirtMachine,
    KubevirtMachineTemplate,
)
from homeport.api.meta import wire
from homeport.capi.family import wrong_endpoint
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.object.template import immutable
from homeport.client.errors import ApiError, Cause
from homeport.client.protocol import Client, Key
from homeport.infra.cluster.admission import endpoint_causes
from homeport.infra.error import Misconfigured
from homeport.machinery.quantity import QuantityError, parse_quantity
from homeport.machinery.schema.name import dns_label
from homeport.providers.harvester.infracluster.resource import CLAIM_TEMPLATES
from homeport.providers.harvester.machine import shape
from homeport.providers.harvester.machine.disk import parse_claim_templates
from homeport.providers.harvester.machine.plan import BOOT, CLOUD_INIT
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]
_DRY_RUN = "topology.cluster.x-k8s.io/dry-run"
_POOL_GROUP = "ipam.cluster.x-k8s.io"
_TOP_SPEC = "spec"
_TEMPLATE_SPEC = "spec.template.spec"
_STRATEGIES = ("Always", "RerunOnFailure", "Halted", "Manual", "Once", "WaitAsReceiver")

KINDS = (KubevirtMachine, KubevirtMachineTemplate, KubevirtCluster, KubevirtClusterTemplate)


def register(hooks: Hooks, client: Client) -> None:
    """`client` reads the KubevirtCluster of a new machine."""
    hooks.add(KubevirtMachine, default=Secrets(client).fill)
    hooks.add(KubevirtMachine, default=default_machine, validate=validate_machine)
    hooks.add(KubevirtMachineTemplate, default=default_template, validate=validate_template)
    hooks.add(KubevirtCluster, validate=validate_cluster)
    hooks.add(KubevirtClusterTemplate, validate=validate_cluster_template)


class Secrets:
    """A machine keeps the Secret of its cluster, so that it can be deleted even without the cluster's object."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def fill(self, obj: Json, old: Json | None) -> None:
        meta, spec = obj.get("metadata") or {}, obj.setdefault("spec", {})
        name = (meta.get("labels") or {}).get(CLUSTER_NAME_LABEL)
        if old is not None or not name or spec.get("infraClusterSecretRef"):
            return
        namespace = str(meta.get("namespace") or "")
        try:
            cluster = await self._client.get(Cluster, Key(namespace, name))
            ref = cluster.spec.infrastructure_ref
            if ref is None or ref.kind != KubevirtCluster.__resource__.kind:
                return
            infra = await self._client.get(KubevirtCluster, Key(namespace, ref.name))
        except ApiError:
            return  # without it the cluster's own counts
        if infra.spec.infra_cluster_secret_ref is not None:
            spec["infraClusterSecretRef"] = wire(infra.spec.infra_cluster_secret_ref)


# -- machines ----------------------------------------------------------------------------------------------------


def default_machine(obj: Json, old: Json | None) -> None:
    del old
    _default_spec(obj.setdefault("spec", {}))


def default_template(obj: Json, old: Json | None) -> None:
    del old
    _default_spec(obj.setdefault("spec", {}).setdefault("template", {}).setdefault("spec", {}))


def _default_spec(spec: Json) -> None:
    for pool in spec.get("addressesFromPools") or ():
        if isinstance(pool, dict):
            pool.setdefault("apiGroup", _POOL_GROUP)


def validate_machine(obj: Json, old: Json | None) -> list[Cause]:
    changed = old is None or old.get("spec") != obj.get("spec")
    return list(_machine_causes(obj.get("spec") or {}, _TOP_SPEC)) if changed else []


def validate_template(obj: Json, old: Json | None) -> list[Cause]:
    spec = _template_spec(obj)
    if old is not None and _template_spec(old) == spec:
        return []
    causes = list(_machine_causes(spec, _TEMPLATE_SPEC))
    if old is not None and _DRY_RUN not in (obj["metadata"].get("annotations") or {}):
        causes.append(Cause.forbidden(_TEMPLATE_SPEC, immutable(obj)))
    return causes


def _template_spec(obj: Json) -> Json:
    return ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}


def _machine_causes(spec: Json, path: str) -> Iterator[Cause]:
    vm = spec.get("virtualMachineTemplate") or {}
    wrong = list(shape.wrong(vm, shape.VIRTUAL_MACHINE, f"{path}.virtualMachineTemplate"))
    if wrong:
        yield from wrong  # nothing else can be read
        return
    namespace = (vm.get("metadata") or {}).get("namespace")
    for text in dns_label(namespace) if namespace else ():
        yield Cause.invalid(f"{path}.virtualMachineTemplate.metadata.namespace", f"{namespace!r}: {text}")
    yield from _vm_causes(vm.get("spec") or {}, f"{path}.virtualMachineTemplate.spec")
    disk = spec.get("bootDisk")
    if disk is not None and disk.get("size") not in (None, ""):
        yield from _size_causes(disk["size"], f"{path}.bootDisk.size")
    names = [BOOT] if disk is not None else []
    volumes = _volume_names(vm.get("spec") or {})
    for number, each in enumerate(spec.get("dataDisks") or ()):
        where = f"{path}.dataDisks[{number}]"
        yield from _size_causes(each.get("size", ""), f"{where}.size")
        if each.get("name") in (*names, *volumes, CLOUD_INIT):
            yield Cause("FieldValueDuplicate", f"Duplicate value: {each.get('name')!r}", f"{where}.name")
        names.append(str(each.get("name")))
    if disk is not None and BOOT in volumes:
        text = f"volume {BOOT!r} is the one of bootDisk: rename it, or remove bootDisk"
        yield Cause.invalid(f"{path}.virtualMachineTemplate.spec.template.spec.volumes", text)
    networks = _inner(vm.get("spec") or {}).get("networks") or ()
    pools = spec.get("addressesFromPools") or ()
    if len(pools) > len(networks):
        text = f"{len(pools)} pools for {len(networks)} networks; name a network for each, in the same order"
        yield Cause.invalid(f"{path}.addressesFromPools", text)
    claims = ((vm.get("metadata") or {}).get("annotations") or {}).get(CLAIM_TEMPLATES)
    if claims:
        try:
            parse_claim_templates(str(claims))
        except Misconfigured as error:
            said = error.message.partition("]: ")[2]
            yield Cause.invalid(f"{path}.virtualMachineTemplate.metadata.annotations[{CLAIM_TEMPLATES}]", said)


def _vm_causes(vm: Json, path: str) -> Iterator[Cause]:
    """The parts of a VirtualMachine that are read here. All others are checked where it is created."""
    strategy = vm.get("runStrategy")
    if strategy is not None and strategy not in _STRATEGIES:
        text = f'Unsupported value: "{strategy}": supported values: {", ".join(_STRATEGIES)}'
        yield Cause("FieldValueNotSupported", text, f"{path}.runStrategy")
    if strategy is not None and vm.get("running") is not None:
        yield Cause.invalid(f"{path}.running", "set either running or runStrategy, not both")
    inner, where = _inner(vm), f"{path}.template.spec"
    yield from _domain_causes(inner.get("domain") or {}, f"{where}.domain")
    seen: set[str] = set()
    for number, network in enumerate(inner.get("networks") or ()):
        at = f"{where}.networks[{number}]"
        name = str(network.get("name") or "") if isinstance(network, dict) else ""
        if not name:
            yield Cause("FieldValueRequired", "Required value", f"{at}.name")
            continue
        if name in seen:
            yield Cause("FieldValueDuplicate", f"Duplicate value: {name!r}", f"{at}.name")
        seen.add(name)
        multus = network.get("multus")
        if multus is not None and not str(multus.get("networkName") or ""):
            text = "Required value: write NAMESPACE/NAME of a VM network, for example default/workloads"
            yield Cause("FieldValueRequired", text, f"{at}.multus.networkName")
    for number, volume in enumerate(inner.get("volumes") or ()):
        if not isinstance(volume, dict) or not volume.get("name"):
            yield Cause("FieldValueRequired", "Required value", f"{where}.volumes[{number}].name")
        elif volume["name"] == CLOUD_INIT:
            yield Cause.invalid(
                f"{where}.volumes[{number}].name", f"{CLOUD_INIT!r} is the volume of the user data: rename it"
            )
    for number, each in enumerate(vm.get("dataVolumeTemplates") or ()):
        if not ((each or {}).get("metadata") or {}).get("name"):
            yield Cause("FieldValueRequired", "Required value", f"{path}.dataVolumeTemplates[{number}].metadata.name")


def _domain_causes(domain: Json, path: str) -> Iterator[Cause]:
    for field in ("cores", "sockets", "threads"):
        value = (domain.get("cpu") or {}).get(field)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            yield Cause.invalid(f"{path}.cpu.{field}", "must be a number of at least 1")
    guest = (domain.get("memory") or {}).get("guest")
    if guest is not None:
        yield from _size_causes(guest, f"{path}.memory.guest")
    for kind, values in (domain.get("resources") or {}).items():
        for name, value in values.items() if isinstance(values, dict) else ():
            yield from _size_causes(value, f"{path}.resources.{kind}.{name}")


def _size_causes(value: Any, path: str) -> Iterator[Cause]:
    try:
        good = parse_quantity(value).amount > 0
    except QuantityError:
        yield Cause.invalid(path, f"{value!r} is not a valid quantity: expected for example 8Gi")
        return
    if not good:
        yield Cause.invalid(path, "must be more than zero")


def _inner(vm: Json) -> Json:
    return (vm.get("template") or {}).get("spec") or {}


def _volume_names(vm: Json) -> list[str]:
    return [str(each.get("name")) for each in _inner(vm).get("volumes") or () if isinstance(each, dict)]


# -- clusters ----------------------------------------------------------------------------------------------------


def validate_cluster(obj: Json, old: Json | None) -> list[Cause]:
    if old is not None and old.get("spec") == obj.get("spec"):
        return []  # what is stored must not keep the object from being labelled or deleted
    return [*_cluster_causes(obj.get("spec") or {}, _TOP_SPEC), *endpoint_causes(obj, old)]


def validate_cluster_template(obj: Json, old: Json | None) -> list[Cause]:
    if old is not None and _template_spec(old) == _template_spec(obj):
        return []
    causes = list(_cluster_causes(_template_spec(obj), _TEMPLATE_SPEC))
    if old is not None and _DRY_RUN not in (obj["metadata"].get("annotations") or {}):
        causes.append(Cause.forbidden(_TEMPLATE_SPEC, immutable(obj)))
    return causes


def _cluster_causes(spec: Json, path: str) -> Iterator[Cause]:
    host = str((spec.get("controlPlaneEndpoint") or {}).get("host") or "")
    text = wrong_endpoint(host) if host else ""
    if text:
        yield Cause.invalid(f"{path}.controlPlaneEndpoint.host", text)
    service = spec.get("controlPlaneServiceTemplate")
    yield from shape.wrong(service, shape.SERVICE_TEMPLATE, f"{path}.controlPlaneServiceTemplate")
    if service is not None and spec.get("controlPlaneLoadBalancer") is not None:
        text = "set either controlPlaneServiceTemplate or controlPlaneLoadBalancer, not both"
        yield Cause.invalid(f"{path}.controlPlaneLoadBalancer", text)
    ref = spec.get("infraClusterSecretRef")
    if ref is not None and not ref.get("name"):
        yield Cause.required(f"{path}.infraClusterSecretRef.name", "the name of a Secret")
