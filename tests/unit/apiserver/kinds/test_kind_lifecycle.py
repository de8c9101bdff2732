"""What the server does in place of controllers that are not there, and what it tells writers."""

from __future__ import annotations

from homeport.apiserver.request import Context
from unit.apiserver.kinds.kind_server import ADMIN, Server

MERGE = "application/merge-patch+json"
NS = "/api/v1/namespaces/default"


async def test_a_node_that_says_it_is_ready_loses_the_taint_of_a_new_one(server: Server) -> None:
    keep = {"key": "k", "effect": "NoExecute"}
    code, node = await server.ask("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"taints": [keep]}})
    assert code == 201
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["k", "node.kubernetes.io/not-ready"]
    for ready, taints in (("False", 2), ("True", 1)):
        status = {"status": {"conditions": [{"type": "Ready", "status": ready}]}}
        code, node = await server.ask("PATCH", "/api/v1/nodes/n/status", status, MERGE)
        assert code == 200
        assert len(node["spec"]["taints"]) == taints
    assert node["spec"]["taints"] == [keep]


async def test_a_claim_is_protected_until_its_deletion_is_asked_for(server: Server) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = f"{NS}/persistentvolumeclaims"
    _, claim = await server.ask("POST", claims, {"metadata": {"name": "c"}, "spec": spec})
    assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert (await server.ask("DELETE", f"{claims}/c"))[0] == 200
    assert (await server.ask("GET", f"{claims}/c"))[0] == 404


async def test_somebody_elses_finalizer_still_holds_a_claim(server: Server) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = f"{NS}/persistentvolumeclaims"
    await server.ask("POST", claims, {"metadata": {"name": "c", "finalizers": ["example.com/a"]}, "spec": spec})
    await server.ask("DELETE", f"{claims}/c")
    code, claim = await server.ask("GET", f"{claims}/c")
    assert code == 200
    assert claim["metadata"]["finalizers"] == ["example.com/a"]


async def test_the_writer_of_an_odd_tls_secret_is_warned_and_obeyed(server: Server) -> None:
    served, at = server.registry.find("", "v1", "secrets")
    ctx = Context(ADMIN, user_agent="test/1")
    body = {"metadata": {"name": "t"}, "type": "kubernetes.io/tls", "data": {"tls.crt": "YQ==", "tls.key": "YQ=="}}
    await server.registry.create(ctx, served, at, "default", body)
    assert ctx.warnings == ["tls: failed to find any PEM data in certificate input"]


async def test_an_unhealthy_pod_may_be_evicted_where_the_budget_says_so(server: Server) -> None:
    pod = {
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    }
    await server.ask("POST", f"{NS}/pods", pod)
    await server.ask("PATCH", f"{NS}/pods/p/status", {"status": {"phase": "Running"}}, MERGE)
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
    await server.ask("POST", budgets, {"metadata": {"name": "b"}, "spec": spec})
    leave = {"metadata": {"name": "p"}}
    assert (await server.ask("POST", f"{NS}/pods/p/eviction", leave))[0] == 429
    await server.ask("PATCH", f"{budgets}/b", {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}, MERGE)
    assert (await server.ask("POST", f"{NS}/pods/p/eviction", leave))[0] == 201


async def test_an_eviction_may_be_a_dry_run_by_its_body(server: Server) -> None:
    """So `kubectl drain --dry-run=server` asks for it."""
    await server.ask(
        "POST", f"{NS}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    )
    for asked, code in ((["All"], 201), ([""], 422), (["None"], 422)):
        leave = {"metadata": {"name": "p"}, "deleteOptions": {"dryRun": asked}}
        assert (await server.ask("POST", f"{NS}/pods/p/eviction", leave))[0] == code
        assert (await server.ask("GET", f"{NS}/pods/p"))[0] == 200
    assert (await server.ask("POST", f"{NS}/pods/p/eviction", {"metadata": {"name": "p"}}))[0] == 201
    assert (await server.ask("GET", f"{NS}/pods/p"))[0] == 404


async def test_a_pod_under_two_budgets_can_not_be_evicted(server: Server) -> None:
    pod = {
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    }
    await server.ask("POST", f"{NS}/pods", pod)
    await server.ask("PATCH", f"{NS}/pods/p/status", {"status": {"phase": "Running"}}, MERGE)
    for name in ("one", "two"):
        budget = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {}}}
        await server.ask("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    code, answer = await server.ask("POST", f"{NS}/pods/p/eviction", {"metadata": {"name": "p"}})
    assert code == 500
    assert "more than one PodDisruptionBudget" in answer["message"]
