"""What goes wrong is reported on the ClusterDeployment itself, with the cure, and goes on when it is cured."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from scenario.k0rdent.stage import CONFIG_MAP, SECRET, SPACE, credential, credentials, deployments, hosted, secret

NAME = "nutanix-hcp-demo"
PLACEHOLDER = "-----BEGIN CERTIFICATE-----\n# Your custom CA certificate here\n-----END CERTIFICATE-----\n"
BUNDLE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "nutanix-ca-bundle", "namespace": SPACE},
    "data": {"ca-bundle.crt": PLACEHOLDER},
}


def with_bundle(body: dict[str, Any]) -> dict[str, Any]:
    body["spec"]["config"]["nutanix"]["prismCentral"]["additionalTrustBundleConfigMapName"] = "nutanix-ca-bundle"
    return body


@virtual
async def test_the_guides_placeholder_for_a_certificate_is_reported() -> None:
    async with deployments() as stage:
        await stage.have(secret(), credential(), with_bundle(hosted(workersNumber=1)))
        await stage.says(NAME, "ConfigMap kcm-system/nutanix-ca-bundle does not exist")
        await stage.have(BUNDLE)
        said = await stage.says(NAME, "key ca-bundle.crt does not hold a valid certificate in PEM format")
        assert "spec.config.nutanix.prismCentral.additionalTrustBundleConfigMapName" in said
        assert not (await stage.client.list(Cluster, Query(namespace=SPACE))).items
        change = {"config": {"nutanix": {"prismCentral": {"additionalTrustBundleConfigMapName": None}}}}
        await stage.patch(NAME, change)
        await stage.ready(NAME)


@virtual
async def test_a_trust_bundle_that_replaces_the_placeholder_is_used() -> None:
    async with deployments() as stage:
        await stage.have(BUNDLE, secret(), credential(), with_bundle(hosted(workersNumber=1)))
        await stage.says(NAME, "does not hold a valid certificate in PEM format")
        body = {"data": {"ca-bundle.crt": stage.site.dial.ca_pem.decode()}}
        await stage.client.patch(CONFIG_MAP, Key(SPACE, "nutanix-ca-bundle"), MergePatch(body))
        await stage.ready(NAME)
        found: NutanixCluster = await stage.client.get(NutanixCluster, Key(SPACE, f"{NAME}-cluster"))
        assert found.spec.prism_central is not None
        assert found.spec.prism_central.additional_trust_bundle is not None


@virtual
async def test_a_missing_credential_is_reported_and_creating_it_is_enough() -> None:
    async with deployments() as stage:
        await stage.have(hosted(workersNumber=1))
        await stage.says(NAME, 'Credential "nutanix-cluster-identity-cred" does not exist in namespace kcm-system')
        await stage.have(credential())
        await stage.says(NAME, "Secret kcm-system/nutanix-cluster-creds of spec.identityRef does not exist")
        await stage.have(secret())
        await stage.ready(NAME)


@virtual
async def test_a_wrong_password_is_reported_and_rotation_is_followed() -> None:
    async with deployments() as stage:
        await stage.have(secret(password="wrong"), credential(), hosted(workersNumber=1))
        await stage.says(NAME, "InfrastructureReady")
        body = {"stringData": {"credentials": credentials()}}
        await stage.client.patch(SECRET, Key(SPACE, "nutanix-cluster-creds"), MergePatch(body))
        await stage.ready(NAME)


@virtual
async def test_an_image_that_does_not_exist_is_reported_with_those_that_do() -> None:
    async with deployments() as stage:
        body = hosted(workersNumber=1)
        body["spec"]["config"]["machineDefaults"]["image"]["name"] = "ubuntu-22.04-k8s"
        await stage.have(secret(), credential(), body)
        said = await stage.says(NAME, "ubuntu-22.04-k8s")
        assert "ubuntu-22.04-k0s" in said
        await stage.patch(NAME, {"config": {"machineDefaults": {"image": {"name": "ubuntu-22.04-k0s"}}}})
        await stage.ready(NAME)


@virtual
async def test_a_dry_run_shows_what_would_change_and_changes_nothing() -> None:
    async with deployments() as stage:
        body = hosted(workersNumber=1)
        body["spec"]["dryRun"] = True
        await stage.have(secret(), credential(), body)
        found = await stage.until(NAME, lambda obj: bool(obj.status.dry_run_diff), "a diff")
        assert "+  name: nutanix-hcp-demo" in found.status.dry_run_diff
        assert found.spec.config == body["spec"]["config"]
        assert not (await stage.client.list(Cluster, Query(namespace=SPACE))).items
        await stage.patch(NAME, {"dryRun": False})
        made = await stage.ready(NAME)
        assert made.status.dry_run_diff == ""
        await stage.patch(NAME, {"dryRun": True, "config": {"workersNumber": 4}})
        shown = await stage.until(NAME, lambda obj: bool(obj.status.dry_run_diff), "a diff")
        changed = [line for line in shown.status.dry_run_diff.splitlines() if line.startswith(("+ ", "- "))]
        assert [line.split() for line in changed] == [["-", "replicas:", "1"], ["+", "replicas:", "4"]]
        assert len(await stage.machines(NAME)) == 1


@virtual
async def test_a_cluster_that_belongs_to_somebody_else_is_left_alone() -> None:
    async with deployments() as stage:
        await stage.management()
        other = {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": NAME, "namespace": SPACE},
        }
        network = {"pods": {"cidrBlocks": ["10.9.0.0/16"]}}
        ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NutanixCluster", "name": "theirs"}
        await stage.have({**other, "spec": {"clusterNetwork": network, "infrastructureRef": ref}})
        await stage.have(secret(), credential(), hosted(workersNumber=1))
        await stage.says(NAME, "exists and does not belong to this ClusterDeployment")
        await stage.delete(NAME)
        await stage.gone(NAME)
        found: Cluster = await stage.client.get(Cluster, Key(SPACE, NAME))
        assert not found.metadata.deletion_timestamp
        assert not found.metadata.owner_references


@virtual
async def test_a_template_that_can_not_be_used_is_reported() -> None:
    async with deployments() as stage:
        await stage.management()
        chart = {"chartSpec": {"chart": "web", "sourceRef": {"kind": "HelmRepository", "name": "mine"}}}
        template = {
            "apiVersion": "k0rdent.mirantis.com/v1beta1",
            "kind": "ClusterTemplate",
            "metadata": {"name": "mine", "namespace": SPACE},
            "spec": {"helm": chart},
        }
        body = hosted(workersNumber=1)
        body["spec"]["template"] = "mine"
        await stage.have(template, secret(), credential(), body)
        found = await stage.until(
            NAME, lambda obj: condition.find(obj.status.conditions, "TemplateReady") is not None, "TemplateReady"
        )
        said = condition.find(found.status.conditions, "TemplateReady") or {}
        assert said["status"] == "False"
        try:
            await stage.client.get(Cluster, Key(SPACE, NAME))
        except NotFound:
            return
        raise AssertionError("a Cluster was made from a template that is not valid")


@virtual
async def test_a_cluster_without_a_deployment_wakes_no_reconcile_of_deployments() -> None:
    async with deployments() as stage:
        meta = {"name": "plain", "namespace": SPACE}
        infra = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NutanixCluster", "name": "plain"}
        body = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": meta}
        await stage.have({**body, "spec": {"infrastructureRef": infra}})
        await stage.plane.until(Cluster, Key(SPACE, "plain"), lambda cluster: bool(cluster.status.conditions))
        await stage.plane.settle()
        controllers = stage.plane.manager.controllers
        counts = next(each for each in controllers if each.name == "k0rdent-clusterdeployment").metrics.counts
        assert sum(counts.values()) == 0
