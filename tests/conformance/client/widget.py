"""A custom resource with a bit of everything that a schema can say."""

from __future__ import annotations

from typing import Any


def widget_crd(group: str) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": "widgets",
                "singular": "widget",
                "kind": "Widget",
                "listKind": "WidgetList",
                "shortNames": [f"wd{group[:9]}"],
                "categories": ["all"],
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                    "selectableFields": [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.replicas"}],
                    "additionalPrinterColumns": [
                        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "The colour."},
                        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                        {"name": "Phase", "type": "string", "priority": 1, "jsonPath": ".status.phase"},
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                    "schema": {"openAPIV3Schema": SCHEMA},
                }
            ],
        },
    }


TEXT = {"type": "string"}
COUNT = {"type": "integer"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["color"],
            "x-kubernetes-validations": [
                {"rule": "self.replicas <= 5 || self.color != 'red'", "message": "red widgets are few"},
                {
                    "rule": "!has(self.low) || !has(self.high) || self.low <= self.high",
                    "messageExpression": "'low is ' + (self.low > self.high + 10 ? 'far' : 'just') + ' above high'",
                    "reason": "FieldValueForbidden",
                    "fieldPath": ".low",
                },
            ],
            "properties": {
                "color": {"type": "string", "enum": ["red", "green", "blue"]},
                "replicas": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10, "default": 1},
                "low": COUNT,
                "high": COUNT,
                "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1},
                "even": {"type": "integer", "multipleOf": 2},
                "on": {"type": "boolean"},
                "label": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
                "when": {"type": "string", "format": "date-time"},
                "fixed": {
                    "type": "string",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
                },
                "ports": {
                    "type": "array",
                    "maxItems": 4,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {
                            "port": COUNT,
                            "protocol": {"type": "string", "default": "TCP"},
                            "name": TEXT,
                        },
                    },
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
                "words": {"type": "array", "items": TEXT},
                "settings": {"type": "object", "additionalProperties": TEXT},
                "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": TEXT},
                "amount": {"x-kubernetes-int-or-string": True},
                "nothing": {"type": "string", "nullable": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "network": {
                    "type": "object",
                    "default": {},
                    "properties": {"mtu": {"type": "integer", "default": 1500}, "name": TEXT},
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": COUNT,
                "selector": TEXT,
                "phase": TEXT,
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {
                        "type": "object",
                        "required": ["type", "status"],
                        "properties": {"type": TEXT, "status": TEXT, "reason": TEXT},
                    },
                },
            },
        },
    },
}


def widget(name: str, ns: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": ns}, "spec": {"color": "green", **spec}}
