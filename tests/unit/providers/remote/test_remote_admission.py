"""Mistakes in remote machine kinds are refused with the field and what to do, and versions are converted without loss."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.capi.conversion.registration import converters_of
from homeport.providers.remote import admission, conversion

Json = dict[str, Any]
GOOD: Json = {"address": "192.0.2.1", "port": 22, "sshKeyRef": {"name": "key"}}


def machine(**spec: Any) -> Json:
    return {"metadata": {"name": "one"}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "field", "said"),
    [
        ({}, "spec.address", "or set spec.pool"),
        ({"address": "192.0.2.1"}, "spec.sshKeyRef.name", "SSH private key at `value`"),
        ({**GOOD, "address": "ssh://x y"}, "spec.address", "not an IP address or a DNS name"),
        ({**GOOD, "provisionJob": {}}, "spec.provisionJob", "remove provisionJob"),
        ({**GOOD, "workingDir": "work"}, "spec.workingDir", "not an absolute path"),
        ({**GOOD, "user": ""}, "spec.user", "not a user name"),
    ],
)
def test_a_mistake_names_the_field_and_the_cure(spec: Json, field: str, said: str) -> None:
    causes = admission.validate_machine(machine(**spec), None)
    assert [each.message for each in causes if each.field == field and said in each.message]


def test_a_machine_stays_where_it_is() -> None:
    assert not admission.validate_machine(machine(**GOOD), None)
    assert not admission.validate_machine(machine(pool="rack"), None)
    [cause] = admission.validate_machine(machine(**{**GOOD, "address": "192.0.2.2"}), machine(**GOOD))
    assert (cause.field, "immutable" in cause.message) == ("spec.address", True)
    used = {"spec": {"pool": "rack", "machine": GOOD}, "status": {"reserved": True}}
    [cause] = admission.validate_pooled({"spec": {"pool": "rack", "machine": {**GOOD, "port": 2222}}}, used)
    assert cause.field == "spec.machine.port"


def test_renamed_fields_are_converted_both_ways() -> None:
    old = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "RemoteMachine",
        "metadata": {"name": "one"},
        "spec": {**GOOD, "customCleanUpCommands": ["wipe"]},
        "status": {"ready": True, "failureReason": "Gone"},
    }
    converter = converters_of(conversion.KINDS)["infrastructure.cluster.x-k8s.io", "RemoteMachine"]
    new = converter({**old}, "v1beta2")
    assert new["spec"]["cleanUpCommands"] == ["wipe"]
    assert new["status"]["initialization"] == {"provisioned": True}
    assert new["status"]["deprecated"] == {"v1beta1": {"failureReason": "Gone"}}
    back = converter(new, "v1beta1")
    assert (back["spec"], back["status"]) == (old["spec"], old["status"])
