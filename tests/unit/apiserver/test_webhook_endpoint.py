"""Which address stands behind the Service of a webhook."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from homeport.apiserver.webhook.call import CallFailed
from homeport.apiserver.webhook.endpoint import Address, ServiceEndpoints
from homeport.store import Store
from unit.apiserver.admission_sample import put

PORT = {"name": "hooks", "port": 443, "targetPort": "https"}
SELECTOR = {"app": "hook"}


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = await Store.open(None)
    yield opened
    await opened.close()


async def service(store: Store, **spec: Any) -> None:
    body = {"metadata": {"name": "hook", "namespace": "ops"}, "spec": {"ports": [PORT], **spec}}
    await put(store, "services", "ops/hook", body)


async def endpoint_slice(store: Store, name: str, *endpoints: tuple[str, bool | None], owner: str = "hook") -> None:
    body = {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": owner}},
        "endpoints": [
            {"addresses": [address], "conditions": {} if ready is None else {"ready": ready}}
            for address, ready in endpoints
        ],
        "ports": [{"name": "metrics", "port": 8080}, {"name": "hooks", "port": 9443}],
    }
    await put(store, "endpointslices.discovery.k8s.io", f"ops/{name}", body)


async def pod(
    store: Store, name: str, address: str, *, ready: bool = True, namespace: str = "ops", **meta: Any
) -> None:
    container = {"name": "c", "ports": [{"name": "https", "containerPort": 9443}]}
    body = {
        "metadata": {"name": name, "labels": {**SELECTOR, "more": "yes"}, **meta},
        "spec": {"containers": [container]},
        "status": {
            "phase": "Running",
            "podIP": address,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }
    await put(store, "pods", f"{namespace}/{name}", body)


def resolve(store: Store, port: int = 443) -> Address:
    return ServiceEndpoints(store).resolve("ops", "hook", port)


async def test_only_ready_endpoints_of_all_slices_take_turns(store: Store) -> None:
    await service(store)
    await endpoint_slice(store, "a", ("10.0.0.1", True), ("10.0.0.2", False))
    await endpoint_slice(store, "b", ("10.0.0.3", None))
    await endpoint_slice(store, "c", ("10.0.0.4", True), owner="other")
    endpoints = ServiceEndpoints(store)
    found = [endpoints.resolve("ops", "hook", 443) for _ in range(4)]
    assert found == [Address("10.0.0.1", 9443), Address("10.0.0.3", 9443)] * 2


async def test_endpoints_count_where_there_are_no_slices(store: Store) -> None:
    await service(store)
    subset = {
        "addresses": [{"ip": "10.0.0.1"}],
        "notReadyAddresses": [{"ip": "10.0.0.2"}],
        "ports": [{"name": "hooks", "port": 9443}],
    }
    await put(store, "endpoints", "ops/hook", {"metadata": {"name": "hook"}, "subsets": [subset]})
    endpoints = ServiceEndpoints(store)
    assert {endpoints.resolve("ops", "hook", 443) for _ in range(3)} == {Address("10.0.0.1", 9443)}


async def test_ready_pods_count_where_there_is_no_endpoint_controller(store: Store) -> None:
    await service(store, selector=SELECTOR)
    await pod(store, "a", "10.0.0.1", ready=False)
    await pod(store, "b", "10.0.0.2", deletionTimestamp="2024-01-01T00:00:00Z")
    await pod(store, "c", "10.0.0.3", namespace="elsewhere")
    await pod(store, "d", "10.0.0.4")
    endpoints = ServiceEndpoints(store)
    assert {endpoints.resolve("ops", "hook", 443) for _ in range(3)} == {Address("10.0.0.4", 9443)}


async def test_a_service_without_selector_does_not_select_every_pod(store: Store) -> None:
    await service(store)
    await pod(store, "a", "10.0.0.1")
    with pytest.raises(CallFailed, match="it has no endpoints"):
        resolve(store)


async def test_an_external_name_is_taken_as_it_is(store: Store) -> None:
    await service(store, type="ExternalName", externalName="hooks.example.org")
    assert resolve(store) == Address("hooks.example.org", 443)


async def test_endpoints_that_are_not_ready_are_counted_in_the_error(store: Store) -> None:
    await service(store)
    await endpoint_slice(store, "a", ("10.0.0.1", False), ("10.0.0.2", False))
    with pytest.raises(CallFailed) as failed:
        resolve(store)
    assert str(failed.value) == (
        'no endpoints available for service "hook" in namespace "ops": 2 endpoint(s), none of them ready'
    )


async def test_a_port_that_the_service_does_not_have_is_an_error(store: Store) -> None:
    await service(store)
    await endpoint_slice(store, "a", ("10.0.0.1", True))
    with pytest.raises(CallFailed, match='no service port 8443 found for service "hook"'):
        resolve(store, 8443)
