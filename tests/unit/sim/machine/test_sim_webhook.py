"""Webhooks of simulated clusters: their Services lead to Pods on the simulated network."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
import trustme
from aiohttp import web

from homeport.api.meta import Resource
from homeport.client.errors import ApiError, Internal
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import CONFIG_MAP, DEPLOYMENT
from homeport.sim.network import Loopback
from tlspeer import tls_peer
from unit.sim.machine.sim_kit import Sim, simulation

SERVICE = Resource("", "v1", "Service", "services")
CONFIGURATION = Resource(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)
META = {"name": "hook", "namespace": "kube-system"}
LABELS = {"app": "hook"}


async def refuse(request: web.BaseRequest) -> web.Response:
    review = orjson.loads(await request.read())
    response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": "not today"}}
    return web.json_response({**review, "response": response})


@asynccontextmanager
async def listener(authority: trustme.CA) -> AsyncIterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("hook.kube-system.svc").configure_cert(context)
    async with tls_peer(refuse, context) as port:
        yield port


def deployment() -> dict[str, Any]:
    container = {"name": "c", "image": "hook", "ports": [{"name": "https", "containerPort": 9443}]}
    pod = {
        "hostNetwork": True,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    template = {"metadata": {"labels": LABELS}, "spec": pod}
    return {"metadata": META, "spec": {"selector": {"matchLabels": LABELS}, "template": template}}


def configuration(authority: trustme.CA) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
    webhook = {
        "name": "hook.example.org",
        "clientConfig": {"service": {**META, "path": "/check"}, "caBundle": bundle},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
    }
    return {"metadata": {"name": "hook"}, "webhooks": [webhook]}


async def install(sim: Sim, authority: trustme.CA) -> None:
    cluster = await sim.cluster_up()
    service = {"metadata": META, "spec": {"selector": LABELS, "ports": [{"port": 443, "targetPort": "https"}]}}
    await cluster.put([(service, SERVICE), (deployment(), DEPLOYMENT)])
    await cluster.controllers.idle()
    await asyncio.sleep(5)
    await cluster.put([(configuration(authority), CONFIGURATION)])


async def create(sim: Sim) -> None:
    await sim.cluster.client().create({"metadata": {"name": "new", "namespace": "default"}}, kind=CONFIG_MAP)


@virtual
async def test_a_service_leads_to_the_pod_on_its_simulated_machine() -> None:
    authority = trustme.CA()
    async with listener(authority) as port, simulation() as sim:
        await install(sim, authority)
        host = sim.network.host("cp-0")
        assert host is not None
        host.listen(9443, Loopback("127.0.0.1", port))
        with pytest.raises(ApiError, match=r"hook\.example\.org.*denied the request: not today"):
            await create(sim)


@virtual
async def test_a_pod_that_only_appears_to_run_refuses_the_connection() -> None:
    authority = trustme.CA()
    async with simulation() as sim:
        await install(sim, authority)
        with pytest.raises(
            Internal, match=r'Post "https://hook\.kube-system\.svc:443/check\?timeout=10s": .*connection refused'
        ):
            await create(sim)


@virtual
async def test_a_webhook_whose_pods_are_gone_is_reported_as_such() -> None:
    authority = trustme.CA()
    async with simulation() as sim:
        await install(sim, authority)
        key = Key(META["namespace"], META["name"])
        await sim.cluster.client().patch(DEPLOYMENT, key, MergePatch({"spec": {"replicas": 0}}))
        await asyncio.sleep(60)
        with pytest.raises(Internal, match='no endpoints available for service "hook" in namespace "kube-system"'):
            await create(sim)
