from __future__ import annotations

from functools import partial

import pytest

from homeport.api.meta import Unstructured
from homeport.capi.remote import kubeconfig, pki
from homeport.capi.remote.pki import KeyPair
from homeport.client.config import ConfigError
from homeport.client.protocol import Key, Write
from homeport.runtime.testing import plane

NOW = 1_767_225_600.0
DAY = 86400.0
CLUSTER = Key("default", "prod")
OWNER = {"apiVersion": "x/v1", "kind": "KubeadmControlPlane", "name": "prod", "uid": "u", "controller": True}
OPTIONS = Write(field_manager="test")
SERVER = "https://10.0.0.1:6443"


async def authority() -> KeyPair:
    return (await pki.generate(["ca"], now=NOW))["ca"]


async def test_a_kubeconfig_says_where_and_who() -> None:
    ca = await authority()
    config = kubeconfig.parse(kubeconfig.make("prod", SERVER, ca, now=NOW, proxy="http://proxy:3128"))
    assert (config.server, config.ca, config.proxy) == (SERVER, ca.certificate, "http://proxy:3128")
    assert kubeconfig.remaining(config, NOW) == pytest.approx(1.0, abs=0.001)


async def test_a_proxy_of_ours_is_used_where_the_kubeconfig_names_none() -> None:
    ca = await authority()
    plain = kubeconfig.make("prod", SERVER, ca, now=NOW)
    assert kubeconfig.parse(plain, proxy="http://ours:1").proxy == "http://ours:1"
    named = kubeconfig.make("prod", SERVER, ca, now=NOW, proxy="http://theirs:1")
    assert kubeconfig.parse(named, proxy="http://ours:1").proxy == "http://theirs:1"


@pytest.mark.parametrize(
    ("host", "url"), [("a.example.com", "https://a.example.com:1"), ("fd00::1", "https://[fd00::1]:1")]
)
def test_urls(host: str, url: str) -> None:
    assert kubeconfig.server_url(host, 1) == url


@pytest.mark.parametrize(
    "user",
    [
        "exec: {command: /bin/sh}",
        "client-certificate: /etc/passwd",
        "client-key: /k",
        "tokenFile: /t",
        "auth-provider: {}",
    ],
)
def test_a_kubeconfig_of_a_secret_reads_no_files_and_runs_nothing(user: str) -> None:
    text = f"""
clusters: [{{name: c, cluster: {{server: "https://a:1"}}}}]
users: [{{name: u, user: {{{user}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""
    with pytest.raises(ConfigError, match=r"can't be used in a Secret"):
        kubeconfig.parse(text.encode())


def test_a_file_of_an_authority_is_refused_as_well() -> None:
    text = b'clusters: [{name: c, cluster: {server: "https://a:1", certificate-authority: /etc/ssl/ca}}]'
    with pytest.raises(ConfigError, match=r"clusters\[c\]\.certificate-authority"):
        kubeconfig.parse(text)


def test_a_secret_without_a_kubeconfig_says_so() -> None:
    with pytest.raises(ConfigError, match=r"data\[value\] is missing"):
        kubeconfig.value({"metadata": {"name": "prod-kubeconfig"}})


def test_the_cluster_of_a_secret() -> None:
    assert kubeconfig.cluster_of(kubeconfig.secret_key(CLUSTER)) == CLUSTER
    assert kubeconfig.cluster_of(Key("default", "prod-ca")) is None


async def test_reasons_to_renew() -> None:
    ca, other = await authority(), await authority()
    content = kubeconfig.make("prod", SERVER, ca, now=NOW)
    stale = partial(kubeconfig.stale, server=SERVER, ca=ca.certificate, now=NOW)
    assert stale(content) == ""
    assert stale(content, now=NOW + 181 * DAY) == ""
    assert "49%" in stale(content, now=NOW + 185 * DAY)
    assert "not valid yet" in stale(content, now=NOW - 2 * DAY)
    assert "0%" in stale(content, now=NOW + 999 * DAY)
    assert "another CA" in stale(content, ca=other.certificate)
    assert "server" in stale(content, server="https://10.0.0.2:6443")
    assert "proxy" in stale(content, proxy="http://p:1")
    assert stale(b"[")
    assert kubeconfig.renew_at(content) == pytest.approx(NOW + 182.5 * DAY, abs=DAY)


async def test_the_secret_is_made_kept_and_renewed() -> None:
    ca = await authority()
    async with plane() as p:

        async def ensure(now: float) -> Unstructured:
            return await kubeconfig.ensure(
                p.client, CLUSTER, server=SERVER, ca=ca, owner=OWNER, now=now, options=OPTIONS
            )

        made = await ensure(NOW)
        assert made["type"] == "cluster.x-k8s.io/secret"
        assert made.metadata["labels"] == {"cluster.x-k8s.io/cluster-name": "prod"}
        assert (await ensure(NOW + 100 * DAY)).resource_version == made.resource_version
        renewed = await ensure(NOW + 200 * DAY)
        assert renewed.resource_version != made.resource_version
        assert kubeconfig.stale(kubeconfig.value(renewed), server=SERVER, ca=ca.certificate, now=NOW + 200 * DAY) == ""


async def test_a_secret_that_a_user_brought_is_left_alone() -> None:
    ca = await authority()
    async with plane() as p:
        (brought,) = await p.have(kubeconfig.as_secret(CLUSTER, b"mine", None))
        found = await kubeconfig.ensure(p.client, CLUSTER, server=SERVER, ca=ca, owner=OWNER, now=NOW, options=OPTIONS)
        assert found.resource_version == brought.resource_version


def test_a_kubeconfig_is_led_through_another_proxy_and_stays_the_same_otherwise() -> None:
    content = b"""
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443", proxy-url: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""
    found = kubeconfig.parse(kubeconfig.through(content, "http://127.0.0.1:2"))
    assert (found.server, found.proxy) == ("https://10.0.0.1:6443", "http://127.0.0.1:2")
    assert kubeconfig.through(b"clusters: 1", "http://127.0.0.1:2") == b"clusters: 1"
