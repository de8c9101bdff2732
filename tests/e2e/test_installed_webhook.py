"""The webhooks of an installation on a real kube-apiserver: nobody notices that certificates or replicas are replaced."""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from capikit.installed import refusals, running
from capikit.podnetwork import NetworkedKube
from e2e.test_install_on_kubernetes import homeport, ok
from homeport.apiserver.auth import certificate as certs
from homeport.runtime.webhook.authority import Authority, parse_authority

pytestmark = [pytest.mark.timeout(600)]

SERVICE, NAMESPACE = "homeport-webhook", "homeport-system"
HOST = f"{SERVICE}.{NAMESPACE}.svc"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SERVICE}"
# An older version, so that each request is converted, defaulted and validated.
CLUSTERS = "/apis/cluster.x-k8s.io/v1beta1/namespaces/default/clusters?dryRun=All"
INFRA = "infrastructure.cluster.x-k8s.io/v1beta1"
SPEC = {"infrastructureRef": {"apiVersion": INFRA, "kind": "NutanixCluster", "name": "asked"}}
CLUSTER = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "asked"}, "spec": SPEC}


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[NetworkedKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with NetworkedKube(binaries) as made:
        yield made


class Asker:
    """Creates the same object again and again, for nothing but the answer."""

    def __init__(self, kube: NetworkedKube) -> None:
        self._kube = kube
        self._stop = threading.Event()
        self.answered = 0
        self.failures: list[str] = []

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        thread = threading.Thread(target=self._ask)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _ask(self) -> None:
        while not self._stop.wait(0.02):
            code, body = self._kube.request(CLUSTERS, "POST", CLUSTER)
            self.answered += 1
            if code != 201:
                self.failures.append(body.decode())

    def some(self) -> None:
        seen = self.answered
        until(lambda: self.answered >= seen + 10, "more answers")


def until(holds: Callable[[], Any], what: str, seconds: float = 180.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.1)


def held(kube: NetworkedKube) -> Authority:
    return parse_authority(json.loads(kube.request(SECRET)[1])["data"])


def write(kube: NetworkedKube, **change: Any) -> None:
    code, body = kube.request(SECRET, "PATCH", change, Content_Type="application/merge-patch+json")
    assert code == 200, body


def known(kube: NetworkedKube) -> set[str]:
    """The CAs that the API server trusts, as every object has them."""
    crds = json.loads(ok(kube, "get", "crds", "-o", "json"))["items"]
    clients = [
        e["spec"]["conversion"]["webhook"]["clientConfig"] for e in crds if e["spec"]["conversion"].get("webhook")
    ]
    for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        listed = json.loads(ok(kube, "get", kind, "-o", "json"))["items"]
        clients += [webhook["clientConfig"] for each in listed for webhook in each["webhooks"]]
    return {base64.b64decode(client.get("caBundle", "")).decode() for client in clients}


def signed_by(port: int, issuer: certs.Issuer) -> bool:
    context = ssl.create_default_context(cadata=certs.certificate_pem(issuer.certificate).decode())
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as raw, context.wrap_socket(raw, server_hostname=HOST):
            return True
    except ssl.SSLCertVerificationError:
        return False


def successors() -> tuple[certs.Issuer, certs.Issuer]:
    """A CA that was made now, and the same one (its name and its key) as if it had been made two days ago."""
    key, now = certs.make_key(), datetime.datetime.now(datetime.UTC)
    young, aged = (certs.sign_ca(key, now - datetime.timedelta(days=days)) for days in (0, 2))
    return certs.Issuer(young, key), certs.Issuer(aged, key)


def test_certificates_and_replicas_are_replaced_without_a_failed_request(kube: NetworkedKube) -> None:
    homeport("install", "--kubeconfig", str(kube.kubeconfig))
    asker = Asker(kube)
    with running(kube) as log, contextlib.ExitStack() as second:
        second.enter_context(running(kube))
        with asker.asking():
            asker.some()
            old = held(kube)
            assert known(kube) == {old.bundle.decode()}
            assert all(signed_by(pod.ports["webhook"], old.issuer) for pod in kube.pods)
            # A successor is trusted for a day before it signs.
            young, aged = successors()
            waiting = Authority(old.issuer, young)
            write(kube, data=waiting.as_data())
            until(lambda: known(kube) == {waiting.bundle.decode()}, "the successor is trusted")
            assert all(signed_by(pod.ports["webhook"], old.issuer) for pod in kube.pods)
            # The same one, a day later.
            write(kube, data=Authority(old.issuer, aged).as_data())
            until(lambda: all(signed_by(pod.ports["webhook"], aged) for pod in kube.pods), "new certificates")
            asker.some()
            assert held(kube).issuer.certificate == aged.certificate
            assert held(kube).trusted == (old.issuer.certificate,)
            assert len(kube.pods) == 2
            second.close()  # a Node is drained
            asker.some()
            with running(kube):
                asker.some()
    assert asker.failures == []
    assert asker.answered > 50
    assert not refusals(log)
