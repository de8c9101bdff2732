"""How the controllers on a Kubernetes cluster are, read from its objects: for `homeport status` with a kubeconfig."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.api.meta import Object, Unstructured
from homeport.app.denial import explain_denial
from homeport.app.report.clusterstate import states_of
from homeport.app.report.description import Description, Finding, PartState
from homeport.app.report.lease import find_waits, read_deployments, read_leases
from homeport.app.report.progress import progress
from homeport.app.report.webhook import distrust, read_webhooks
from homeport.client.errors import Forbidden, NotFound
from homeport.client.protocol import Client, Page, Query, Unreadable

O = TypeVar("O", bound=Object)


class NotInstalled(Exception):
    """The cluster has no Cluster API kinds."""


async def describe_installation(client: Client, now: float, namespace: str = "") -> Description:
    """`namespace` '': all of them. Raises NotInstalled, and Forbidden if the user may not list Clusters there."""
    try:
        clusters, broken = _sorted(await client.list(Cluster, Query(namespace=namespace, lenient=True)))
    except NotFound:
        raise NotInstalled("it has no Cluster API kinds, so Homeport is not installed there") from None
    refused: dict[str, str] = {}
    tenants = await _read(client, TenantCluster, namespace, refused, broken)
    deployments = await _read(client, ClusterDeployment, namespace, refused, broken)
    states = states_of(clusters, [*tenants, *deployments], now)
    stuck, under_way = progress([], states)
    installed = await read_deployments(client)
    parts = [_part(each) for each in installed]
    down = find_waits(installed, await read_leases(client), now) if installed else []
    down += [Finding("Deployment", part.name, part.error) for part in parts if part.error]
    asked = await read_webhooks(client)
    down += [Finding(str(each["kind"]), each.name, why) for each in asked if (why := distrust(each, now))]
    return Description(
        revision=0,
        objects={Cluster.__resource__.qualified: len(clusters)},
        requests=0,
        parts=parts,
        controllers=[],
        blind=refused,
        clusters=states,
        stuck=[*down, *broken, *stuck],
        under_way=under_way,
    )


async def _read(
    client: Client, kind: type[O], namespace: str, refused: dict[str, str], broken: list[Finding]
) -> list[O]:
    """Of a kind that need not exist there."""
    try:
        found, wrong = _sorted(await client.list(kind, Query(namespace=namespace, lenient=True)))
    except NotFound:
        return []
    except Forbidden as error:
        refused[kind.__resource__.kind] = explain_denial(error)
        return []
    broken += wrong
    return found


def _sorted(page: Page[O]) -> tuple[list[O], list[Finding]]:
    """Those that can be read, and what is wrong with the others: one of them must not hide everything else."""
    found: list[O] = []
    broken: list[Finding] = []
    items: Sequence[O | Unreadable] = page.items
    for each in items:
        if isinstance(each, Unreadable):
            text = f"does not fit its type and is not acted on: {each.error}; correct it, or delete it"
            broken.append(Finding(str(each.get("kind")), f"{each.namespace}/{each.name}", text))
        else:
            found.append(each)
    return found, broken


def _part(deployment: Unstructured) -> PartState:
    desired = int((deployment.get("spec") or {}).get("replicas") or 0)
    ready = int((deployment.get("status") or {}).get("readyReplicas") or 0)
    wrong = "" if ready >= desired else f"{ready} of {desired} replicas are ready"
    name = f"{deployment.namespace}/{deployment.name}"
    return PartState(name, f"{ready} of {desired} replicas ready", error=wrong)
