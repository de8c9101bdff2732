"""Which requests of the page are passed on to the API server."""

from __future__ import annotations

import pytest

from homeport.dashboard.forward import Forwarded, ForwardError


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default/secrets/x",
        "/apis/cluster.x-k8s.io/v1beta2/clusters?limit=5",
        "/openapi/v3/apis/apps/v1",
        "/apis",
        "/version",
        "/api/v1/pods?watch=false",
        "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/proxy",
        "/apis/cluster.x-k8s.io/v1beta2/namespaces/exec/clusters",
        "/api/v1/namespaces/attach",
        "/api/v1/namespaces/watch/configmaps/exec",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/%3Cimg%20src%3Dx%3E",
    ],
)
def test_requests_of_kubernetes_are_passed_on(path: str) -> None:
    Forwarded("GET", path).check()


@pytest.mark.parametrize(
    "path",
    [
        "/metrics",
        "/api/v1/../../metrics",
        "/api/v1/%2e%2e/x",
        "//evil.example/api/v1",
        "https://evil.example/api/v1",
        "/api/v1/pods?watch=true",
        "/api/v1/namespaces/a/pods/b/log?follow=1",
        "/api/v1/namespaces/a/pods/b/exec",
        "/api/v1/namespaces/a/services/b/proxy/x",
        "/api/v1/namespaces/a/services/b/%70roxy",
        "/api/v1/namespaces/a%2Fx/services/b/proxy",
        "/api/v1/nodes/n/proxy/metrics",
        "/api/v1/proxy/nodes/n",
        "/api/v1/watch/pods",
        "/apis/apps/v1/watch/namespaces/a/deployments",
        "/api/v1/x\r\nHost: evil",
        "api/v1",
        "",
    ],
)
def test_everything_else_is_refused(path: str) -> None:
    with pytest.raises(ForwardError):
        Forwarded("GET", path).check()


def test_methods_and_types_are_those_of_kubernetes() -> None:
    with pytest.raises(ForwardError, match="method"):
        Forwarded("CONNECT", "/api/v1/pods").check()
    with pytest.raises(ForwardError, match="content type"):
        Forwarded("POST", "/api/v1/pods", content_type="text/html").check()
    with pytest.raises(ForwardError, match="accept"):
        Forwarded("GET", "/api/v1/pods", accept="application/json\r\nX: y").check()
