"""Values of a ClusterDeployment for the chart of a user: checked, and completed with what the plane knows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from homeport.api.k0rdent.v1beta1 import ClusterDeployment, Credential
from homeport.infra.preflight.near import near
from homeport.machinery.chart import Chart, ChartError, schema_problems
from homeport.platforms.k0rdent.cluster.merge import merged
from homeport.platforms.k0rdent.management.credential import identity_key
from homeport.platforms.k0rdent.values import Fault

Json = dict[str, Any]

ROOT = "spec.config"


def check_values(schema: bytes | None, defaults: Mapping[str, Any], config: Mapping[str, Any]) -> list[Fault]:
    """As Helm checks them: what the user wrote, over the defaults of the chart."""
    if not schema:
        return []
    try:
        found = schema_problems(schema, merged(defaults, config))
    except ChartError as error:
        return [Fault("spec.template", str(error))]
    return [Fault(f"{ROOT}.{path}" if path else ROOT, message) for path, message in found]


def unknown_values(schema: bytes | None, defaults: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    """Fields at the top that neither the chart's defaults nor its schema have: typing errors, most likely."""
    known = set(defaults) | _properties(schema)
    for name in config:
        if known and name not in known:
            yield f"{ROOT}.{name}: the chart does not declare such a value{near(name, known)}"


def complete_values(
    chart: Chart, deployment: ClusterDeployment, credential: Credential | None, more: Mapping[str, Any]
) -> Json:
    """The values of the user with those that k0rdent adds, as far as the chart's schema admits them."""
    made: Json = dict(deployment.spec.config or {})
    labels = deployment.metadata.labels
    added: Json = {**more}
    if credential is not None:
        ref, key = credential.spec.identity_ref, identity_key(credential)
        version = ref.api_version or "v1"
        added["clusterIdentity"] = {
            "apiVersion": version,
            "kind": ref.kind,
            "name": key.name,
            "namespace": key.namespace,
        }
    if labels and "clusterLabels" not in made:
        added["clusterLabels"] = dict(labels)
    return {**made, **{name: value for name, value in added.items() if admits(chart, name)}}


def admits(chart: Chart, name: str) -> bool:
    """Whether a value may be given without a violation of the schema."""
    if not chart.schema:
        return True
    read = _read(chart.schema)
    return name in (read.get("properties") or {}) or read.get("additionalProperties", True) is not False


def declares(chart: Chart, name: str) -> bool:
    """Whether the chart knows the value at all."""
    return name in chart.values or name in _properties(chart.schema)


def _properties(schema: bytes | None) -> set[str]:
    return set(_read(schema).get("properties") or ()) if schema else set()


def _read(schema: bytes) -> Json:
    try:
        found = orjson.loads(schema)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
