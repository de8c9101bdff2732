"""The object that is measured: a custom resource of 1.5 KB whose schema and rules are checked on every write."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import Resource

GROUP = "bench.homeport.dev"

_STRING = {"type": "string", "maxLength": 256}
_REFERENCE = {
    "type": "object",
    "required": ["kind", "name"],
    "properties": {"apiGroup": _STRING, "kind": _STRING, "name": {"type": "string", "maxLength": 253, "minLength": 1}},
}
_CONDITION = {
    "type": "object",
    "required": ["type", "status", "lastTransitionTime", "reason"],
    "properties": {
        "type": {"type": "string", "maxLength": 316},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {"type": "string", "maxLength": 1024, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
        "message": {"type": "string", "maxLength": 32768},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
    },
}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "required": ["clusterName", "bootstrap", "infrastructureRef"],
            "properties": {
                "clusterName": {"type": "string", "minLength": 1, "maxLength": 63},
                "version": {"type": "string", "maxLength": 256},
                "providerID": {"type": "string", "maxLength": 512},
                "failureDomain": _STRING,
                "minReadySeconds": {"type": "integer", "format": "int32", "minimum": 0, "default": 0},
                "bootstrap": {
                    "type": "object",
                    "properties": {"configRef": _REFERENCE, "dataSecretName": _STRING},
                    "x-kubernetes-validations": [
                        {
                            "rule": "has(self.configRef) || has(self.dataSecretName)",
                            "message": "one of configRef and dataSecretName must be set",
                        }
                    ],
                },
                "infrastructureRef": _REFERENCE,
                "readinessGates": {
                    "type": "array",
                    "maxItems": 32,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["conditionType"],
                    "items": {
                        "type": "object",
                        "required": ["conditionType"],
                        "properties": {"conditionType": {"type": "string", "maxLength": 316}},
                    },
                },
            },
            "x-kubernetes-validations": [
                {"rule": "self.clusterName == oldSelf.clusterName", "message": "clusterName is immutable"}
            ],
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string", "enum": ["Pending", "Provisioning", "Provisioned", "Running", "Deleting"]},
                "observedGeneration": {"type": "integer", "format": "int64"},
                "addresses": {
                    "type": "array",
                    "maxItems": 32,
                    "items": {"type": "object", "properties": {"type": _STRING, "address": _STRING}},
                },
                "conditions": {
                    "type": "array",
                    "maxItems": 32,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": _CONDITION,
                },
            },
        },
    },
}

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"machines.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": "Machine", "plural": "machines", "singular": "machine", "listKind": "MachineList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _SCHEMA},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Cluster", "type": "string", "jsonPath": ".spec.clusterName"},
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                ],
            }
        ],
    },
}


def resource_of(crd: dict[str, Any]) -> Resource:
    """The stored version of the kind that a definition defines."""
    spec = crd["spec"]
    version = next(v["name"] for v in spec["versions"] if v["storage"])
    return Resource(spec["group"], version, spec["names"]["kind"], spec["names"]["plural"])


MACHINE = resource_of(CRD)


def machine(number: int, kind: Resource = MACHINE) -> dict[str, Any]:
    """About 1.5 KB as JSON once stored. It fits the Machine of Cluster API v1beta2, too."""
    name = f"machine-{number:05d}"
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"cluster": f"cluster-{number % 50}", "pool": f"md-{number % 7}", "tier": "bench"},
            "annotations": {"bench.homeport.dev/note": "x" * 200},
            "finalizers": ["bench.homeport.dev/machine"],
        },
        "spec": {
            "clusterName": f"cluster-{number % 50}",
            "version": "v1.37.1",
            "providerID": f"sim://00000000-0000-4000-8000-{number:012d}",
            "failureDomain": f"fd-{number % 3}",
            "bootstrap": {"configRef": {"apiGroup": "bootstrap.bench", "kind": "Config", "name": name}},
            "infrastructureRef": {"apiGroup": "infra.bench", "kind": "VM", "name": name},
            "readinessGates": [{"conditionType": "NetworkReady"}, {"conditionType": "StorageReady"}],
        },
    }


def status(number: int, round_: int) -> dict[str, Any]:
    conditions = [
        {
            "type": kind,
            "status": "True" if round_ % 2 else "False",
            "reason": "Measured",
            "message": f"round {round_} of machine {number}",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind in ("Available", "Ready", "NetworkReady", "StorageReady")
    ]
    return {
        "phase": "Running" if round_ % 2 else "Provisioned",
        "observedGeneration": round_,
        "addresses": [{"type": "InternalIP", "address": f"192.0.2.{number % 250}"}],
        "conditions": conditions,
    }
