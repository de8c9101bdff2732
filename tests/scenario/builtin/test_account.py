from __future__ import annotations

import base64

from homeport.client.protocol import Key, MergePatch
from scenario.builtin.plane import ACCOUNT, CONFIG_MAP, NAMESPACE, SECRET, OnPlane, Plane

TYPE = "kubernetes.io/service-account-token"
NAME = "kubernetes.io/service-account.name"


async def _token_secret(plane: Plane, name: str, account: str) -> None:
    body = {"metadata": {"name": name, "namespace": "default", "annotations": {NAME: account}}, "type": TYPE}
    await plane.client.create(body, kind=SECRET)


def test_every_namespace_has_an_account_and_the_root_certificate(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "fresh")
        await plane.settle()
        for namespace in ("default", "kube-system", "fresh"):
            assert await plane.exists(ACCOUNT, "default", namespace)
            root = await plane.get(CONFIG_MAP, "kube-root-ca.crt", namespace)
            assert root["data"] == {"ca.crt": plane.server.pki.ca_pem.decode()}

    on_plane(scenario)


def test_what_every_namespace_has_comes_back(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.settle()
        first = await plane.get(ACCOUNT, "default")
        await plane.delete(ACCOUNT, "default")
        await plane.delete(CONFIG_MAP, "kube-root-ca.crt")
        await plane.settle()
        assert (await plane.get(ACCOUNT, "default")).uid != first.uid
        assert await plane.exists(CONFIG_MAP, "kube-root-ca.crt")

    on_plane(scenario)


def test_a_changed_root_certificate_is_put_right_and_additions_go(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.settle()
        key = Key("default", "kube-root-ca.crt")
        await plane.client.patch(CONFIG_MAP, key, MergePatch({"data": {"ca.crt": "forged", "more": "x"}}))
        await plane.settle()
        root = await plane.get(CONFIG_MAP, "kube-root-ca.crt")
        assert root["data"] == {"ca.crt": plane.server.pki.ca_pem.decode()}

    on_plane(scenario)


def test_a_token_secret_gets_a_token_that_the_server_accepts(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(ACCOUNT, "robot")
        await _token_secret(plane, "robot-token", "robot")
        await plane.settle()
        secret = await plane.get(SECRET, "robot-token")
        assert set(secret["data"]) == {"token", "ca.crt", "namespace"}
        token = base64.b64decode(secret["data"]["token"]).decode()
        user = await plane.server.authenticator.authenticate(peer_cert=None, authorization=f"Bearer {token}")
        assert user is not None
        assert user.name == "system:serviceaccount:default:robot"

    on_plane(scenario)


def test_a_token_secret_may_come_before_its_account(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await _token_secret(plane, "early", "robot")
        await plane.settle()
        assert not (await plane.get(SECRET, "early")).get("data")
        await plane.make(ACCOUNT, "robot")
        await plane.settle()
        assert (await plane.get(SECRET, "early"))["data"]["token"]

    on_plane(scenario)


def test_tokens_go_with_their_account_also_when_a_namesake_follows(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(ACCOUNT, "robot")
        await _token_secret(plane, "robot-token", "robot")
        await plane.make(SECRET, "plain")
        await plane.settle()
        await plane.delete(ACCOUNT, "robot")
        await plane.make(ACCOUNT, "robot")
        await plane.settle()
        assert not await plane.exists(SECRET, "robot-token")
        assert await plane.exists(SECRET, "plain")

    on_plane(scenario)


def test_a_damaged_token_secret_is_repaired(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(ACCOUNT, "robot")
        await _token_secret(plane, "robot-token", "robot")
        await plane.settle()
        damage = MergePatch({"data": {"token": None, "ca.crt": "eA=="}})
        await plane.client.patch(SECRET, Key("default", "robot-token"), damage)
        await plane.settle()
        data = (await plane.get(SECRET, "robot-token"))["data"]
        assert base64.b64decode(data["ca.crt"]) == plane.server.pki.ca_pem
        assert data["token"]

    on_plane(scenario)
