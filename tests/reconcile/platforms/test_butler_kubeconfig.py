"""Kubeconfigs of tenant clusters for people: who gets one, as whom, and until when."""

from __future__ import annotations

import base64
import datetime
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from homeport.api.butler.v1alpha1 import ButlerConfig, Team, TenantCluster, User
from homeport.api.certificates.v1 import CertificateSigningRequest
from homeport.api.meta import Resource
from homeport.apiserver.auth.certificate import make_key, subject_name
from homeport.capi.remote import kubeconfig as stored
from homeport.capi.remote import pki
from homeport.client.errors import Forbidden
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import yaml
from homeport.platforms.butler import kubeconfig
from homeport.platforms.butler.kubeconfig.issue import RefusedRequest, signer_name
from homeport.platforms.butler.kubeconfig.request import request_kubeconfig
from homeport.platforms.butler.team.reconciler import TeamReconciler
from homeport.platforms.butler.team.user import UserReconciler
from homeport.runtime.testing import Plane
from reconcile.platforms.butler_kit import butler, butler_plane
from reconcile.platforms.test_butler_team import ready

SECRET = Resource("", "v1", "Secret", "secrets")
QUAY = Key("harbour", "quay")
ADA, GROUP = "ada@example.com", "system:authenticated"


def install(setup: Any) -> None:
    for make in (TeamReconciler, UserReconciler):
        setup.manager.add(make(setup.manager).controller)
    kubeconfig.install(setup)


@asynccontextmanager
async def platform() -> AsyncIterator[tuple[Plane, pki.KeyPair]]:
    """Team harbour with a member and a group, and its cluster quay with a CA."""
    async with butler_plane(install, namespaces=("butler-system", "quay-1"), serve=True) as p:
        mode = {"multiTenancy": {"mode": "Enforced"}}
        await p.client.create(butler("ButlerConfig", "butler", mode), kind=ButlerConfig.__resource__)
        access = {"users": [{"name": ADA, "role": "operator"}], "groups": [{"name": "devs"}]}
        await p.client.create(butler("Team", "harbour", {"access": access}), kind=Team.__resource__)
        await p.until(Team, Key("", "harbour"), ready)
        at = TenantCluster.__resource__
        await p.client.create(butler("TenantCluster", "quay", {}, namespace="harbour"), kind=at)
        status = MergePatch({"status": {"tenantNamespace": "quay-1"}})
        await p.client.patch(at, QUAY, status, subresource="status")
        cluster, now = Key("quay-1", "quay"), p.clock.now()
        ca = (await pki.generate(("ca",), now=now))["ca"]
        admin = stored.make("quay", "https://10.0.0.9:6443", ca, now=now, proxy="http://127.0.0.1:3128")
        for body in (pki.as_secret(cluster, "ca", ca, None), stored.as_secret(cluster, admin, None)):
            await p.client.create(body, kind=SECRET)
        yield p, ca


def certificate_of(content: bytes) -> x509.Certificate:
    user = yaml.load(content.decode(), "kubeconfig")["users"][0]["user"]
    return x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))


def names(found: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(each.value) for each in found.subject.get_attributes_for_oid(oid)]


async def test_a_member_gets_a_kubeconfig_with_the_own_name_that_expires() -> None:
    async with platform() as (p, ca), p.http(ADA, GROUP) as client:
        content = await request_kubeconfig(client, QUAY, 3600)
        found = certificate_of(content)
        assert names(found, NameOID.COMMON_NAME) == [ADA]
        assert names(found, NameOID.ORGANIZATION_NAME) == []
        found.verify_directly_issued_by(x509.load_pem_x509_certificate(ca.certificate))
        left = found.not_valid_after_utc - datetime.datetime.fromtimestamp(p.clock.now(), datetime.UTC)
        assert datetime.timedelta(minutes=58) < left <= datetime.timedelta(hours=1)
        config = stored.parse(content)
        assert (config.server, config.ca, config.proxy) == (
            "https://10.0.0.9:6443",
            ca.certificate,
            "http://127.0.0.1:3128",
        )
        events = Resource("", "v1", "Event", "events")
        issued = [each for each in (await p.client.list(events)).items if each["reason"] == "KubeconfigIssued"]
        assert [each["involvedObject"]["name"] for each in issued] == ["quay"]
        assert ADA in issued[0]["message"]
        # The member may not read the administrator's own.
        with pytest.raises(Forbidden):
            await client.get(SECRET, Key("quay-1", "quay-kubeconfig"))


async def test_a_member_by_group_has_that_group_in_the_cluster_and_no_other() -> None:
    async with platform() as (p, _), p.http("bob", GROUP, "devs", "other") as client:
        found = certificate_of(await request_kubeconfig(client, QUAY, 3600))
        assert names(found, NameOID.COMMON_NAME) == ["bob"]
        assert names(found, NameOID.ORGANIZATION_NAME) == ["devs"]


async def test_no_kubeconfig_is_valid_for_longer_than_a_day() -> None:
    async with platform() as (p, _), p.http(ADA, GROUP) as client:
        found = certificate_of(await request_kubeconfig(client, QUAY, 30 * 24 * 3600))
        left = found.not_valid_after_utc - datetime.datetime.fromtimestamp(p.clock.now(), datetime.UTC)
        assert left <= datetime.timedelta(days=1)


async def test_a_disabled_member_and_a_stranger_get_none() -> None:
    async with platform() as (p, _), p.http(ADA, GROUP) as client, p.http() as root:
        with pytest.raises(RefusedRequest, match="is not a member of the team"):
            await request_kubeconfig(root, QUAY, 3600)
        user = butler("User", "ada", {"email": ADA, "disabled": True})
        await p.client.create(user, kind=User.__resource__)
        await p.until(Team, Key("", "harbour"), lambda team: team.status.member_count == 1)
        with pytest.raises(Forbidden):
            await request_kubeconfig(client, QUAY, 3600)


@pytest.mark.parametrize(
    ("subject", "usages", "words"),
    [
        ("root", ["digital signature", "client auth"], 'the common name of the request is "root", and you are'),
        (ADA, ["digital signature", "server auth"], 'usage "server auth" is not allowed'),
        (ADA, ["digital signature"], "must contain client auth"),
    ],
)
async def test_a_request_for_more_than_the_own_name_is_denied(subject: str, usages: list[str], words: str) -> None:
    async with platform() as (p, _), p.http(ADA, GROUP) as client:
        csr = (
            x509.CertificateSigningRequestBuilder()
            .subject_name(subject_name(subject, ()))
            .sign(make_key(), hashes.SHA256())
        )
        kind = CertificateSigningRequest.__resource__
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": "more"},
            "spec": {
                "request": base64.b64encode(csr.public_bytes(Encoding.PEM)).decode(),
                "signerName": signer_name(QUAY),
                "usages": usages,
            },
        }
        await client.create(body, kind=kind)
        found = await p.until(CertificateSigningRequest, Key("", "more"), lambda each: each.status.conditions != [])
        assert [each["type"] for each in found.status.conditions] == ["Denied"]
        assert words in found.status.conditions[0]["message"]
        assert not found.status.certificate


async def test_requests_for_other_signers_are_left_alone() -> None:
    async with platform() as (p, _), p.http(ADA, GROUP) as client:
        await request_kubeconfig(client, QUAY, 3600)
        csr = (
            x509.CertificateSigningRequestBuilder()
            .subject_name(subject_name(ADA, ()))
            .sign(make_key(), hashes.SHA256())
        )
        kind = CertificateSigningRequest.__resource__
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": "other"},
            "spec": {
                "request": base64.b64encode(csr.public_bytes(Encoding.PEM)).decode(),
                "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["client auth"],
            },
        }
        await p.client.create(body, kind=kind)
        await request_kubeconfig(client, QUAY, 3600)
        assert not (await p.client.get(CertificateSigningRequest, Key("", "other"))).status.conditions
