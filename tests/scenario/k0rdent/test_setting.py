"""Authentication and audit policies reach the API servers of both modes."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.api.k0s.v1beta2 import K0sControlPlane
from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import condition, yaml
from homeport.runtime.testing import virtual
from scenario.k0rdent.stage import CONFIG_MAP, SECRET, SPACE, Stage, credential, deployments, hosted, k0rdent, secret
from scenario.k0rdent.stage import standalone as on_machines

STATEFUL_SET = Resource("apps", "v1", "StatefulSet", "statefulsets")
NEW = {"version": "v1.30.0+k0s.0"}
ISSUER = {
    "issuer": {"url": "https://login.example.com", "audiences": ["kubernetes"]},
    "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
}
SETTINGS = {"clusterAuth": "login", "auditPolicy": "metadata"}


def certificate(name: str) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(subject, subject, key.public_key(), 1, now, now + timedelta(days=1))
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def authority(text: str) -> dict[str, Any]:
    meta = {"name": "login-ca", "namespace": SPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"ca.crt": text}}


async def prepare(stage: Stage) -> None:
    spec = {"authenticationConfiguration": {"jwt": [ISSUER]}, "caSecret": {"name": "login-ca", "key": "ca.crt"}}
    rules = {"policy": {"rules": [{"level": "Metadata"}]}}
    await stage.have(
        secret(),
        credential(),
        authority(certificate("first")),
        k0rdent("ClusterAuthentication", "login", spec),
        k0rdent("ClusterAuditPolicy", "metadata", rules),
    )


@virtual
async def test_hosted_api_servers_mount_the_files_and_the_authority_follows_its_secret() -> None:
    async with deployments() as stage:
        await prepare(stage)
        body = hosted(k0s=NEW)
        body["spec"] |= {**SETTINGS, "clusterAuth": "logim"}
        await stage.have(body)
        name = body["metadata"]["name"]
        await stage.says(name, 'ClusterAuthentication "logim" does not exist', kind="ClusterAuthenticationReady")
        await stage.patch(name, {"clusterAuth": "login"})
        pods = (
            await stage.plane.until(
                STATEFUL_SET, Key(SPACE, f"kmc-{name}"), bool, 300.0, what="Pods of a control plane"
            )
        )["spec"]["template"]["spec"]
        made: ClusterDeployment = await stage.client.get(ClusterDeployment, Key(SPACE, name))
        assert _is_true(made, "ClusterAuthenticationReady")
        assert _is_true(made, "ClusterAuditPolicyReady")
        paths = {each["mountPath"]: each["name"] for each in pods["containers"][0]["volumeMounts"]}
        volumes = {each["name"]: each for each in pods["volumes"]}
        folder = "/etc/k0s-settings/authentication"
        assert volumes[paths[folder]]["secret"]["secretName"] == f"{name}-auth-config"
        maps = (await stage.client.list(CONFIG_MAP, Query(namespace=SPACE))).items
        text = next(each["data"]["K0SMOTRON_K0S_YAML"] for each in maps if "K0SMOTRON_K0S_YAML" in each["data"])
        arguments = yaml.load(text)["spec"]["api"]["extraArgs"]
        assert arguments["authentication-config"] == f"{folder}/config"
        assert arguments["audit-policy-file"].removesuffix("/policy") in paths

        # Another certificate, then no authentication any longer.
        held = await stage.client.get(SECRET, Key(SPACE, f"{name}-auth-config"))
        fresh = MergePatch({"stringData": {"ca.crt": certificate("second")}})
        await stage.client.patch(SECRET, Key(SPACE, "login-ca"), fresh)
        await stage.plane.until(
            SECRET,
            Key(SPACE, f"{name}-auth-config"),
            lambda each: each["data"] != held["data"],
            60.0,
            what="the new certificate",
        )
        await stage.patch(name, {"clusterAuth": ""})
        await stage.until(
            name,
            lambda obj: condition.find(obj.status.conditions, "ClusterAuthenticationReady") is None,
            "no condition",
        )


@virtual
async def test_controllers_on_machines_get_the_files_and_old_versions_are_refused_with_the_reason() -> None:
    async with deployments() as stage:
        await prepare(stage)
        body = on_machines()
        body["spec"] |= SETTINGS
        await stage.have(body)
        name = body["metadata"]["name"]
        await stage.says(name, "Kubernetes v1.29 does not read authentication files", kind="ClusterAuthenticationReady")
        await stage.patch(name, {"config": {"k0s": NEW}})
        plane: K0sControlPlane = await stage.plane.until(
            K0sControlPlane,
            Key(SPACE, f"{name}-standalone-cp"),
            lambda obj: obj.status.initialization.control_plane_initialized is True,
            1200.0,
            what="a control plane",
        )
        files = {each.path: each.content for each in plane.spec.k0s_config_spec.files}
        assert yaml.load(files["/etc/k0s-settings/authentication/config"])["jwt"][0]["issuer"]["certificateAuthority"]
        found = (await stage.client.list(SECRET, Query(namespace=SPACE))).items
        data = [
            base64.b64decode(each["data"]["value"]).decode() for each in found if "value" in (each.get("data") or {})
        ]
        user = next(each for each in data if "k0s install controller" in each)
        assert "audit-policy-file: /etc/k0s-settings/audit-" in user
        assert "kind: AuthenticationConfiguration" in user


def _is_true(obj: ClusterDeployment, kind: str) -> bool:
    return condition.is_true(obj.status.conditions, kind)
