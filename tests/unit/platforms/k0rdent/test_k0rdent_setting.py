"""Authentication and audit policies as API servers read them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.api.k0rdent.v1beta1 import ClusterAuditPolicy, ClusterAuthentication
from homeport.machinery import yaml
from homeport.platforms.k0rdent.setting.audit import audit_error, render_audit
from homeport.platforms.k0rdent.setting.authentication import (
    authentication_error,
    render_authentication,
    version_error,
)

ISSUER: dict[str, Any] = {
    "issuer": {"url": "https://login.example.com", "audiences": ["kubernetes"]},
    "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
}


def authentication(*issuers: dict[str, Any], **more: Any) -> ClusterAuthentication:
    spec = {"authenticationConfiguration": {"jwt": list(issuers)}} | more
    return msgspec.convert({"metadata": {"name": "login", "namespace": "blue"}, "spec": spec}, ClusterAuthentication)


def policy(*rules: dict[str, Any]) -> ClusterAuditPolicy:
    return msgspec.convert({"metadata": {"name": "all"}, "spec": {"policy": {"rules": rules}}}, ClusterAuditPolicy)


def test_the_file_has_the_issuers_with_the_authority_of_the_secret_and_the_version_that_the_server_reads() -> None:
    obj = authentication(ISSUER)
    assert authentication_error(obj) == ""
    found = yaml.load(render_authentication(obj, "PEM", (1, 32)))
    assert found["apiVersion"] == "apiserver.config.k8s.io/v1beta1"
    assert found["jwt"][0]["issuer"] == {**ISSUER["issuer"], "certificateAuthority": "PEM"}
    assert yaml.load(render_authentication(obj, "", (1, 34)))["apiVersion"] == "apiserver.config.k8s.io/v1"
    assert "v1.30 or later is required" in version_error((1, 29))
    assert version_error((1, 30)) == ""


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (authentication(), "jwt: at least one issuer is required"),
        (authentication({**ISSUER, "issuer": {"url": "http://plain"}}), "jwt[0].issuer.url: expected a URL"),
        (authentication({**ISSUER, "claimMappings": {}}), "jwt[0].claimMappings.username: set either claim"),
        (authentication(ISSUER, ISSUER), "two issuers have the same url"),
        (
            authentication(ISSUER, authenticationConfiguration={"jwt": [ISSUER], "anonymous": {"enabled": True}}),
            "anonymous: k0s sets --anonymous-auth itself",
        ),
        (
            authentication(ISSUER, caSecret={"name": "ca", "namespace": "red", "key": "ca.crt"}),
            "only a ClusterAuthentication in kcm-system may use Secrets of other namespaces",
        ),
    ],
)
def test_what_an_api_server_would_refuse_is_named_with_its_field(obj: ClusterAuthentication, words: str) -> None:
    assert words in authentication_error(obj)


def test_a_policy_is_rendered_as_it_was_written_and_wrong_levels_have_a_near_match() -> None:
    rules = ({"level": "Metadata", "nonResourceURLs": ["/healthz*"]}, {"level": "None", "verbs": ["watch"]})
    found = yaml.load(render_audit(policy(*rules)))
    assert found == {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules)}
    assert audit_error(policy(*rules)) == ""
    assert "did you mean 'Metadata'" in audit_error(policy({"level": "Metdata"}))
    assert "at least one rule" in audit_error(policy())
