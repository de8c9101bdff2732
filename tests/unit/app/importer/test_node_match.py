"""A VM becomes a Machine only with proof that it is the Node; everything else is refused with its reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from homeport.api.meta import Unstructured
from homeport.app.importer.match import Match, is_name, match
from homeport.infra.candidate import Candidate

A = "5d1c7a52-0a4e-4a63-9c3d-2f6f1f0c8f11"
B = "0f8fad5b-d9cb-469f-a165-70867728950e"


def node(name: str = "n", provider_id: str = "", system: str = "", address: str = "10.0.0.5") -> Unstructured:
    spec: dict[str, Any] = {"providerID": provider_id} if provider_id else {}
    status = {
        "nodeInfo": {"systemUUID": system, "kubeletVersion": "v1.30.0"},
        "addresses": [{"type": "InternalIP", "address": address}],
    }
    return Unstructured({"metadata": {"name": name, "labels": {}}, "spec": spec, "status": status})


def vm(id_: str = A, name: str = "n", address: str = "10.0.0.5", **more: Any) -> Candidate:
    made = Candidate(id_, name, f"nutanix://{id_}", "on", (address,), (id_,))
    return replace(made, **more)


def proof(found: tuple[list[Match], list[str]]) -> str:
    matches, problems = found
    assert problems == []
    [only] = matches
    return only.proof


def refusal(found: tuple[list[Match], list[str]]) -> str:
    [only] = found[1]
    return only


def test_provider_id_and_system_uuid_together_prove_a_vm() -> None:
    assert proof(match([node(provider_id=f"nutanix://{A}", system=A)], [vm(), vm(B)])) == "providerID and systemUUID"


def test_a_provider_id_with_prism_centrals_id_names_the_vm_as_well() -> None:
    assert proof(match([node(provider_id=f"nutanix://{B}/{A}")], [vm(), vm(B)])) == "providerID"


def test_a_system_uuid_proves_a_vm_whatever_its_name_is() -> None:
    assert proof(match([node(system=A.upper())], [vm(name="K8S Master 01", address="")])) == "systemUUID"


def test_address_and_name_prove_a_vm_that_shows_no_uuid() -> None:
    assert proof(match([node(system=B)], [vm(system_uuids=())])) == "address and name"


def test_a_name_alone_proves_nothing() -> None:
    assert "no VM has its systemUUID" in refusal(match([node()], [vm(address="10.0.0.6", system_uuids=())]))


def test_an_address_alone_proves_nothing() -> None:
    text = refusal(match([node()], [vm(name="other", system_uuids=())]))
    assert f"VM other ({A}) has its address, but another name" in text


def test_an_address_does_not_outweigh_another_system_uuid() -> None:
    assert "but another systemUUID" in refusal(match([node(system=B)], [vm()]))


def test_a_provider_id_of_another_vendor_is_no_proof() -> None:
    text = refusal(match([node(provider_id=f"vsphere://{A}", system=A)], [vm()]))
    assert f"no VM has its providerID vsphere://{A}" in text


def test_a_provider_id_that_contradicts_the_system_uuid_is_refused() -> None:
    both = [vm(), vm(B, name="m")]
    assert "correct the wrong one first" in refusal(match([node(provider_id=f"nutanix://{A}", system=B)], both))
    alone = match([node(provider_id=f"nutanix://{A}", system=B)], [vm()])
    assert "its systemUUID" in refusal(alone)


def test_a_clone_with_the_same_firmware_uuid_makes_a_node_ambiguous() -> None:
    clone = vm(B, system_uuids=(A,))
    text = refusal(match([node(system=A)], [vm(), clone]))
    assert "2 VMs match it" in text
    assert "cloned or restored" in text


def test_a_provider_id_decides_between_a_vm_and_its_clone_only_if_both_agree() -> None:
    clone = vm(B, system_uuids=(A,))
    assert "2 VMs match it" in refusal(match([node(provider_id=f"nutanix://{A}", system=A)], [vm(), clone]))


def test_two_nodes_of_one_vm_are_refused() -> None:
    nodes = [node("a", provider_id=f"nutanix://{A}"), node("b", provider_id=f"nutanix://{A}")]
    assert "matches several Nodes (a, b)" in refusal(match(nodes, [vm()]))


def test_a_vm_with_the_mark_of_another_plane_is_refused() -> None:
    marked = vm(machine_uid=B, holder="carries the mark of a plane")
    text = refusal(match([node(system=A)], [marked]))
    assert "belongs to others: it carries the mark of a plane" in text


def test_a_vm_with_the_mark_of_this_import_is_not_refused() -> None:
    marked = vm(machine_uid=B, holder="carries the mark of a plane")
    assert proof(match([node(system=A)], [marked], {B})) == "systemUUID"


def test_a_vm_that_is_off_is_refused() -> None:
    assert "is powered off" in refusal(match([node(system=A)], [vm(power="off")]))


def test_every_problem_is_reported_at_once() -> None:
    _, problems = match([node("a"), node("b")], [])
    assert len(problems) == 2


def test_a_machine_is_named_after_its_vm_unless_that_is_not_a_valid_name() -> None:
    matches, _ = match([node("n", system=A)], [vm(name="web-1")])
    assert matches[0].machine == "web-1"
    matches, _ = match([node("n", system=A)], [vm(name="Web 1")])
    assert matches[0].machine == "n"


@pytest.mark.parametrize(("text", "valid"), [("a", True), ("a.b-c", True), ("-a", False), ("A", False), ("", False)])
def test_names_of_machines(text: str, valid: bool) -> None:
    assert is_name(text) is valid
