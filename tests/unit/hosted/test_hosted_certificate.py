"""Certificates and kubeconfigs of hosted control planes: when they are made again."""

from __future__ import annotations

import pytest

from homeport.capi.remote import pki
from homeport.capi.remote.pki import KeyPair
from homeport.hosted import kubeconfig
from homeport.hosted.certificate import (
    DAY_SECONDS,
    api_server_hosts,
    renew_at,
    sign_client,
    sign_server,
    stale_client,
    stale_server,
)

NOW = 1_767_225_600.0
HOSTS = ["localhost", "127.0.0.1", "10.0.0.1"]


async def authority() -> KeyPair:
    return (await pki.generate(["ca"], now=NOW))["ca"]


async def test_a_serving_certificate_is_renewed_a_month_before_it_expires_and_for_a_new_name() -> None:
    ca = await authority()
    made = sign_server(ca, HOSTS, now=NOW)
    assert stale_server(made, ca, HOSTS, now=NOW) == ""
    assert renew_at(made.certificate) == pytest.approx(NOW + 335 * DAY_SECONDS)
    assert stale_server(made, ca, HOSTS, now=NOW + 334 * DAY_SECONDS) == ""
    assert "it expires on" in stale_server(made, ca, HOSTS, now=NOW + 336 * DAY_SECONDS)
    assert stale_server(made, ca, [*HOSTS, "new.example.org"], now=NOW) == "it is not valid for new.example.org"
    assert stale_server(made, await authority(), HOSTS, now=NOW) == "another CA signed it"
    assert "not valid yet" in stale_server(made, ca, HOSTS, now=NOW - 30 * DAY_SECONDS)
    assert stale_server(KeyPair(b"", b""), ca, HOSTS, now=NOW) == "it is not a certificate with its key"


async def test_a_client_certificate_is_for_its_user_and_groups() -> None:
    ca = await authority()
    made = sign_client(ca, "alice", ("dev",), now=NOW)
    assert stale_client(made, ca, "alice", ("dev",), now=NOW) == ""
    assert stale_client(made, ca, "bob", ("dev",), now=NOW) == "it is for another user"
    assert stale_client(made, ca, "alice", (), now=NOW) == "it is for another user"


async def test_a_kubeconfig_follows_its_server_ca_user_and_proxy() -> None:
    ca, server = await authority(), "https://10.0.0.1:6443"
    made = kubeconfig.make("demo", server, ca, "alice", ("dev",), now=NOW)
    assert kubeconfig.stale(made, server, ca, "alice", ("dev",), now=NOW) == ""
    assert "the server is" in kubeconfig.stale(made, "https://10.0.0.2:6443", ca, "alice", ("dev",), now=NOW)
    assert "another CA" in kubeconfig.stale(made, server, await authority(), "alice", ("dev",), now=NOW)
    assert "the proxy is" in kubeconfig.stale(made, server, ca, "alice", ("dev",), now=NOW, proxy="http://127.0.0.1:1")
    assert kubeconfig.renewal(made) == pytest.approx(NOW + 335 * DAY_SECONDS)


def test_an_api_server_is_reached_under_all_its_names() -> None:
    found = api_server_hosts(
        "demo",
        "apps",
        endpoint="10.0.0.9",
        service_cidr="10.96.0.0/16,fd00::/112",
        domain="c.local",
        extra=["x.org", ""],
    )
    assert {"localhost", "127.0.0.1", "10.96.0.1", "fd00::1", "10.0.0.9", "x.org", "demo.apps.svc"} <= set(found)
    assert "kubernetes.default.svc.c.local" in found
    assert len(found) == len(set(found))
