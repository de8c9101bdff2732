"""Certificates of an installed dashboard: the controllers issue and renew them, and mend what somebody broke."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.embedded import EmbeddedServer
from homeport.app.kubernetes.dashboard.certificate import issue
from homeport.app.kubernetes.dashboard.place import AUTHORITY, CONFIG_MAP, ISSUED, KEY, NAMESPACE, SERVER_NAME
from homeport.client.absence import find_object
from homeport.client.protocol import Client, MergePatch
from homeport.dashboard.certificate import Certificate, CertificateError
from homeport.runtime.testing import shared_pki
from homeport.runtime.webhook.authority import SECRET
from present import present

SPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    server = await EmbeddedServer.open(None, shared_pki())
    made = server.client()
    await made.create({"metadata": {"name": NAMESPACE}}, kind=SPACE)
    yield made
    await server.close()


async def install(client: Client, hosts: str = "") -> None:
    meta = {"name": KEY.name, "namespace": NAMESPACE}
    await client.create({"metadata": meta, "data": {"hosts": hosts}}, kind=CONFIG_MAP)


async def found(client: Client, kind: Resource, key: Any) -> Unstructured:
    return present(await find_object(client, kind, key))


def leaf(secret: Unstructured) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))


def names(certificate: x509.Certificate) -> set[str]:
    known = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(each.value) for each in known}


async def versions(client: Client) -> list[str]:
    return [(await found(client, kind, key))["metadata"]["resourceVersion"] for kind, key in ISSUED]


async def test_nothing_is_issued_where_no_dashboard_is_installed(client: Client) -> None:
    await issue(client)
    assert [await find_object(client, kind, key) for kind, key in ISSUED] == [None, None, None]


async def test_the_certificate_is_for_the_service_and_the_names_outside_and_the_ca_is_published(client: Client) -> None:
    await install(client, "clusters.example 10.0.0.5:8443")
    await issue(client)
    secret = await found(client, SECRET, KEY)
    assert secret["type"] == "kubernetes.io/tls"
    assert {SERVER_NAME, "clusters.example", "10.0.0.5"} <= names(leaf(secret))
    public = (await found(client, CONFIG_MAP, AUTHORITY))["data"]
    assert list(public) == ["ca.crt"]
    leaf(secret).verify_directly_issued_by(x509.load_pem_x509_certificate(public["ca.crt"].encode()))
    owner = (await found(client, CONFIG_MAP, KEY)).uid
    for kind, key in ISSUED:  # the garbage collector removes them with the dashboard
        assert (await found(client, kind, key))["metadata"]["ownerReferences"][0]["uid"] == owner
    before = await versions(client)
    await issue(client)
    assert await versions(client) == before


async def test_a_new_name_gets_a_new_certificate_of_the_same_ca(client: Client) -> None:
    await install(client)
    await issue(client)
    ca = (await found(client, CONFIG_MAP, AUTHORITY))["data"]
    await client.patch(CONFIG_MAP, KEY, MergePatch({"data": {"hosts": "new.example"}}))
    await issue(client)
    assert "new.example" in names(leaf(await found(client, SECRET, KEY)))
    assert (await found(client, CONFIG_MAP, AUTHORITY))["data"] == ca


OTHER_KEY = base64.b64encode(certs.key_pem(certs.make_key())).decode()


@pytest.mark.parametrize(
    "broken",
    [
        {"tls.crt": "AAAA"},
        {"tls.crt": "LS0t"},
        {"tls.key": None},
        {"tls.crt": None},
        {"tls.key": "AAAA"},
        {"tls.key": OTHER_KEY},
    ],
    ids=["bytes", "text", "no key", "no certificate", "damaged key", "key of another"],
)
async def test_a_damaged_certificate_is_written_again(client: Client, broken: dict[str, str | None]) -> None:
    await install(client)
    await issue(client)
    secret = await found(client, SECRET, KEY)
    data = {name: value for name, value in {**secret["data"], **broken}.items() if value is not None}
    await client.delete(SECRET, KEY)
    plain = {"metadata": {"name": KEY.name, "namespace": NAMESPACE}, "data": data}
    await client.create(plain, kind=SECRET)
    await issue(client)
    mended = await found(client, SECRET, KEY)
    assert SERVER_NAME in names(leaf(mended))
    assert certs.same_key(certs.load_key(base64.b64decode(mended["data"]["tls.key"])), leaf(mended))


async def test_with_a_lost_ca_everything_is_issued_again(client: Client) -> None:
    await install(client)
    await issue(client)
    old = leaf(await found(client, SECRET, KEY))
    for kind, key in ISSUED[1:]:
        await client.delete(kind, key)
    await issue(client)
    new = leaf(await found(client, SECRET, KEY))
    public = (await found(client, CONFIG_MAP, AUTHORITY))["data"]["ca.crt"]
    new.verify_directly_issued_by(x509.load_pem_x509_certificate(public.encode()))
    assert new.serial_number != old.serial_number


async def test_the_server_reads_a_renewed_certificate_and_keeps_the_last_good_one(
    client: Client, tmp_path: Path
) -> None:
    await install(client)
    with pytest.raises(CertificateError, match=r"tls\.crt"):
        Certificate(tmp_path)
    await issue(client)
    secret = await found(client, SECRET, KEY)
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_bytes(base64.b64decode(secret["data"][name]))
    made = Certificate(tmp_path)
    assert made.unready == ""
    assert made.context.minimum_version == ssl.TLSVersion.TLSv1_2
    (tmp_path / "tls.key").write_text("half a key")
    with pytest.raises(CertificateError, match=r"tls\.key"):
        made.load()
    assert made.unready == ""
