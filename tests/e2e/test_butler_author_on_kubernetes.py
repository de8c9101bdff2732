"""The same on a real kube-apiserver, whose ValidatingAdmissionPolicies check it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.client import kubeconfig
from homeport.client.config import Impersonation
from homeport.client.errors import Forbidden
from homeport.client.http import HttpClient
from homeport.client.protocol import Client, Key, MergePatch
from homeport.platforms.butler.addon.guard import BINDING, POLICY
from homeport.platforms.butler.author.install import Policies
from homeport.platforms.butler.author.policy import render_policies
from homeport.platforms.butler.definition import definitions
from homeport.runtime.definition import establish
from realkube import RealKube
from reconcile.platforms.author_cases import CHECKS, cluster, prepare

_CLUSTERS = TenantCluster.__resource__
pytestmark = [pytest.mark.timeout(180)]


async def _enforced(as_: Client) -> None:
    """A policy is enforced a moment after it was created."""
    body = cluster("probe", {"workers": {"machineTemplate": {"os": {"sshAuthorizedKey": "ssh-ed25519 AAAA"}}}})
    async with asyncio.timeout(60):
        while True:
            try:
                await as_.create(body, kind=_CLUSTERS)
            except Forbidden as error:
                if "administer" in str(error):
                    return
                raise
            await asyncio.sleep(0.2)  # nothing tells when
            body["metadata"]["name"] += "x"


async def test_members_and_platform_administrators_gain_no_rights_by_what_they_write(
    binaries: dict[str, Path] | str,
) -> None:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with RealKube(binaries) as kube:
        config = kubeconfig.load(kube.kubeconfig)
        async with AsyncExitStack() as stack:
            root = await stack.enter_async_context(HttpClient(config))
            await establish(root, *definitions())
            await prepare(root)
            policies = Policies(root)
            await policies.hold()
            users = {
                name: await stack.enter_async_context(
                    HttpClient(replace(config, impersonate=Impersonation(user=name, groups=("system:authenticated",))))
                )
                for name in ("operator", "admin", "platform")
            }
            await _enforced(users["operator"])
            for check in CHECKS:
                await check(users.__getitem__)
            await _repaired(root, policies)


async def _repaired(root: Client, policies: Policies) -> None:
    """What somebody changed is put right, and a second look writes nothing."""
    name = next(each["metadata"]["name"] for each in render_policies())
    key = Key("", name)
    await root.patch(BINDING, key, MergePatch({"spec": {"validationActions": ["Audit"]}}))
    await policies.hold()
    found = await root.get(BINDING, key)
    assert found["spec"]["validationActions"] == ["Deny"]
    policy = await root.get(POLICY, key)
    await policies.hold()
    assert (await root.get(POLICY, key)).resource_version == policy.resource_version
