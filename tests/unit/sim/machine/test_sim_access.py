"""From outside: our client and kubectl, by the endpoint of the manifest, through the proxy."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from homeport.apiserver.auth.token import jwt
from homeport.client.config import Config
from homeport.client.credential import Certificate, Static
from homeport.client.errors import Unavailable
from homeport.client.http import HttpClient
from homeport.client.protocol import Key
from homeport.client.wire.retry import Retry
from homeport.runtime.clock import SystemClock
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.workload.kind import NODE
from homeport.sim.machine.workload.trust.authority import now_of
from homeport.sim.network import Network, Proxy
from unit.sim.machine.sim_kit import PACE, Pair, Secrets, Sim, init_data, join_data, make_pair


def rsa_pair(clock: SystemClock) -> Pair:
    key = rsa.generate_private_key(65537, 2048)
    now = now_of(clock)()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    import datetime

    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=True,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=True,
                crl_sign=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return Pair(made.public_bytes(serialization.Encoding.PEM), pem)


async def test_an_rsa_cluster_is_reached_by_its_endpoint_until_its_machine_is_off(tmp_path: Path) -> None:
    clock = SystemClock()
    network = Network()
    fleet = Fleet(network, clock, pace=PACE)
    ca = rsa_pair(clock)
    sim = Sim(network, fleet, clock, Secrets(ca, make_pair(clock), make_pair(clock), rsa_pair(clock).key))
    proxy = Proxy(network)
    await proxy.start()
    try:
        await sim.boot("cp-0", init_data(sim.secrets))
        await sim.add_token()
        await sim.boot("md-0", join_data(sim.secrets))
        cluster = sim.cluster
        issued = cluster.pki.issue_client("admin", ("system:masters",))
        credential = Static(cert=Certificate(issued.certificate, issued.key))
        config = Config("https://10.0.0.100:6443", credential, ca.certificate, proxy=proxy.url())
        async with HttpClient(config, retry=Retry(attempts=1)) as client:
            assert (await client.get(NODE, Key("", "md-0")))["metadata"]["name"] == "md-0"
            version = json.loads((await client.raw("GET", "/version")).check("/version"))
            assert (version["gitVersion"], version["major"], version["minor"]) == ("v1.30.2", "1", "30")
            if shutil.which("kubectl"):
                await kubectl_works(sim, proxy, tmp_path)
            sim.power_off("cp-0")
            with pytest.raises(Unavailable):
                await client.get(NODE, Key("", "md-0"))
    finally:
        await proxy.close()
        await fleet.close()


async def kubectl_works(sim: Sim, proxy: Proxy, folder: Path) -> None:
    cluster = sim.cluster
    path = folder / "kubeconfig"
    path.write_text(cluster.pki.client_kubeconfig(cluster.facts.server, "admin", ("system:masters",), proxy.url()))
    environment = {**os.environ, "HOME": str(folder), "KUBECONFIG": str(path)}
    for arguments, words in (
        (("get", "nodes", "-o", "wide"), "10.0.0.11"),
        (("version",), "Server Version: v1.30.2\n"),
        (("get", "pods", "-n", "kube-system"), "etcd-cp-0"),
        (("drain", "md-0", "--ignore-daemonsets", "--timeout=20s", "--force"), "node/md-0 drained"),
    ):
        process = await asyncio.create_subprocess_exec(
            "kubectl", *arguments, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await asyncio.wait_for(process.communicate(), 40)
        assert process.returncode == 0, out.decode()
        assert words in out.decode()


@pytest.mark.parametrize(
    ("curve", "algorithm"), [(ec.SECP256R1(), "ES256"), (ec.SECP384R1(), "ES384"), (None, "RS256")]
)
def test_tokens_are_signed_with_the_kind_of_key_that_was_given(curve: ec.EllipticCurve | None, algorithm: str) -> None:
    key = ec.generate_private_key(curve) if curve is not None else rsa.generate_private_key(65537, 2048)
    token = jwt.sign({"sub": "a"}, key)
    assert jwt.algorithm(key.public_key()) == algorithm
    assert jwt.verify(token, key.public_key()) == {"sub": "a"}
    with pytest.raises(jwt.TokenInvalid):
        jwt.verify(token[:-4] + "AAAA", key.public_key())
    with pytest.raises(jwt.TokenInvalid):
        jwt.verify(token, ec.generate_private_key(ec.SECP256R1()).public_key())
