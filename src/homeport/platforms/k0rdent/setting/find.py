"""The settings that a ClusterDeployment names, read and checked."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from cryptography import x509

from homeport.api.k0rdent.v1beta1 import ClusterAuditPolicy, ClusterAuthentication, ClusterDeployment
from homeport.client.errors import NotFound
from homeport.client.protocol import Client
from homeport.platforms.k0rdent.deployment.state import AUDIT, AUTHENTICATION, Finding, failed, good
from homeport.platforms.k0rdent.management.credential import SECRET
from homeport.platforms.k0rdent.setting.audit import audit_error, render_audit
from homeport.platforms.k0rdent.setting.authentication import (
    authentication_error,
    authority_key,
    render_authentication,
    version_error,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Texts of files; '' if the ClusterDeployment asks for none."""

    findings: tuple[Finding, ...] = ()
    authentication: str = ""
    audit: str = ""

    @property
    def good(self) -> bool:
        return all(each.good for each in self.findings)


async def find_settings(
    client: Client,
    deployment: ClusterDeployment,
    authentication: ClusterAuthentication | None,
    policy: ClusterAuditPolicy | None,
    line: tuple[int, int],
) -> Settings:
    """`line`: major and minor version of Kubernetes."""
    found: list[Finding] = []
    texts = ["", ""]
    if deployment.spec.cluster_auth:
        finding, texts[0] = await _authentication(client, deployment, authentication, line)
        found.append(finding)
    if deployment.spec.audit_policy:
        finding, texts[1] = _audit(deployment, policy)
        found.append(finding)
    return Settings(tuple(found), *texts)


async def _authentication(
    client: Client, deployment: ClusterDeployment, obj: ClusterAuthentication | None, line: tuple[int, int]
) -> tuple[Finding, str]:
    name = deployment.spec.cluster_auth
    if obj is None:
        where = deployment.metadata.namespace
        text = f'spec.clusterAuth: ClusterAuthentication "{name}" does not exist in namespace {where}: create it'
        return failed(AUTHENTICATION, text), ""
    if wrong := authentication_error(obj) or version_error(line):
        return failed(AUTHENTICATION, f"ClusterAuthentication {name}: {wrong}"), ""
    try:
        authority = await read_authority(client, obj)
    except ValueError as error:
        return failed(AUTHENTICATION, f"ClusterAuthentication {name}: {error}"), ""
    return good(AUTHENTICATION), render_authentication(obj, authority, line)


def _audit(deployment: ClusterDeployment, obj: ClusterAuditPolicy | None) -> tuple[Finding, str]:
    name = deployment.spec.audit_policy
    if obj is None:
        where = deployment.metadata.namespace
        text = f'spec.auditPolicy: ClusterAuditPolicy "{name}" does not exist in namespace {where}: create it'
        return failed(AUDIT, text), ""
    if wrong := audit_error(obj):
        return failed(AUDIT, f"ClusterAuditPolicy {name}: {wrong}"), ""
    return good(AUDIT), render_audit(obj)


async def read_authority(client: Client, obj: ClusterAuthentication) -> str:
    """CA certificates of the issuers; '' if none are named. Raises ValueError."""
    key, ref = authority_key(obj), obj.spec.ca_secret
    if key is None or ref is None:
        return ""
    try:
        secret = await client.get(SECRET, key)
    except NotFound:
        raise ValueError(f"spec.caSecret: Secret {key} does not exist: create it") from None
    held = (secret.get("data") or {}).get(ref.key)
    if held is None:
        raise ValueError(f'spec.caSecret: Secret {key} has no key "{ref.key}"')
    try:
        text = base64.b64decode(held, validate=True).decode()
        if not x509.load_pem_x509_certificates(text.encode()):
            raise ValueError
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise ValueError(f'spec.caSecret: key "{ref.key}" of Secret {key} is not a certificate in PEM format') from None
    return text
