"""The k0s kinds are converted between v1beta1 and v1beta2 without loss."""

from __future__ import annotations

from homeport.capi.conversion.registration import converters_of
from homeport.capi.k0s.conversion import KINDS

CONVERTERS = converters_of(KINDS)


def test_fields_that_were_renamed_are_found_under_their_new_names() -> None:
    new = CONVERTERS["bootstrap.cluster.x-k8s.io", "K0sWorkerConfig"](
        {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
            "kind": "K0sWorkerConfig",
            "metadata": {"name": "a", "namespace": "ns"},
            "spec": {
                "preStartCommands": ["a"],
                "postStartCommands": ["b"],
                "ignition": {"variant": "fcos", "version": "1.5.0"},
            },
            "status": {"ready": True, "dataSecretName": "a"},
        },
        "v1beta2",
    )
    assert new["spec"] == {
        "preK0sCommands": ["a"],
        "postK0sCommands": ["b"],
        "provisioner": {"type": "ignition", "ignition": {"variant": "fcos", "version": "1.5.0"}},
    }
    assert new["status"] == {"initialization": {"dataSecretCreated": True}, "dataSecretName": "a"}
