"""Secrets of a Talos cluster, its certificates, and talosconfig."""

from __future__ import annotations

import base64
import datetime
import re
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from homeport.machinery import yaml
from homeport.machinery.talos.bundle import BundleError, parse_bundle, render_bundle
from homeport.machinery.talos.certificate import load_key, make_client, make_server, openssl_key
from homeport.machinery.talos.client import (
    TalosconfigError,
    parse_talosconfig,
    remaining,
    render_talosconfig,
    renew_talosconfig,
)
from homeport.machinery.talos.release import ReleaseError, choose_kubernetes, find_release, installer_image
from unit.machinery.talos.talos_kit import NOW, bundle


def label(pem: bytes) -> str:
    found = re.search(rb"-----BEGIN ([A-Z0-9 ]+)-----", pem)
    assert found is not None
    return found.group(1).decode()


def test_keys_have_the_kinds_and_labels_that_talos_writes() -> None:
    made = bundle()
    assert label(made.os.key) == "ED25519 PRIVATE KEY"
    assert isinstance(load_key(made.os.key), ed25519.Ed25519PrivateKey)
    for pair in (made.etcd, made.kubernetes, made.aggregator):
        assert label(pair.key) == "EC PRIVATE KEY"
        key = load_key(pair.key)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert isinstance(key.curve, ec.SECP256R1)
    assert label(made.service_account) == "RSA PRIVATE KEY"
    account = load_key(made.service_account)
    assert isinstance(account, rsa.RSAPrivateKey)
    assert account.key_size == 4096


def test_authorities_are_valid_for_ten_years_and_may_sign() -> None:
    made = bundle()
    subjects = {
        "O=talos": made.os,
        "O=etcd": made.etcd,
        "O=kubernetes": made.kubernetes,
        "": made.aggregator,
    }
    for subject, pair in subjects.items():
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        assert certificate.subject.rfc4514_string() == subject
        assert certificate.not_valid_after_utc - NOW == datetime.timedelta(hours=87_600)
        assert certificate.not_valid_before_utc <= NOW
        assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        assert certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
        certificate.verify_directly_issued_by(certificate)


def test_tokens_and_identifiers_have_the_form_that_talos_reads() -> None:
    made = bundle()
    for token in (made.bootstrap_token, made.trustd_token):
        assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", token)
    assert made.bootstrap_token != made.trustd_token
    assert len(base64.urlsafe_b64decode(made.cluster_id)) == 32
    assert len(base64.b64decode(made.cluster_secret, validate=True)) == 32
    assert len(base64.b64decode(made.secretbox_key, validate=True)) == 32


def test_secrets_are_not_shown_when_printed() -> None:
    shown = repr(bundle())
    assert bundle().bootstrap_token not in shown
    assert "PRIVATE KEY" not in shown


def test_a_bundle_is_read_as_it_was_written() -> None:
    text = render_bundle(bundle())
    assert set(yaml.load(text)["certs"]) == {"etcd", "k8s", "k8saggregator", "k8sserviceaccount", "os"}
    assert parse_bundle(text) == bundle()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("  id:", "  identity:", "cluster.id is required"),
        ("  token:", "  tokens:", "trustdinfo.token is required"),
        ("    crt: L", "    crt: '!'\n    no: L", "certs.etcd.crt is not valid base64"),
        ("    crt: L", "    crt: aGVsbG8=\n    no: L", "certs.etcd.crt is not a PEM certificate"),
        ("    key: L", "    key: aGVsbG8=\n    no: L", "certs.etcd.key is not a PEM private key"),
        ("cluster:", "- cluster:", "not valid YAML"),
    ],
)
def test_a_broken_bundle_is_refused_by_field(old: str, new: str, problem: str) -> None:
    with pytest.raises(BundleError, match=problem):
        parse_bundle(render_bundle(bundle()).replace(old, new, 1))


def test_a_client_certificate_carries_its_role_and_is_for_clients_alone() -> None:
    client = make_client(bundle().os, NOW)
    certificate = x509.load_pem_x509_certificate(client.certificate)
    assert certificate.subject.rfc4514_string() == "O=os:admin"
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(bundle().os.certificate))
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert certificate.not_valid_after_utc - NOW == datetime.timedelta(days=365)
    assert label(client.key) == "ED25519 PRIVATE KEY"


def test_openssl_reads_the_pair_after_its_label_is_changed(tmp_path: Path) -> None:
    pair = make_server(bundle().os, ["10.0.0.1", "cp-0"], NOW, datetime.timedelta(days=1))
    file = tmp_path / "pair.pem"
    for key, readable in ((pair.key, False), (openssl_key(pair.key), True)):
        file.touch(0o600)
        file.write_bytes(pair.certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if readable:
            context.load_cert_chain(file)
        else:
            with pytest.raises(ssl.SSLError):
                context.load_cert_chain(file)


def test_talosconfig_names_endpoints_and_a_client_of_the_authority() -> None:
    text = render_talosconfig("mgmt", bundle(), ["10.0.0.1", "10.0.0.2"], ["10.0.0.1"], NOW)
    raw = yaml.load(text)
    assert raw["context"] == "mgmt"
    assert raw["contexts"]["mgmt"]["nodes"] == ["10.0.0.1"]
    access = parse_talosconfig(text)
    assert access.endpoints == ("10.0.0.1", "10.0.0.2")
    assert access.authority == bundle().os.certificate
    assert b"ED25519" in access.client.key


def test_a_renewed_talosconfig_differs_in_its_client_certificate_alone() -> None:
    text = render_talosconfig("mgmt", bundle(), ["10.0.0.1"], ["10.0.0.1"], NOW)
    later = NOW + datetime.timedelta(days=200)
    assert 0.99 < remaining(text, NOW.timestamp()) <= 1
    assert remaining(text, later.timestamp()) < 0.5
    renewed = renew_talosconfig(text, bundle(), later)
    assert remaining(renewed, later.timestamp()) > 0.99
    one, other = (yaml.load(each)["contexts"]["mgmt"] for each in (text, renewed))
    assert {name for name in one if one[name] != other[name]} == {"crt", "key"}


@pytest.mark.parametrize(
    "text", ["", "context: a", "context: a\ncontexts: {a: {endpoints: [], ca: x, crt: y, key: z}}"]
)
def test_a_broken_talosconfig_is_refused(text: str) -> None:
    with pytest.raises(TalosconfigError, match="not a talosconfig"):
        parse_talosconfig(text)


@pytest.mark.parametrize(
    ("talos", "wanted", "chosen"),
    [("v1.9.3", "", "v1.32.4"), ("v1.9.3", "v1.30.2", "v1.30.2"), ("v1.13.0", "1.36.1", "v1.36.1")],
)
def test_kubernetes_fits_the_release_of_talos(talos: str, wanted: str, chosen: str) -> None:
    assert choose_kubernetes(talos, wanted) == chosen


@pytest.mark.parametrize(
    ("talos", "wanted", "problem"),
    [
        ("v1.9.3", "v1.33.0", "Talos v1.9.3 does not run Kubernetes v1.33.0: it runs v1.27 to v1.32"),
        ("v1.9.3", "v1.32", "invalid Kubernetes version 'v1.32': expected for example v1.32.4"),
        ("v1.5.0", "", "Talos v1.5.0 is not supported: choose a release from v1.8 to v1.13"),
        ("nine", "", "invalid Talos version 'nine': expected for example v1.9.3"),
    ],
)
def test_versions_that_do_not_fit_are_refused(talos: str, wanted: str, problem: str) -> None:
    with pytest.raises(ReleaseError, match=problem):
        choose_kubernetes(talos, wanted)


def test_the_installer_comes_from_the_image_factory_if_a_schematic_is_named() -> None:
    assert find_release("v1.9.3").name == "v1.9"
    assert installer_image("v1.9.3") == "ghcr.io/siderolabs/installer:v1.9.3"
    assert installer_image("v1.9.3", "abc") == "factory.talos.dev/installer/abc:v1.9.3"
