"""`homeport kubeconfig`: a member of a team gets a kubeconfig of a tenant cluster."""

from __future__ import annotations

import base64
import json
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from e2e.cluster import Cluster
from e2e.test_homeport_command import Plane
from homeport.capi.remote import kubeconfig as stored
from homeport.capi.remote import pki
from homeport.client.protocol import Key
from homeport.machinery import yaml

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PLATFORM = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ButlerConfig
metadata: {name: butler}
spec: {multiTenancy: {mode: Enforced}}
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: Team
metadata: {name: harbour}
spec:
  access: {users: [{name: ada@example.com, role: operator}]}
"""
CLUSTER = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: TenantCluster
metadata: {name: quay, namespace: harbour}
spec: {paused: true}
"""


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    plane = Plane(tmp_path / "data")
    yield plane
    plane.homeport("down", check=False)


async def test_a_member_gets_a_kubeconfig_and_a_stranger_does_not(plane: Plane, kubectl: str, tmp_path: Path) -> None:
    plane.up()
    ours = Cluster("ours", kubectl, plane.data / "kubeconfig", tmp_path)
    ours.ok("apply", "-f", "-", stdin=PLATFORM)
    ours.ok("wait", "--for=condition=Ready", "team/harbour", "--timeout=60s")
    ours.ok("apply", "-f", "-", stdin=CLUSTER)
    ours.ok("create", "namespace", "quay-1")
    status = json.dumps({"status": {"tenantNamespace": "quay-1"}})
    ours.ok("patch", "tenantcluster", "quay", "-n", "harbour", "--subresource=status", "--type=merge", "-p", status)
    cluster, now = Key("quay-1", "quay"), time.time()
    ca = (await pki.generate(("ca",), now=now))["ca"]
    admin = stored.make("quay", "https://10.0.0.9:6443", ca, now=now)
    for body in (pki.as_secret(cluster, "ca", ca, None), stored.as_secret(cluster, admin, None)):
        ours.ok("apply", "-f", "-", stdin=json.dumps(body))

    file = tmp_path / "quay.kubeconfig"
    member = ("kubeconfig", "quay", "-n", "harbour", "--as", "ada@example.com")
    plane.homeport(*member, "--expires", "90m", "-o", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content = yaml.load(file.read_text(), "kubeconfig")
    data = content["users"][0]["user"]["client-certificate-data"]
    found = x509.load_pem_x509_certificate(base64.b64decode(data))
    assert found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "ada@example.com"
    assert found.not_valid_after_utc.timestamp() - now < 91 * 60 + 30
    assert content["clusters"][0]["cluster"]["server"] == "https://10.0.0.9:6443"

    refused = plane.homeport("kubeconfig", "quay", "-n", "harbour", check=False)
    assert refused.returncode == 1
    assert "is not a member of the team of TenantCluster harbour/quay" in refused.stderr
    wrong = plane.homeport(*member, "--expires", "5m", check=False)
    assert wrong.returncode == 2
    assert "must be from 10m to 24h" in wrong.stderr
