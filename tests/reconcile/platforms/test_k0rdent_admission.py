"""What is refused when an object of k0rdent's kinds is written, with the field and the cure."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from homeport.api.k0rdent.v1beta1 import (
    AccessManagement,
    ClusterDeployment,
    ClusterTemplate,
    Credential,
    Management,
    Release,
)
from homeport.api.meta import Resource
from homeport.app.object.deployment import create_namespaces, create_objects
from homeport.client.errors import ApiError
from homeport.client.protocol import Key, MergePatch, Write
from homeport.platforms.k0rdent.admission import register
from homeport.platforms.k0rdent.builtin import initial_objects
from homeport.platforms.k0rdent.definition import KINDS, definitions
from homeport.runtime.testing import Plane, establish, plane
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks
from scenario.k0rdent.stage import SPACE, credential, hosted, k0rdent

STRICT = Write(field_validation="Strict")
DEMO = Key(SPACE, "nutanix-hcp-demo")


@asynccontextmanager
async def admitting() -> AsyncIterator[Plane]:
    async with plane() as p:
        hooks = Hooks()
        register(hooks, p.client)
        install_hooks(hooks, p.server)
        await establish(p.client, *definitions())
        await create_namespaces(p.client, (SPACE, "other"))
        await create_objects(p.client, initial_objects())
        yield p


def kind_of(body: dict[str, Any]) -> Resource:
    found: Resource = next(each.__resource__ for each in KINDS if each.__resource__.kind == body["kind"])
    return found


async def create(p: Plane, body: dict[str, Any]) -> None:
    await p.client.create(body, STRICT, kind=kind_of(body))


async def refused(p: Plane, body: dict[str, Any]) -> str:
    with pytest.raises(ApiError) as found:
        await create(p, body)
    return str(found.value)


async def refused_change(p: Plane, spec: dict[str, Any]) -> str:
    with pytest.raises(ApiError) as found:
        await p.client.patch(ClusterDeployment, DEMO, MergePatch({"spec": spec}))
    return str(found.value)


async def test_the_guides_deployment_is_accepted_and_stored_as_it_was_written() -> None:
    async with admitting() as p:
        body = hosted()
        await create(p, copy.deepcopy(body))
        stored = await p.client.get(kind_of(body), DEMO)
        assert stored["spec"] == body["spec"]


async def test_a_typing_error_is_refused_with_the_field_that_was_meant() -> None:
    async with admitting() as p:
        said = await refused(p, hosted(workerNumber=3, k0s={"verison": "v1.29.2+k0s.0"}))
        assert 'spec.config.workerNumber: Invalid value: unknown field; did you mean "workersNumber"?' in said
        assert 'spec.config.k0s.verison: Invalid value: unknown field; did you mean "version"?' in said


async def test_an_unknown_template_is_refused_with_the_one_that_was_meant() -> None:
    async with admitting() as p:
        body = hosted()
        body["spec"]["template"] = "nutanix-k0s-hpc"
        said = await refused(p, body)
        assert "spec.template" in said
        assert "did you mean 'nutanix-k0s-hcp'" in said


@pytest.mark.parametrize("name", ["a" * 53, "with.dots"])
async def test_names_that_machines_could_not_have_are_refused(name: str) -> None:
    async with admitting() as p:
        assert "metadata.name" in await refused(p, hosted(name))


async def test_two_deployments_can_not_share_an_address() -> None:
    async with admitting() as p:
        await create(p, hosted())
        said = await refused(p, hosted("other"))
        assert "ClusterDeployment kcm-system/nutanix-hcp-demo already uses this address" in said
        await create(p, hosted("other", "10.1.1.201"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k0s": {"version": "v1.28.1+k0s.0"}}, "downgrade from v1.29.2+k0s.0 to v1.28.1+k0s.0"),
        ({"k0s": {"version": "v1.31.0+k0s.0"}}, "upgrade one minor version at a time"),
        ({"clusterNetwork": {"pods": {"cidrBlocks": ["10.9.0.0/16"]}}}, "clusterNetwork.pods.cidrBlocks: Forbidden"),
    ],
)
async def test_what_a_cluster_can_not_become_is_refused(change: dict[str, Any], words: str) -> None:
    async with admitting() as p:
        await create(p, hosted())
        assert words in await refused_change(p, {"config": change})


async def test_a_cluster_may_be_scaled_and_upgraded() -> None:
    async with admitting() as p:
        await create(p, hosted())
        change = {"config": {"workersNumber": 5, "k0s": {"version": "v1.30.0+k0s.0"}}}
        await p.client.patch(ClusterDeployment, DEMO, MergePatch({"spec": change}))


async def test_another_template_needs_a_chain_that_leads_to_it() -> None:
    async with admitting() as p:
        body = {**k0rdent("ClusterTemplate", "nutanix-k0s-hcp-2", {}), "spec": None}
        old: ClusterTemplate = await p.client.get(ClusterTemplate, Key(SPACE, "nutanix-k0s-hcp"))
        assert old.spec.helm.chart_spec is not None
        body["spec"] = {"helm": {"chartSpec": {"chart": "nutanix-k0s-hcp"}}}
        await create(p, body)
        await create(p, hosted())
        said = await refused_change(p, {"template": "nutanix-k0s-hcp-2"})
        assert "cluster upgrade is forbidden" in said
        assert "available upgrades: none" in said
        listed = [
            {"name": "nutanix-k0s-hcp", "availableUpgrades": [{"name": "nutanix-k0s-hcp-2"}]},
            {"name": "nutanix-k0s-hcp-2"},
        ]
        await create(p, k0rdent("ClusterTemplateChain", "hcp", {"supportedTemplates": listed}))
        await p.client.patch(ClusterDeployment, DEMO, MergePatch({"spec": {"template": "nutanix-k0s-hcp-2"}}))


async def test_there_is_one_management_and_what_is_in_use_stays() -> None:
    async with admitting() as p:
        for kind in ("Management", "AccessManagement"):
            spec = {"release": "kcm-1-2-0"} if kind == "Management" else {}
            assert "is named kcm" in await refused(p, k0rdent(kind, "second", spec, namespace=""))
        await create(p, credential())
        await create(p, hosted())
        identity = Key(SPACE, "nutanix-cluster-identity-cred")
        cases: list[tuple[Any, Key, str]] = [
            (Management, Key("", "kcm"), "ClusterDeployments exist (kcm-system/nutanix-hcp-demo)"),
            (AccessManagement, Key("", "kcm"), "Management kcm exists"),
            (
                ClusterTemplate,
                Key(SPACE, "nutanix-k0s-hcp"),
                "ClusterDeployments use the ClusterTemplate: nutanix-hcp-demo",
            ),
            (Credential, identity, "ClusterDeployments use the Credential: nutanix-hcp-demo. Delete them, or change"),
            (Release, Key("", "kcm-1-2-0"), "Management kcm uses the release"),
        ]
        for kind_, key, words in cases:
            with pytest.raises(ApiError) as found:
                await p.client.delete(kind_, key)
            assert words in str(found.value)
        await p.client.delete(ClusterTemplate, Key(SPACE, "nutanix-k0s-standalone"))
        await p.client.patch(ClusterDeployment, DEMO, MergePatch({"spec": {"credential": None}}))
        await p.client.delete(Credential, identity)


async def test_a_credential_of_a_team_can_not_use_secrets_of_others() -> None:
    async with admitting() as p:
        await create(p, credential())
        body = credential()
        body["metadata"]["namespace"] = "other"
        said = await refused(p, body)
        assert "only Credentials in kcm-system may use identities of other namespaces" in said


async def test_a_template_of_another_namespace_is_refused_with_the_way_to_get_it() -> None:
    async with admitting() as p:
        body = hosted()
        body["metadata"]["namespace"] = "other"
        said = await refused(p, body)
        assert 'ClusterTemplate "nutanix-k0s-hcp" not found in namespace other; kcm-system has it' in said
        assert "namespace other to spec.accessRules of AccessManagement kcm" in said
