from __future__ import annotations

import base64
import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes as digests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from homeport.apiserver.auth import certificate as certs
from homeport.capi.remote import pki
from homeport.capi.remote.pki import KeyPair, PkiError
from homeport.client.protocol import Key, Query, Write
from homeport.runtime.testing import plane

NOW = 1_767_225_600.0
YEAR = 365 * 86400.0
CLUSTER = Key("default", "prod")
OWNER = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "prod", "uid": "u"}
OPTIONS = Write(field_manager="test")


async def test_authorities_last_ten_years_and_are_named_as_kubeadm_names_them() -> None:
    made = await pki.generate(pki.GENERATED, now=NOW)
    names = {}
    for purpose in ("ca", "etcd", "proxy"):
        found = x509.load_pem_x509_certificate(made[purpose].certificate)
        names[purpose] = found.subject.rfc4514_string()
        assert isinstance(found.public_key(), ec.EllipticCurvePublicKey)
        assert found.not_valid_after_utc.timestamp() - NOW == 3650 * 86400
    assert names == {"ca": "CN=kubernetes", "etcd": "CN=etcd-ca", "proxy": "CN=front-proxy-ca"}
    public = serialization.load_pem_public_key(made["sa"].certificate)
    assert certs.load_private_key(made["sa"].key).public_key() == public


async def test_authorities_are_valid_at_once_though_they_were_made_with_a_clock_that_was_days_ahead() -> None:
    made = await pki.generate(pki.GENERATED, now=NOW + 6 * 86400)
    for purpose in pki.GENERATED:
        pki.check(made[purpose], purpose, where="here", now=NOW)


async def test_the_algorithm_of_the_cluster_is_used() -> None:
    made = await pki.generate(["ca", "sa"], now=NOW, algorithm="RSA-2048", days=10)
    key = certs.load_private_key(made["ca"].key)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == 2048
    assert pki.expiry(made["ca"].certificate) == NOW + 10 * 86400
    made = await pki.generate(["ca"], now=NOW, algorithm="ECDSA-P384")
    key = certs.load_private_key(made["ca"].key)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(key.curve, ec.SECP384R1)


async def test_an_authority_of_rsa_signs_clients_as_well() -> None:
    ca = (await pki.generate(["ca"], now=NOW, algorithm="RSA-2048"))["ca"]
    admin = pki.client_certificate(ca, "kubernetes-admin", ("system:masters",), now=NOW)
    found = x509.load_pem_x509_certificate(admin.certificate)
    found.verify_directly_issued_by(x509.load_pem_x509_certificate(ca.certificate))
    assert found.subject.rfc4514_string() == "CN=kubernetes-admin,O=system:masters"
    assert pki.expiry(admin.certificate) == NOW + YEAR


async def test_the_hash_is_of_the_public_key_of_each_certificate() -> None:
    a = (await pki.generate(["ca"], now=NOW))["ca"].certificate
    b = (await pki.generate(["ca"], now=NOW))["ca"].certificate
    assert len(pki.hashes(a + b)) == 2
    assert pki.hashes(a + b)[0] == pki.hashes(a)[0]
    assert pki.hashes(a)[0].startswith("sha256:")
    assert len(pki.hashes(a)[0]) == 7 + 64


def test_files_are_where_kubeadm_looks() -> None:
    assert pki.files("etcd") == ("/etc/kubernetes/pki/etcd/ca.crt", "/etc/kubernetes/pki/etcd/ca.key")
    assert pki.files("sa", "/x/") == ("/x/sa.pub", "/x/sa.key")


# -- Secrets ---------------------------------------------------------------------------------------------------------


async def test_what_is_missing_is_made_once() -> None:
    async with plane() as p:
        made = await pki.ensure(p.client, CLUSTER, owner=OWNER, now=NOW, options=OPTIONS)
        revision = p.server.store.revision
        assert await pki.ensure(p.client, CLUSTER, owner=OWNER, now=NOW, options=OPTIONS) == made
        assert p.server.store.revision == revision
        assert await pki.lookup(p.client, CLUSTER, now=NOW) == made
        found = await p.client.list(pki.SECRET, Query(namespace="default", labels="cluster.x-k8s.io/cluster-name=prod"))
        assert {each.name for each in found.items} == {"prod-ca", "prod-etcd", "prod-proxy", "prod-sa"}
        assert {each["type"] for each in found.items} == {"cluster.x-k8s.io/secret"}
        assert all(set(each["data"]) == {"tls.crt", "tls.key"} for each in found.items)
        assert all(each.metadata["ownerReferences"] == [OWNER] for each in found.items)


async def test_what_a_user_brought_is_kept_even_without_a_label() -> None:
    mine = (await pki.generate(["ca"], now=NOW))["ca"]
    async with plane() as p:
        secret = pki.as_secret(CLUSTER, "ca", mine, None)
        del secret["metadata"]["labels"]
        await p.have(secret)
        made = await pki.ensure(p.client, CLUSTER, owner=OWNER, now=NOW, options=OPTIONS)
        assert made["ca"] == mine
        assert (await pki.lookup(p.client, CLUSTER, now=NOW))["ca"] == mine
        kept = await p.client.get(pki.SECRET, Key("default", "prod-ca"))
        assert "ownerReferences" not in kept.metadata


async def test_with_an_external_etcd_the_user_brings_its_certificates() -> None:
    etcd = (await pki.generate(["etcd"], now=NOW))["etcd"]
    client = pki.client_certificate(etcd, "apiserver", now=NOW)
    async with plane() as p:
        with pytest.raises(PkiError, match="prod-etcd is missing: with an external etcd you must create it"):
            await pki.ensure(p.client, CLUSTER, owner=OWNER, now=NOW, options=OPTIONS, external_etcd=True)
        await p.have(pki.as_secret(CLUSTER, "etcd", KeyPair(etcd.certificate), None))
        await p.have(pki.as_secret(CLUSTER, "apiserver-etcd-client", client, None))
        made = await pki.ensure(p.client, CLUSTER, owner=OWNER, now=NOW, options=OPTIONS, external_etcd=True)
        assert set(made) == {"ca", "proxy", "sa", "etcd", "apiserver-etcd-client"}
        assert made["etcd"].key == b""
        assert made["apiserver-etcd-client"] == client


# -- what users bring ------------------------------------------------------------------------------------------------


def leaf() -> KeyPair:
    key = certs.make_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "leaf")])
    now = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, digests.SHA256())
    )
    return KeyPair(certs.certificate_pem(made), certs.key_pem(key))


@pytest.mark.parametrize(
    ("case", "what"),
    [
        ("no certificate", r"data\[tls\.crt\] is missing"),
        ("no key", r"data\[tls\.key\] is missing"),
        ("another key", "does not belong to the first certificate"),
        ("no pem", "contains no valid PEM certificate"),
        ("no key pem", "not an unencrypted RSA or EC"),
        ("expired", "expired on 2035-12-30"),
        ("not yet", "valid from 2025"),
        ("leaf", "is not a CA certificate"),
    ],
)
async def test_an_authority_that_can_not_work_is_refused(case: str, what: str) -> None:
    ca = (await pki.generate(["ca"], now=NOW))["ca"]
    other = (await pki.generate(["ca"], now=NOW))["ca"]
    now = {"expired": NOW + 11 * YEAR, "not yet": NOW - YEAR}.get(case, NOW)
    pair = {
        "no certificate": KeyPair(b"", ca.key),
        "no key": KeyPair(ca.certificate),
        "another key": KeyPair(ca.certificate, other.key),
        "no pem": KeyPair(b"x", ca.key),
        "no key pem": KeyPair(ca.certificate, b"x"),
        "leaf": leaf(),
    }.get(case, ca)
    with pytest.raises(PkiError, match=what) as refused:
        pki.parse(pki.as_secret(CLUSTER, "ca", pair, None), "ca", now=now)
    assert "Secret prod-ca" in str(refused.value)


async def test_the_key_of_service_accounts_must_match() -> None:
    a, b = [(await pki.generate(["sa"], now=NOW))["sa"] for _ in range(2)]
    with pytest.raises(PkiError, match="does not belong to the public key"):
        pki.check(KeyPair(a.certificate, b.key), "sa", where="Secret x", now=NOW)
    with pytest.raises(PkiError, match="not a public key in PEM"):
        pki.check(KeyPair(b"x", b.key), "sa", where="Secret x", now=NOW)


async def test_an_authority_below_another_brings_its_issuer_and_roots_may_stand_side_by_side() -> None:
    roots = [(await pki.generate(["ca"], now=NOW))["ca"] for _ in range(2)]
    pki.check(KeyPair(roots[0].certificate + roots[1].certificate, roots[0].key), "ca", where="x", now=NOW)
    issuer = roots[0].issuer()
    key = certs.make_key()
    lower = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lower")]))
        .issuer_name(issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(2)
        .not_valid_before(pki.moment(NOW))
        .not_valid_after(pki.moment(NOW + YEAR))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(issuer.key, digests.SHA256())
    )
    pem = certs.certificate_pem(lower)
    pki.check(KeyPair(pem + roots[0].certificate, certs.key_pem(key)), "ca", where="x", now=NOW)
    with pytest.raises(PkiError, match="none of the other certificates"):
        pki.check(KeyPair(pem + roots[1].certificate, certs.key_pem(key)), "ca", where="x", now=NOW)


def test_what_is_not_base64_is_named() -> None:
    with pytest.raises(PkiError, match=r"Secret a: data\[x\] is not base64"):
        pki.secret_data({"metadata": {"name": "a"}, "data": {"x": "%"}}, "x")
    assert pki.secret_data({"data": {"x": base64.b64encode(b"y").decode()}}, "x") == b"y"


def test_private_keys_are_not_in_the_repr() -> None:
    assert "secret" not in repr(KeyPair(b"c", b"secret"))
