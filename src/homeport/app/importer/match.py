"""Which VM is which Node: with proof, or not at all. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Unstructured
from homeport.capi.family import canonical
from homeport.infra.candidate import Candidate

CONTROL_PLANE_ROLE = "node-role.kubernetes.io/control-plane"


@dataclass(frozen=True, slots=True)
class Match:
    """A Node, its VM, and what proves it."""

    node: Unstructured
    candidate: Candidate
    proof: str

    @property
    def control_plane(self) -> bool:
        return is_control_plane(self.node)

    @property
    def version(self) -> str:
        return kubelet_version(self.node)

    @property
    def machine(self) -> str:
        """The name of its Machine: that of the VM, by which drivers know it, where it is valid."""
        return self.candidate.name if is_name(self.candidate.name) else self.node.name


def is_control_plane(node: Unstructured) -> bool:
    return CONTROL_PLANE_ROLE in (node.metadata.get("labels") or {})


def kubelet_version(node: Unstructured) -> str:
    return str(_info(node).get("kubeletVersion") or "")


def is_name(text: str) -> bool:
    """Whether it can be the name of a Machine and the value of a label."""
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789-.")
    return 0 < len(text) <= 63 and set(text) <= allowed and text[0] not in "-." and text[-1] not in "-."


def match(
    nodes: Sequence[Unstructured], candidates: Sequence[Candidate], own_uids: Collection[str] = ()
) -> tuple[list[Match], list[str]]:
    """The pairs, and every reason why some Node or VM can't be one. `own_uids`: marks of this very import."""
    matches: list[Match] = []
    problems: list[str] = []
    for node in sorted(nodes, key=lambda each: each.name):
        found = _match(node, candidates)
        if isinstance(found, str):
            problems.append(found)
            continue
        matches.append(found)
        problems += _refusals(found, own_uids)
    taken = Counter(each.candidate.id for each in matches)
    for id_, count in taken.items():
        if count > 1:
            names = ", ".join(each.node.name for each in matches if each.candidate.id == id_)
            problems.append(f"VM {id_} matches several Nodes ({names}): correct spec.providerID of the wrong ones")
    return matches, problems


def _match(node: Unstructured, candidates: Sequence[Candidate]) -> Match | str:
    """A sentence if there is no VM, or no single one."""
    provider_id, system = _provider_id(node), str(_info(node).get("systemUUID") or "").lower()
    by_id = [each for each in candidates if provider_id and _named_by(provider_id, each)]
    by_system = [each for each in candidates if system and system in each.system_uuids]
    if provider_id and not by_id:
        return f"Node {node.name}: no VM has its providerID {provider_id}: check the provider and its account"
    if len(by_id) > 1 or len(by_system) > 1:
        return _ambiguous(node, by_id if len(by_id) > 1 else by_system)
    if by_id and by_system and by_id[0].id != by_system[0].id:
        return (
            f"Node {node.name}: its providerID is that of VM {_shown(by_id[0])}, and its systemUUID that of VM "
            f"{_shown(by_system[0])}: correct the wrong one first"
        )
    if by_id and system and by_id[0].system_uuids and not by_system:
        return (
            f"Node {node.name}: its providerID is that of VM {_shown(by_id[0])}, but its systemUUID {system} is not: "
            "correct spec.providerID of the Node"
        )
    if by_id:
        return Match(node, by_id[0], "providerID and systemUUID" if by_system else "providerID")
    if by_system:
        return Match(node, by_system[0], "systemUUID")
    return _match_by_address(node, candidates, system)


def _match_by_address(node: Unstructured, candidates: Sequence[Candidate], system: str) -> Match | str:
    """The address and the name together, of a VM that does not contradict."""
    held = _addresses(node)
    near = [each for each in candidates if held & {canonical(text) for text in each.addresses}]
    fits = [each for each in near if each.name == node.name and not (system and each.system_uuids)]
    if len(fits) == 1:
        return Match(node, fits[0], "address and name")
    if len(fits) > 1:
        return _ambiguous(node, fits)
    seen = f"; VM {_shown(near[0])} has its address, but another {_difference(node, near[0])}" if near else ""
    shown = ", ".join(sorted(held)) or "no address"
    return f"Node {node.name}: no VM has its systemUUID {system or '(none)'} or its address and name ({shown}){seen}"


def _difference(node: Unstructured, candidate: Candidate) -> str:
    return "name" if candidate.name != node.name else "systemUUID"


def _refusals(found: Match, own_uids: Collection[str]) -> list[str]:
    vm, problems = found.candidate, []
    if vm.holder and vm.machine_uid not in own_uids:
        text = f"Node {found.node.name}: VM {_shown(vm)} belongs to others: it {vm.holder}"
        problems.append(f"{text}. Import it where it is managed, or remove that first")
    if vm.power != "on":
        problems.append(f"Node {found.node.name}: VM {_shown(vm)} is powered {vm.power}: power it on first")
    return problems


def _ambiguous(node: Unstructured, found: Sequence[Candidate]) -> str:
    shown = ", ".join(_shown(each) for each in found)
    return (
        f"Node {node.name}: {len(found)} VMs match it ({shown}): a VM may have been cloned or restored. Delete "
        "the copy, or set spec.providerID of the Node"
    )


def _named_by(provider_id: str, candidate: Candidate) -> bool:
    """`nutanix://<VM>` and `nutanix://<Prism Central>/<VM>`. The scheme counts: ids of two vendors may be equal."""
    scheme, _, rest = provider_id.partition("://")
    same = scheme == candidate.provider_id.partition("://")[0]
    return same and rest.rpartition("/")[2].lower() == candidate.id.lower()


def _provider_id(node: Unstructured) -> str:
    return str((node.get("spec") or {}).get("providerID") or "")


def _addresses(node: Unstructured) -> set[str]:
    listed = (node.get("status") or {}).get("addresses") or ()
    return {canonical(str(each.get("address"))) for each in listed if each.get("type") in ("InternalIP", "ExternalIP")}


def _info(node: Unstructured) -> dict[str, Any]:
    found: dict[str, Any] = (node.get("status") or {}).get("nodeInfo") or {}
    return found


def _shown(candidate: Candidate) -> str:
    return f"{candidate.name} ({candidate.id})"
