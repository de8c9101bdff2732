"""AccessManagement: copies for namespaces of teams, and their end."""

from __future__ import annotations

from typing import Any

from homeport.api.k0rdent.v1beta1 import (
    AccessManagement,
    ClusterDeployment,
    ClusterTemplate,
    ClusterTemplateChain,
    Credential,
)
from homeport.api.meta import Resource
from homeport.app.object.deployment import create_namespaces
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from scenario.k0rdent.stage import SECRET, SPACE, Stage, credential, deployments, hosted, k0rdent, secret

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
ACCESS = Key("", "kcm")
CRED = "nutanix-cluster-identity-cred"
RULE = {
    "targetNamespaces": {"selector": {"matchLabels": {"team": "blue"}}},
    "clusterTemplateChains": ["hcp"],
    "resources": [{"kind": "Credential", "names": [CRED]}],
}


async def rules(stage: Stage, *given: dict[str, Any]) -> None:
    await stage.client.patch(AccessManagement, ACCESS, MergePatch({"spec": {"accessRules": list(given)}}))


async def status(stage: Stage, *words: str) -> AccessManagement:
    """Once the error has these words; without words, once there is none."""

    def fits(obj: AccessManagement) -> bool:
        current = obj.status.observed_generation == obj.metadata.generation
        return current and (all(each in obj.status.error for each in words) if words else not obj.status.error)

    found: AccessManagement = await stage.plane.until(AccessManagement, ACCESS, fits, 120.0, what=f"an error {words}")
    return found


@virtual
async def test_a_team_gets_copies_that_follow_their_originals_and_end_with_the_access() -> None:
    async with deployments() as stage:
        client = stage.client
        await create_namespaces(client, ("blue",))
        await client.patch(NAMESPACE, Key("", "blue"), MergePatch({"metadata": {"labels": {"team": "blue"}}}))
        chain = {"supportedTemplates": [{"name": "nutanix-k0s-hcp"}]}
        await stage.have(secret(), credential(), k0rdent("ClusterTemplateChain", "hcp", chain))
        await rules(stage, RULE)
        found: Credential = await stage.plane.until(
            Credential, Key("blue", CRED), lambda each: each.status.ready, 60.0, what="a copy that is ready"
        )
        assert found.spec.identity_ref.namespace == "blue"
        template: ClusterTemplate = await stage.plane.until(
            ClusterTemplate, Key("blue", "nutanix-k0s-hcp"), lambda each: each.status.valid, 60.0, what="being valid"
        )
        assert template.metadata.labels["k0rdent.mirantis.com/managed"] == "true"
        assert (await status(stage)).status.current[0].cluster_template_chains == ["hcp"]

        # A new password, and a copy that somebody changed.
        await client.patch(SECRET, Key(SPACE, "nutanix-cluster-creds"), MergePatch({"stringData": {"more": "news"}}))
        await client.patch(Credential, Key("blue", CRED), MergePatch({"spec": {"description": "changed by hand"}}))
        await stage.plane.until(
            SECRET, Key("blue", "nutanix-cluster-creds"), lambda each: "more" in each["data"], 60.0, what="the news"
        )
        await stage.plane.until(
            Credential,
            Key("blue", CRED),
            lambda each: each.spec.description.startswith("Nutanix"),
            60.0,
            what="the text",
        )

        # Access ends while a cluster needs it, also over a restart: what it uses stays until it is gone.
        body = hosted()
        body["metadata"]["namespace"] = "blue"
        body["spec"]["dryRun"] = True
        await stage.have(body)
        await rules(stage)
        said = await status(stage, f"Credential blue/{CRED} is kept", "ClusterTemplate blue/nutanix-k0s-hcp is kept")
        assert "nutanix-hcp-demo" in said.status.error
        await stage.plane.gone(ClusterTemplateChain, Key("blue", "hcp"), 60.0)
        await stage.restart()
        assert await client.get(SECRET, Key("blue", "nutanix-cluster-creds"))
        await client.delete(ClusterDeployment, Key("blue", "nutanix-hcp-demo"))
        for kind, name in ((Credential, CRED), (ClusterTemplate, "nutanix-k0s-hcp"), (SECRET, "nutanix-cluster-creds")):
            await stage.plane.gone(kind, Key("blue", name), 120.0)
            await client.get(kind, Key(SPACE, name))
        await status(stage)


@virtual
async def test_an_object_of_the_team_is_neither_overwritten_nor_deleted() -> None:
    async with deployments() as stage:
        await create_namespaces(stage.client, ("blue",))
        await stage.have(secret(), secret(namespace="blue", password="their own"), credential())
        rule = {"targetNamespaces": {"list": ["blue"]}, "credentials": [CRED]}
        await rules(stage, rule)
        said = await status(stage, "Secret blue/nutanix-cluster-creds exists and is not a copy")
        assert [each.kind for each in said.status.resources] == ["Secret"]
        before = await stage.client.get(SECRET, Key("blue", "nutanix-cluster-creds"))
        await rules(stage)
        await stage.plane.gone(Credential, Key("blue", CRED), 60.0)
        await status(stage)
        after = await stage.client.get(SECRET, Key("blue", "nutanix-cluster-creds"))
        assert before["data"] == after["data"]
