"""A cluster with Talos for tests: secrets that are made once, for the RSA key takes a while."""

from __future__ import annotations

import datetime
import os
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest

from homeport.machinery import yaml
from homeport.machinery.talos.bundle import Bundle, make_bundle
from homeport.machinery.talos.config import ClusterShape, MachineShape, Role, render_config
from homeport.machinery.talos.release import installer_image

REFERENCE = os.environ.get("HOMEPORT_REFERENCE", "")
needs_reference = pytest.mark.skipif(not REFERENCE, reason="HOMEPORT_REFERENCE names no folder of upstream schemas")
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)  # as virtual worlds begin


@cache
def bundle() -> Bundle:
    return make_bundle(NOW)


def shape(**more: Any) -> ClusterShape:
    given: dict[str, Any] = {
        "name": "mgmt",
        "endpoint": "10.40.0.200",
        "kubernetes": "v1.32.4",
        "installer": installer_image("v1.9.6"),
    }
    return ClusterShape(**(given | more))


def schema_errors(release: str, made: Any) -> list[tuple[Any, str]]:
    """What Talos' own JSON schema has against a machine configuration. Needs the folder of upstream schemas."""
    path = Path(REFERENCE, "schemas/talos", f"talos-config-{release}.schema.json")
    schema = orjson.loads(path.read_bytes())
    del schema["oneOf"]
    validator: Any = jsonschema_rs.validator_for({**schema, "$ref": "#/$defs/v1alpha1.Config"})
    return [(error.instance_path, error.message) for error in validator.iter_errors(made)]


def document(role: Role, cluster: ClusterShape | None = None, hostname: str = "mgmt-cp-0") -> dict[str, Any]:
    text = render_config(role, cluster or shape(), MachineShape(hostname, {}), bundle())
    found = yaml.load(text)
    assert isinstance(found, dict)
    return found
