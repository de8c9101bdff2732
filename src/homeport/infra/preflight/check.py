"""Preflight in three parts: authentication, references and capacity. It needs no Cluster and no InfraCluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from homeport.api.meta import Object
from homeport.capi.name import Condition
from homeport.infra.error import ProviderError, policy_of
from homeport.infra.preflight.plan import MachinePlan
from homeport.infra.protocol import Check, ClusterScope, Provider, Session

C = TypeVar("C", bound=Object)
M = TypeVar("M", bound=Object)
S = TypeVar("S", bound=Session)

REFERENCES = Condition.REFERENCES_RESOLVED
CAPACITY = "CapacitySufficient"


async def check_machines(
    provider: Provider[C, M, S],
    settings: Mapping[str, Any],
    secret: Mapping[str, str],
    plans: Sequence[MachinePlan],
    namespace: str = "",
) -> list[Check]:
    """All three parts, from plain settings and the data of a Secret. A part that fails ends the check."""
    connection = provider.conditions.connection
    try:
        session = await provider.connector.open(settings, secret)
        checks = [Check(connection, True), *await check_references(provider, session, plans, namespace)]
        if passed(checks):
            checks += await provider.preflight.check_capacity(session, plans)
    except ProviderError as error:
        return [Check(connection, False, policy_of(error).reason, error.message)]
    return checks


async def check_references(
    provider: Provider[C, M, S], session: S, plans: Sequence[MachinePlan], namespace: str
) -> list[Check]:
    waiting = [
        Check(REFERENCES, False, "WaitingForTemplates", each.missing, waiting=True) for each in plans if each.missing
    ]
    known = [each for each in plans if each.template is not None]
    checks = [*waiting, *await provider.preflight.check_references(session, known, namespace)]
    return checks if any(check.condition == REFERENCES for check in checks) else [*checks, Check(REFERENCES, True)]


async def check_cluster(provider: Provider[C, M, S], scope: ClusterScope[C, S]) -> list[Check]:
    """Of a cluster with a session. One that is provisioned has its memory already: only references are checked."""
    plans, namespace = scope.plan.machines, scope.infra.metadata.namespace
    checks = await check_references(provider, scope.session, plans, namespace)
    checks += await provider.cluster_driver.preflight(scope)
    if not scope.provisioned and passed(checks):
        checks += await provider.preflight.check_capacity(scope.session, plans)
    return checks


def passed(checks: Sequence[Check]) -> bool:
    return all(check.ok or check.advisory for check in checks)


def fold(messages: Iterable[str]) -> str:
    """One sentence for each cause: objects about which the same is said are named together."""
    subjects: dict[str, list[str]] = {}
    for each in dict.fromkeys(messages):
        subject, colon, rest = each.partition(": ")
        subjects.setdefault(rest if colon else "", []).append(subject)
    plain = subjects.pop("", [])
    return "; ".join([*plain, *(f"{' and '.join(named)}: {rest}" for rest, named in subjects.items())])
