"""The CA of the webhooks, issued and renewed by the real cert-manager on a real kube-apiserver."""

from __future__ import annotations

import datetime
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from capikit.installed import refusals, running
from capikit.podnetwork import NetworkedKube
from e2e.test_clusterctl import ROOT
from e2e.test_install_on_kubernetes import homeport, ok
from e2e.test_installed_webhook import HOST, SECRET, Asker, held, known, until
from homeport.runtime.webhook.authority import Authority, AuthorityError
from present import present

pytestmark = [pytest.mark.timeout(600)]

BUILD = ROOT / "tools" / "certmanager" / "build"
GUIDE = ROOT / "docs" / "howto" / "real-kubernetes.md"
CERTIFICATE = "certificate/homeport-webhook"
NAMESPACE = "homeport-system"
STATUS = f"/apis/cert-manager.io/v1/namespaces/{NAMESPACE}/certificates/homeport-webhook/status"


@pytest.fixture(scope="module")
def cert_manager() -> Path:
    """The directory with the program and the definitions."""
    if not os.environ.get("HOMEPORT_UPSTREAM"):
        pytest.skip("building it takes minutes: `make upstream` runs it")
    asked = subprocess.run([sys.executable, str(BUILD), "--where"], capture_output=True, text=True, check=True)
    made = Path(asked.stdout.strip())
    if not (made / "cert-manager").exists():
        pytest.skip(f"no {made / 'cert-manager'}: run tools/certmanager/build")
    return made


@pytest.fixture
def kube(cert_manager: Path, binaries: dict[str, Path] | str) -> Iterator[NetworkedKube]:
    """With cert-manager at work, and a CA of its own from which it issues others."""
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with NetworkedKube(binaries) as made:
        ok(made, "apply", "--server-side", "-f", str(cert_manager / "crds"))
        ok(made, "wait", "crd", "--all", "--for=condition=Established", "--timeout=50s")
        ok(made, "create", "namespace", "cert-manager")
        with open(made.dir / "cert-manager.log", "wb") as log:
            command = [str(cert_manager / "cert-manager"), "--kubeconfig", str(made.kubeconfig)]
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            apply(made, *issuers())
            ready(made, "clusterissuer/your-issuer")
            yield made
        finally:
            process.terminate()
            process.wait(timeout=30)


def issuers() -> list[dict[str, Any]]:
    """Of the name that the guide has, from a root that nobody but cert-manager made."""

    def issuer(name: str, **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": "cert-manager.io/v1",
            "kind": "ClusterIssuer",
            "metadata": {"name": name},
            "spec": spec,
        }

    root = {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": "root", "namespace": "cert-manager"},
        "spec": {
            "isCA": True,
            "commonName": "root",
            "secretName": "root",
            "issuerRef": {"name": "self", "kind": "ClusterIssuer"},
        },
    }
    return [issuer("self", selfSigned={}), root, issuer("your-issuer", ca={"secretName": "root"})]


def from_the_guide() -> dict[str, Any]:
    blocks = [each.partition("```")[0] for each in GUIDE.read_text().split("```yaml")[1:]]
    found: dict[str, Any] = next(yaml.safe_load(each) for each in blocks if "cert-manager.io/v1" in each)
    return found


def apply(kube: NetworkedKube, *objects: dict[str, Any]) -> None:
    done = kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    assert done.returncode == 0, done.stderr


def ready(kube: NetworkedKube, what: str, namespace: str = "cert-manager") -> None:
    waited = kube.kubectl("wait", what, "-n", namespace, "--for=condition=Ready", "--timeout=55s")
    log = (kube.dir / "cert-manager.log").read_text()
    assert waited.returncode == 0, f"{waited.stderr}{log[-3000:]}"


def revision(kube: NetworkedKube) -> int:
    return int(ok(kube, "get", CERTIFICATE, "-n", NAMESPACE, "-o", "jsonpath={.status.revision}") or 0)


def renew(kube: NetworkedKube) -> None:
    """As `cmctl renew` does it."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = json.loads(kube.request(STATUS)[1])
    issuing = {
        "type": "Issuing",
        "status": "True",
        "reason": "ManuallyTriggered",
        "message": "Certificate re-issuance manually triggered",
        "lastTransitionTime": now,
        "observedGeneration": body["metadata"]["generation"],
    }
    body["status"].setdefault("conditions", []).append(issuing)
    code, answer = kube.request(STATUS, "PUT", body)
    assert code == 200, answer


def used(kube: NetworkedKube) -> bool:
    """Every object trusts what the Secret holds, and all replicas have certificates of it."""
    try:
        given = held(kube)
    except AuthorityError:
        return False
    return (
        given.given
        and known(kube) == {given.bundle.decode()}
        and all(served_with(pod.ports["webhook"], given) for pod in kube.pods)
    )


def served_with(port: int, authority: Authority) -> bool:
    """Whether a replica has a certificate of this CA, with a chain that leads to what is trusted."""
    context = ssl.create_default_context(cadata=authority.bundle.decode())
    try:
        with (
            socket.create_connection(("127.0.0.1", port), 5) as raw,
            context.wrap_socket(raw, server_hostname=HOST) as server,
        ):
            leaf = x509.load_der_x509_certificate(present(server.getpeercert(binary_form=True)))
    except ssl.SSLCertVerificationError:
        return False
    return leaf.issuer == authority.issuer.certificate.subject and authority.issuer.identifier.key_identifier == (
        leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    )


def test_a_ca_of_cert_manager_is_used_and_renewed_without_a_failed_request(kube: NetworkedKube) -> None:
    """The Certificate comes after the installation, when the replicas have a CA of their own."""
    homeport("install", "--kubeconfig", str(kube.kubeconfig))
    with running(kube) as log, running(kube):
        until(lambda: known(kube) == {held(kube).bundle.decode()}, "a CA of our own")
        assert not held(kube).given
        apply(kube, from_the_guide())
        ready(kube, CERTIFICATE, NAMESPACE)
        until(lambda: used(kube), "the CA of cert-manager is used")
        root = json.loads(ok(kube, "get", "secret", "root", "-n", "cert-manager", "-o", "json"))["data"]["tls.crt"]
        assert json.loads(kube.request(SECRET)[1])["data"]["ca.crt"] == root
        asker = Asker(kube)
        with asker.asking():
            asker.some()
            before, number = held(kube).issuer.certificate, revision(kube)
            renew(kube)
            until(lambda: revision(kube) == number + 1, "cert-manager has issued another CA")
            until(lambda: held(kube).issuer.certificate != before and used(kube), "the other CA is used")
            asker.some()
        assert asker.failures == []
        assert asker.answered > 20

        # Whoever is faster: in the end it is that of cert-manager.
        assert kube.request(SECRET, "DELETE")[0] == 200
        until(lambda: kube.request(SECRET)[0] == 200 and used(kube), "a lost Secret is issued again")

        # And back to one of our own.
        ok(kube, "delete", CERTIFICATE, "-n", NAMESPACE)
        assert kube.request(SECRET, "DELETE")[0] == 200
        until(lambda: kube.request(SECRET)[0] == 200 and not held(kube).given, "a CA of our own again")
        until(lambda: known(kube) == {held(kube).bundle.decode()}, "it is trusted")
    assert not refusals(log)


def test_replicas_start_with_a_ca_that_cert_manager_issued_before_the_installation(kube: NetworkedKube) -> None:
    ok(kube, "create", "namespace", NAMESPACE)
    apply(kube, from_the_guide())
    ready(kube, CERTIFICATE, NAMESPACE)
    issued = json.loads(kube.request(SECRET)[1])
    homeport("install", "--kubeconfig", str(kube.kubeconfig))
    with running(kube) as log:
        asker = Asker(kube)
        with asker.asking():
            asker.some()
        assert asker.failures == []
        assert used(kube)
        assert json.loads(kube.request(SECRET)[1])["data"] == issued["data"], "it is only read"
    assert not refusals(log)


def test_a_certificate_that_is_not_a_ca_is_reported_and_used_once_it_is_one(kube: NetworkedKube) -> None:
    homeport("install", "--kubeconfig", str(kube.kubeconfig))
    wrong = from_the_guide()
    del wrong["spec"]["isCA"]
    wrong["spec"]["dnsNames"] = ["homeport-webhook"]
    with running(kube) as log:
        until(lambda: known(kube) == {held(kube).bundle.decode()}, "a CA of our own")
        apply(kube, wrong)
        ready(kube, CERTIFICATE, NAMESPACE)
        until(lambda: "set isCA: true in the Certificate" in log.read_text(), "the cause is in the log")
        asker = Asker(kube)
        with asker.asking():
            asker.some()
        assert asker.failures == [], "the certificates that the replicas have are still good"
        apply(kube, from_the_guide())
        until(lambda: used(kube), "the CA of cert-manager is used")
