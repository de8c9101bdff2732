"""The CustomResourceDefinitions of the platform, brought up to date at every start."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import structlog

from homeport.client.absence import find_object
from homeport.client.errors import Invalid, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.client.wire.rest import RestClient
from homeport.helm.release.ownership import is_released
from homeport.runtime.definition import CRD, SHARED_LABEL, WAIT_SECONDS, established
from homeport.runtime.webhook.configuration import INJECT_ANNOTATION

log = structlog.get_logger(__name__)

# What was installed, so that a start with nothing new writes nothing.
DIGEST = "homeport.dev/definition"
_WRITE = Write(field_manager="homeport")
_CERT_MANAGER = "cert-manager.io/inject-"  # annotations of cert-manager's CA injector
_AGAIN = "homeport.dev/removal"  # on definitions that are being deleted: how often the server was asked to look again
REMOVED_SECONDS = 120.0
_LOOK_SECONDS = 0.5
_LOOKS = 10  # between two writes that make the server look again


class DefinitionError(Exception):
    """A definition can't be installed; the text names it and says what to do."""


async def install_definitions(client: Client, bodies: Iterable[Mapping[str, Any]]) -> None:
    """Creates what is missing, changes what is not as this version has it, and returns when all kinds are served."""
    fresh = [made for body in bodies if (made := await _put(client, body)) is not None]
    if fresh:
        log.info("CustomResourceDefinitions installed", count=len(fresh))
    for name in fresh:
        await _await_served(client, name)


async def _put(client: Client, body: Mapping[str, Any]) -> str | None:
    """The name of what was written; None where nothing had to be."""
    name = str(body["metadata"]["name"])
    digest = hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()
    try:
        found: Mapping[str, Any] = await client.get(CRD, Key("", name))
    except NotFound:
        found = {}
    meta = found.get("metadata") or {}
    if meta.get("deletionTimestamp"):
        await await_removed(client, found)  # what is applied to it would be gone with it
        found, meta = {}, {}
    if (meta.get("annotations") or {}).get(DIGEST) == digest and established(found):
        return None
    own = body["metadata"]
    ours = DIGEST in (meta.get("annotations") or {}) or SHARED_LABEL in (meta.get("labels") or {})
    if found and SHARED_LABEL in (own.get("labels") or {}) and (is_released(found) or not ours):
        return None  # the project that owns the kind is installed here: its definition has more than ours
    _keep_stored_versions(name, found, body)
    if "conversion" not in body["spec"] and asks_webhook(found):
        await serve_stored(client, found)
    annotations = {**(own.get("annotations") or {}), DIGEST: digest}
    wanted = {
        **CRD.type_meta,
        "metadata": {"name": name, "labels": own.get("labels") or {}, "annotations": annotations},
        "spec": body["spec"],
    }
    try:
        await client.apply(wanted, _WRITE, kind=CRD, force=True)
    except Invalid as error:
        raise DefinitionError(f"{name} can't be updated: {error}") from error
    await _end_injection(client, name, found)
    if found:
        log.info("CustomResourceDefinition updated", name=name)
    else:
        log.debug("CustomResourceDefinition created", name=name)  # a first start creates more than a hundred
    return name


async def _end_injection(client: Client, name: str, found: Mapping[str, Any]) -> None:
    """The definition of another project, taken over: cert-manager would put that project's CA back again and again."""
    annotations = (found.get("metadata") or {}).get("annotations") or {}
    theirs = [each for each in annotations if each.startswith(_CERT_MANAGER)]
    if theirs:
        patch = MergePatch({"metadata": {"annotations": dict.fromkeys(theirs)}})
        await client.patch(CRD, Key("", name), patch, _WRITE)


def asks_webhook(definition: Mapping[str, Any]) -> bool:
    """Whether its older versions are converted by somebody."""
    return ((definition.get("spec") or {}).get("conversion") or {}).get("strategy") == "Webhook"


async def serve_stored(client: Client, found: Mapping[str, Any]) -> None:
    """Ends the conversion: only the stored version is served. A patch, because the CA of the webhook has another owner
    than the rest, and would stay with an apply."""
    stored = [version for version in found["spec"]["versions"] if version["storage"]]
    annotations = dict.fromkeys((DIGEST, INJECT_ANNOTATION))
    spec = {"versions": stored, "conversion": {"strategy": "None", "webhook": None}}
    meta = {"annotations": annotations, "resourceVersion": found["metadata"]["resourceVersion"]}
    body = MergePatch({"metadata": meta, "spec": spec})
    await client.patch(CRD, Key("", str(found["metadata"]["name"])), body, _WRITE)


async def await_removed(client: Client, crd: Mapping[str, Any]) -> None:
    """Returns when a definition that is being deleted is gone, with all objects of its kind. Raises DefinitionError.

    An API server that fails to remove the objects, for example because it still prepares their storage, may drop its
    next try, and does not try again for minutes. A write makes it look again.
    """
    key, uid, looks = Key("", str(crd["metadata"]["name"])), crd["metadata"]["uid"], 0
    try:
        async with asyncio.timeout(REMOVED_SECONDS):
            while (found := await find_object(client, CRD, key)) is not None and found.uid == uid:
                crd, looks = found, looks + 1
                if looks % _LOOKS == 0:
                    patch = MergePatch({"metadata": {"annotations": {_AGAIN: str(looks // _LOOKS)}}})
                    with contextlib.suppress(NotFound):
                        await client.patch(CRD, key, patch, _WRITE)
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        raise DefinitionError(_remaining(crd)) from None


def _remaining(crd: Mapping[str, Any]) -> str:
    name, meta = crd["metadata"]["name"], crd["metadata"]
    conditions = (crd.get("status") or {}).get("conditions") or ()
    why = next((str(each.get("message", "")) for each in conditions if each.get("type") == "Terminating"), "")
    finalizers = ", ".join(meta.get("finalizers") or ())
    return (
        f"CustomResourceDefinition {name} is still being deleted after {REMOVED_SECONDS:.0f} s "
        f"(finalizers: {finalizers or 'none'}): {why or 'the server reports no reason'}. Objects of its kind that have "
        f"finalizers keep it: list them with 'kubectl get {name} -A', and repeat this when it is gone"
    )


def _keep_stored_versions(name: str, found: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    stored = (found.get("status") or {}).get("storedVersions") or ()
    lost = sorted(set(stored) - {version["name"] for version in body["spec"]["versions"]})
    if lost:
        raise DefinitionError(
            f"{name}: objects of {', '.join(lost)} may be stored, and this version of Homeport does not serve them: "
            "use the Homeport version that wrote them, or delete these objects and their CustomResourceDefinition "
            "with it"
        )


async def _await_served(client: Client, name: str) -> None:
    found = await client.get(CRD, Key("", name))
    if established(found):
        return
    query = Query(fields=f"metadata.name={name}", resource_version=found.resource_version)
    try:
        async with asyncio.timeout(WAIT_SECONDS), client.watch(CRD, query) as events:
            async for event in events:
                if established(event.object):
                    return
    except TimeoutError:
        raise DefinitionError(f"{name} was not served within {WAIT_SECONDS:.0f} s: {_why(found)}") from None


def _why(found: Mapping[str, Any]) -> str:
    conditions = (found.get("status") or {}).get("conditions") or ()
    told = [f"{each['type']} {each.get('message', '')}" for each in conditions if each.get("status") != "True"]
    return "; ".join(told) or "the server reports no reason"


async def undefined(client: RestClient, bodies: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names of definitions that this cluster does not serve, found out in the way that is open to everybody.

    Raises ApiError: a server that does not answer, or does not know its roles yet, may serve them all the same.
    """
    served: dict[str, set[str]] = {}
    absent = []
    for body in bodies:
        spec = body["spec"]
        version = next(each["name"] for each in spec["versions"] if each["storage"])
        path = f"/apis/{spec['group']}/{version}"
        if path not in served:
            served[path] = await _resources(client, path)
        if spec["names"]["plural"] not in served[path]:
            absent.append(str(body["metadata"]["name"]))
    return absent


async def _resources(client: RestClient, path: str) -> set[str]:
    answer = await client.raw("GET", path)
    if answer.status == 404:
        return set()
    return {str(each.get("name", "")) for each in orjson.loads(answer.check(path)).get("resources") or ()}
