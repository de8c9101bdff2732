"""Join tokens, as k0s reads them."""

from __future__ import annotations

import base64
import gzip
import re

import pytest

from homeport.capi.k0s.token import (
    BootstrapToken,
    make_token,
    parse_join_token,
    render_join_token,
    render_token,
)
from homeport.machinery import yaml

TOKEN = BootstrapToken("abcdef", "0123456789abcdef")


@pytest.mark.parametrize(("role", "user"), [("worker", "kubelet-bootstrap"), ("controller", "controller-bootstrap")])
def test_a_join_token_is_a_compressed_kubeconfig(role: str, user: str) -> None:
    text = render_join_token(TOKEN.text, role, server="https://192.0.2.1:6443", ca=b"pem")
    config = yaml.load(gzip.decompress(base64.b64decode(text)))
    assert config["current-context"] == "k0s"
    assert config["users"] == [{"name": user, "user": {"token": "abcdef.0123456789abcdef"}}]
    cluster = config["clusters"][0]["cluster"]
    assert cluster == {
        "server": "https://192.0.2.1:6443",
        "certificate-authority-data": base64.b64encode(b"pem").decode(),
    }
    assert parse_join_token(text) == TOKEN
    assert text == render_join_token(TOKEN.text, role, server="https://192.0.2.1:6443", ca=b"pem")


@pytest.mark.parametrize("text", ["", "no base64!", base64.b64encode(b"no gzip").decode()])
def test_other_texts_are_no_join_token(text: str) -> None:
    assert parse_join_token(text) is None


def test_a_bootstrap_token_has_the_form_that_kubernetes_asks_for() -> None:
    made = make_token()
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", made.text)
    assert made != make_token()
    assert made.name == f"bootstrap-token-{made.id}"


@pytest.mark.parametrize(
    ("role", "usages"),
    [
        ("worker", {"usage-bootstrap-authentication": "true", "usage-bootstrap-api-worker-calls": "true"}),
        ("controller", {"usage-bootstrap-authentication": "false", "usage-controller-join": "true"}),
    ],
)
def test_the_secret_in_the_cluster_allows_what_the_role_needs(role: str, usages: dict[str, str]) -> None:
    made = render_token(TOKEN, role, expires="2026-01-01T00:00:00Z", request="default/join")
    assert made["type"] == "bootstrap.kubernetes.io/token"
    data = made["data"]
    assert isinstance(data, dict)
    plain = {name: base64.b64decode(value).decode() for name, value in data.items()}
    assert plain.items() >= {**usages, "token-id": "abcdef", "expiration": "2026-01-01T00:00:00Z"}.items()
    forever = render_token(TOKEN, role, expires="", request="default/join")["data"]
    assert isinstance(forever, dict)
    assert "expiration" not in forever
