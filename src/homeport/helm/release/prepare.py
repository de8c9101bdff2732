"""What is done before a release has a record: its namespace, its CRDs, and whose the objects are that exist already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import AlreadyExists, ApiError, NotFound
from homeport.client.protocol import Client, Key
from homeport.helm.errors import ReleaseError
from homeport.helm.health import health
from homeport.helm.release import record
from homeport.helm.release.content import Identity, identify, parse_manifest
from homeport.helm.release.desired import Desired
from homeport.helm.release.operation import POLL_SECONDS, TRANSIENT
from homeport.helm.release.ownership import foreign, stands_in
from homeport.helm.release.record import Release
from homeport.helm.release.render import definitions
from homeport.helm.release.storage import WRITE
from homeport.helm.release.target import Target
from homeport.runtime.outcome import Wait

Json = dict[str, Any]

NAMESPACE: Final = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


async def prepare(client: Client, desired: Desired, *, first: bool) -> Wait | None:
    """What must be there before the chart is rendered: the namespace and, at the first install, the CRDs."""
    if desired.create_namespace:
        await _create_namespace(client, desired.namespace)
    if first and desired.crds:
        return await _create_definitions(Target(client, desired.namespace), desired)
    return None


async def _create_namespace(client: Client, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"name": name}}}
    try:
        await client.get(NAMESPACE, Key("", name))
    except NotFound:
        try:
            await client.create(body, WRITE, kind=NAMESPACE)
        except AlreadyExists:
            return


async def _create_definitions(target: Target, desired: Desired) -> Wait | None:
    """Those that exist stay as they are, as with Helm: another release may have brought them."""
    label = f"release {desired.namespace}/{desired.name}"
    for manifest in await definitions(desired):
        _check(manifest.object, f"{label}: {manifest.source}")
        live = await target.get(manifest.object)
        if live is None:
            live = await _created(target, manifest.object, f"{label}: {manifest.source}")
        judged = health(live)
        if not judged.ready and live["kind"] == "CustomResourceDefinition":
            return Wait("WaitingForCustomResourceDefinition", f"{label}: {judged.message}", after=POLL_SECONDS)
    return None


def _check(obj: Json, what: str) -> None:
    metadata = obj.get("metadata")
    if not obj.get("apiVersion") or not obj.get("kind") or not isinstance(metadata, dict) or not metadata.get("name"):
        raise ReleaseError(f"{what}: expected objects with apiVersion, kind and metadata.name, found {sorted(obj)}")


async def _created(target: Target, obj: Json, what: str) -> Unstructured:
    try:
        return await target.create(obj)
    except TRANSIENT:
        raise
    except ApiError as error:
        raise ReleaseError(f"{what}: {error}") from error


async def check_ownership(target: Target, release: Release, history: Sequence[Release]) -> None:
    """Objects that exist and belong to someone else are not touched: the whole release is refused."""
    known: set[Identity] = set()
    for each in history:
        if each.status != record.UNINSTALLED:
            known |= {identify(obj, release.namespace) for obj in parse_manifest(each.manifest, each.label)}
    for obj in parse_manifest(release.manifest, release.label):
        identity = identify(obj, release.namespace)
        live = await target.get(obj) if identity not in known else None
        why = foreign(live, release.name, release.namespace) if live is not None else ""
        if why and live is not None and not stands_in(live):
            raise ReleaseError(
                f"{release.label}: {identity} exists and does not belong to the release ({why}). "
                "Delete it, rename it in the chart's values, or take ownership of it"
            )
