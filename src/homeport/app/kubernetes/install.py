"""Puts Homeport on a Kubernetes cluster of others: kinds, namespaces, permissions and Deployments."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import structlog

from homeport import __version__
from homeport.api.meta import Resource, Unstructured
from homeport.app.definition import DefinitionError, install_definitions
from homeport.app.kubernetes.dashboard.place import CONFIG_MAP
from homeport.app.kubernetes.ending import await_ended
from homeport.app.kubernetes.layout import SYSTEM_NAMESPACE
from homeport.app.kubernetes.plan import Plan
from homeport.app.kubernetes.version import is_newer
from homeport.app.kubernetes.workload import INSTALLED, VERSION_LABEL
from homeport.app.object.deployment import create_namespaces, create_objects
from homeport.app.object.inventory import publish_inventory
from homeport.app.platform import Platform
from homeport.capi.definition.stored import stored_alone
from homeport.client.absence import find_object
from homeport.client.errors import ApiError, Forbidden, NotFound
from homeport.client.protocol import Client, Key, Query, Write
from homeport.client.wire.rest import RestClient
from homeport.machinery.manifest import described
from homeport.runtime.queue import Backoff
from homeport.runtime.webhook.configuration import MUTATING, VALIDATING

log = structlog.get_logger(__name__)

_EMBEDDED = "homeport"  # in the version that an embedded server reports
_WRITE = Write(field_manager="homeport", field_validation="Strict")
_RBAC = "rbac.authorization.k8s.io"
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
SERVICE = Resource("", "v1", "Service", "services")
_FIRST = (MUTATING, VALIDATING, DEPLOYMENT)
# What may be installed and removed, in the order of removal: nobody asks a webhook whose server is gone.
KINDS = (
    *_FIRST,
    Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
    SERVICE,
    CONFIG_MAP,
    Resource(_RBAC, "v1", "RoleBinding", "rolebindings"),
    Resource(_RBAC, "v1", "Role", "roles"),
    Resource(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    Resource(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False),
    Resource("", "v1", "ServiceAccount", "serviceaccounts"),
)
_BY_NAME = {(each.api_version, each.kind): each for each in KINDS}

Say = Callable[[str], None]


class InstallError(Exception):
    """The cluster can't be prepared; the text says why and what to do."""


async def prepare(client: RestClient, platform: Platform, say: Say) -> None:
    """What controllers need that run elsewhere. Repeat it after any failure, and after an update of Homeport.

    Raises InstallError and ApiError.
    """
    await _refuse_plane(client)
    await _refuse_newer(client)
    await _define(client, [stored_alone(each) for each in platform.definitions()], say)
    say("creating namespaces and the inventory of clusterctl")
    await create_namespaces(client, [SYSTEM_NAMESPACE, *platform.namespaces()])
    await publish(client, platform)


async def install(client: RestClient, plan: Plan, say: Say) -> None:
    """All of it, controllers included. Removes what an earlier version installed and this one does not have.

    Repeat it after any failure. Raises InstallError and ApiError.
    """
    await _refuse_plane(client)
    await _refuse_newer(client)
    objects = await plan.objects()
    await _refuse_others(client, plan, objects)
    await _report_webhooks(client, plan, say)
    for each in plan.namespaces():
        _refuse_deleted(await client.apply(each, _WRITE, kind=NAMESPACE, force=True))
    await _define(client, plan.definitions(), say)
    say(f"applying {len(objects)} objects: {summary(str(each['kind']) for each in objects)}")
    for each in objects:
        await client.apply(each, _WRITE, kind=kind_of(each), force=True)
    await _prune(client, objects, say)
    await _refuse_removed(client, objects)
    # What exists from the start is not published here: nothing can be created before a replica answers the webhooks,
    # and the replicas publish it themselves.


async def publish(client: Client, platform: Platform) -> None:
    """Clusterctl's inventory, and what exists from the start."""
    await publish_inventory(client, platform.inventory())
    await create_objects(client, platform.objects())


async def insist(work: Callable[[], Awaitable[None]], what: str) -> None:
    """For jobs of the controllers: tried again and again, unless they may not or what it is about does not exist."""
    backoff, failures = Backoff(first=1.0, limit=60.0), 0
    while True:
        try:
            return await work()
        except (Forbidden, NotFound) as error:
            log.info("given up", what=what, error=str(error))
            return None
        except ApiError as error:
            failures += 1
            log.info("repeated later", what=what, error=str(error))
            await asyncio.sleep(backoff.delay(failures))


def kind_of(obj: Mapping[str, Any]) -> Resource:
    return _BY_NAME[str(obj["apiVersion"]), str(obj["kind"])]


def key_of(obj: Mapping[str, Any]) -> Key:
    return Key(str(obj["metadata"].get("namespace", "")), str(obj["metadata"]["name"]))


async def installed(client: Client) -> list[tuple[Resource, Unstructured]]:
    """Everything that an installation put there and that can be removed, in the order of removal."""
    query = Query(labels=f"{INSTALLED}=true")
    return [(kind, each) for kind in KINDS for each in (await client.list(kind, query)).items]


async def _define(client: RestClient, definitions: list[dict[str, Any]], say: Say) -> None:
    say(f"installing {len(definitions)} CustomResourceDefinitions")
    try:
        await install_definitions(client, definitions)
    except DefinitionError as error:
        raise InstallError(str(error)) from error


async def _refuse_plane(client: RestClient) -> None:
    version = str((await client.raw("GET", "/version")).json().get("gitVersion", ""))
    if _EMBEDDED in version:
        raise InstallError("this is a plane of `homeport up`, which installs everything at its start: nothing to do")


async def _refuse_newer(client: Client) -> None:
    """Definitions of an older version lack fields of the newer one: the API server would drop them from objects."""
    for each in (await client.list(DEPLOYMENT, Query(labels=f"{INSTALLED}=true"))).items:
        labels = each["spec"]["template"]["metadata"].get("labels") or {}
        version = str(labels.get(VERSION_LABEL, ""))
        if is_newer(version):
            raise InstallError(
                f"Deployment {each.namespace}/{each.name} runs Homeport {version}, and this is the older version "
                f"{__version__}: its definitions may lack fields that objects have, and these would be lost. Use "
                f"version {version} or newer. To go back in spite of that, run 'homeport uninstall' first: all objects "
                "and machines stay"
            )


async def _refuse_others(client: Client, plan: Plan, objects: Iterable[Mapping[str, Any]]) -> None:
    """Two sets of controllers would work on the same objects; and what others installed is not overwritten."""
    running = {Key(p.namespace, p.deployment) for each in plan.platform.components for p in each.places}
    wanted = [(kind_of(each), key_of(each)) for each in objects]
    for kind, key in dict.fromkeys([*wanted, *((DEPLOYMENT, key) for key in sorted(running))]):
        found = await find_object(client, kind, key)
        if found is None or (found["metadata"].get("labels") or {}).get(INSTALLED) == "true":
            continue
        text = f"{kind.kind} {key} exists and was not created by 'homeport install'"
        if (kind, key) in wanted:
            raise InstallError(f"{text}: remove what created it, for example with 'helm uninstall', and repeat this")
        if (found.get("spec") or {}).get("replicas", 1):
            advice = f"kubectl scale -n {key.namespace} deployment/{key.name} --replicas=0"
            raise InstallError(f"{text}, and its controllers work on the same objects: stop them first with '{advice}'")


async def _report_webhooks(client: Client, plan: Plan, say: Say) -> None:
    """Those of controllers that were stopped stay behind, and nothing answers them any more."""
    groups = {str(each["spec"]["group"]) for each in plan.platform.definitions()}
    for kind in (MUTATING, VALIDATING):
        for each in (await client.list(kind)).items:
            asked = groups.intersection(_groups(each))
            if asked and (each.metadata.get("labels") or {}).get(INSTALLED) != "true":
                say(_blocking(kind, each.name, sorted(asked)))


def _blocking(kind: Resource, name: str, groups: Iterable[str]) -> str:
    return (
        f"{kind.kind} {name} of another project is asked about {', '.join(groups)}, too: if its controllers no longer "
        f"run, delete it with 'kubectl delete {kind.kind.lower()} {name}', or writes of these kinds fail"
    )


def _groups(configuration: Mapping[str, Any]) -> Iterable[str]:
    """Those that API servers ask a webhook about, which rejects what it does not answer."""
    hooks = (each for each in configuration.get("webhooks") or () if each.get("failurePolicy") != "Ignore")
    return (str(group) for hook in hooks for rule in hook.get("rules") or () for group in rule.get("apiGroups") or ())


def _refuse_deleted(namespace: Unstructured) -> None:
    """What is in it would be deleted with it, and the webhooks would stay and reject every write."""
    if namespace.metadata.get("deletionTimestamp"):
        raise InstallError(
            f"Namespace {namespace.name} is being deleted: wait until it is gone ('kubectl wait --for=delete "
            f"namespace/{namespace.name}'), and repeat this"
        )


async def _refuse_removed(client: Client, objects: Iterable[Mapping[str, Any]]) -> None:
    """Another installation at the same time, of another layout or version, removes what it does not have."""
    there = {(kind, Key(each.namespace, each.name)) for kind, each in await installed(client)}
    missing = [each for each in objects if (kind_of(each), key_of(each)) not in there]
    if missing:
        raise InstallError(
            f"{described(missing[0])} was removed during the installation, for example by another 'homeport install' "
            "with other options: make sure that none runs, and repeat this"
        )


async def _prune(client: Client, objects: Iterable[Mapping[str, Any]], say: Say) -> None:
    wanted = {(kind_of(each), key_of(each)) for each in objects}
    found = [(kind, each) for kind, each in await installed(client) if (kind, key_of(each)) not in wanted]
    await remove(client, found, say)
    for kind, each in found:
        say(f"removed {described({**kind.type_meta, **each})}, which this version does not have")


async def remove(client: Client, found: Sequence[tuple[Resource, Unstructured]], say: Say) -> None:
    """In the order of KINDS; controllers end before their permissions are removed."""
    first = [each for each in found if each[0] in _FIRST]
    await _delete_all(client, first)
    await await_ended(client, (each for kind, each in first if kind == DEPLOYMENT), say)
    await _delete_all(client, (each for each in found if each[0] not in _FIRST))


async def _delete_all(client: Client, found: Iterable[tuple[Resource, Unstructured]]) -> None:
    for kind, each in found:
        await delete(client, kind, Key(each.namespace, each.name), each.uid)


async def delete(client: Client, kind: Resource, key: Key, uid: str) -> None:
    try:
        await client.delete(kind, key, uid=uid, propagation="Background")
    except NotFound:
        return


def summary(kinds: Iterable[str]) -> str:
    counts: dict[str, int] = {}
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())
