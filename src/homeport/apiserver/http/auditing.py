"""The audit event of a request."""

from __future__ import annotations

from homeport.apiserver.audit import Entry
from homeport.apiserver.http.exchange import USER_AGENT, Exchange
from homeport.apiserver.http.route import printable


def entry_of(exchange: Exchange, code: int, received: float, finished: float) -> Entry:
    info, decision, error = exchange.info, exchange.decision, exchange.error
    actor = exchange.actor or exchange.user
    entry = Entry(
        exchange.audit_id,
        printable(exchange.request.raw_path),
        info.verb or exchange.request.method.lower(),
        actor,
        _source(exchange),
        code,
        received,
        finished,
        user_agent=exchange.header(USER_AGENT),
        impersonated=exchange.user if exchange.actor is not None else None,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name,
    )
    if error is not None:
        entry.message = error.message
        entry.reason = str(error.status.get("reason", ""))
    if decision is not None:
        entry.decision = "allow" if decision.allowed else "forbid"
        entry.decision_reason = decision.reason
    return entry


def _source(exchange: Exchange) -> str:
    """The address of the connection. Headers that claim another one are not believed."""
    transport = exchange.request.transport
    peer = transport.get_extra_info("peername") if transport is not None else None
    return str(peer[0]) if isinstance(peer, tuple) and peer else ""
