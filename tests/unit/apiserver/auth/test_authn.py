from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from homeport.apiserver.auth.authn import Authenticator, TokenCache
from homeport.apiserver.auth.certificate import make_key
from homeport.apiserver.auth.pki import PKI, PkiError
from homeport.apiserver.auth.token import jwt
from homeport.apiserver.auth.token.file import load_tokens
from homeport.apiserver.auth.token.jwt import TokenInvalid
from homeport.apiserver.auth.token.serviceaccount import ISSUER, BoundObject, ServiceAccounts, Verified
from homeport.apiserver.request import User
from homeport.client.errors import Unauthorized
from homeport.store import Store
from unit.apiserver.auth.policy_store import delete, put

KEY = make_key()
ACCOUNT = {"metadata": {"namespace": "ops", "name": "robot", "uid": "u-1"}}
POD = {"metadata": {"namespace": "ops", "name": "p", "uid": "u-pod"}}


class Time:
    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def accounts(store: Store, clock: Time) -> ServiceAccounts:
    return ServiceAccounts(KEY, store, clock)


@pytest.fixture
def authenticator(store: Store, accounts: ServiceAccounts, clock: Time) -> Authenticator:
    static = {hashlib.sha256(b"static-token").digest(): User("anna", ("devs",), "7")}
    return Authenticator(store, accounts, static, now=clock)


async def by_token(authenticator: Authenticator, token: str) -> User | None:
    return await authenticator.authenticate(peer_cert=None, authorization=f"Bearer {token}")


def bootstrap_secret(**changes: str | None) -> dict[str, Any]:
    data: dict[str, str | None] = {
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        **{field.replace("_", "-"): value for field, value in changes.items()},
    }
    return {
        "metadata": {"namespace": "kube-system", "name": "bootstrap-token-abcdef"},
        "type": "bootstrap.kubernetes.io/token",
        "data": {k: base64.b64encode(v.encode()).decode() for k, v in data.items() if v is not None},
    }


@pytest.mark.parametrize("header", ["", "Basic YTpi", "Bearer", "Bearer   "])
async def test_without_credentials_a_request_is_anonymous(authenticator: Authenticator, header: str) -> None:
    assert await authenticator.authenticate(peer_cert=None, authorization=header) is None


async def test_a_certificate_names_user_and_groups(tmp_path: Path, authenticator: Authenticator, clock: Time) -> None:
    identity = PKI.ensure(tmp_path).issue_client("anna", ("devs", "ops"))
    certificate = x509.load_pem_x509_certificate(identity.certificate)
    der = certificate.public_bytes(serialization.Encoding.DER)
    clock.seconds = certificate.not_valid_after_utc.timestamp() - 10
    user = await authenticator.authenticate(peer_cert=der, authorization="Bearer static-token")
    assert user is not None
    assert (user.name, user.groups) == ("anna", ("devs", "ops", "system:authenticated"))
    clock.seconds += 20
    with pytest.raises(Unauthorized):
        await authenticator.authenticate(peer_cert=der, authorization="")


async def test_a_static_token_names_its_user(authenticator: Authenticator) -> None:
    user = await by_token(authenticator, "static-token")
    assert user == User("anna", ("devs", "system:authenticated"), "7")
    assert await authenticator.authenticate(peer_cert=None, authorization="bearer static-token") == user


@pytest.mark.parametrize("token", ["nonsense", "a.b.c", "..", "eyJhbGciOiJub25lIn0.e30.", "x" * 100_000, "\udc80"])
async def test_an_unknown_token_is_refused_without_being_repeated(authenticator: Authenticator, token: str) -> None:
    with pytest.raises(Unauthorized) as refused:
        await by_token(authenticator, token)
    assert refused.value.status["message"] == "Unauthorized"
    assert refused.value.http_code == 401


async def test_a_service_account_token_has_the_claims_of_kubernetes(accounts: ServiceAccounts, clock: Time) -> None:
    token, expires = accounts.issue(ACCOUNT, seconds=600, bound=[BoundObject("pod", "p", "u-pod")])
    claims = jwt.verify(token, KEY.public_key())
    assert claims.pop("jti")
    assert claims == {
        "aud": [ISSUER],
        "exp": expires,
        "iat": int(clock.seconds),
        "iss": ISSUER,
        "kubernetes.io": {
            "namespace": "ops",
            "pod": {"name": "p", "uid": "u-pod"},
            "serviceaccount": {"name": "robot", "uid": "u-1"},
        },
        "nbf": int(clock.seconds),
        "sub": "system:serviceaccount:ops:robot",
    }
    assert expires == clock.seconds + 600


async def test_a_service_account_token_names_the_account(
    store: Store, authenticator: Authenticator, accounts: ServiceAccounts
) -> None:
    await put(store, "serviceaccounts", ACCOUNT)
    await put(store, "pods", POD)
    user = await by_token(authenticator, accounts.issue(ACCOUNT, bound=[BoundObject("pod", "p", "u-pod")])[0])
    assert user is not None
    assert user.name == "system:serviceaccount:ops:robot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ops", "system:authenticated")
    assert user.uid == "u-1"
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


async def test_a_token_ends_with_its_time(
    store: Store, authenticator: Authenticator, accounts: ServiceAccounts, clock: Time
) -> None:
    await put(store, "serviceaccounts", ACCOUNT)
    token, expires = accounts.issue(ACCOUNT)
    for moment, good in ((clock.seconds, True), (expires - 1, True), (expires + 1, False), (expires + 1, False)):
        clock.seconds = moment
        if good:
            assert await by_token(authenticator, token)
        else:
            with pytest.raises(Unauthorized):
                await by_token(authenticator, token)


async def test_a_token_from_the_future_is_refused(
    store: Store, authenticator: Authenticator, accounts: ServiceAccounts, clock: Time
) -> None:
    await put(store, "serviceaccounts", ACCOUNT)
    token, _ = accounts.issue(ACCOUNT)
    clock.seconds -= 300
    with pytest.raises(Unauthorized):
        await by_token(authenticator, token)


async def test_a_token_ends_with_its_account_and_its_pod(
    store: Store, authenticator: Authenticator, accounts: ServiceAccounts
) -> None:
    await put(store, "serviceaccounts", ACCOUNT)
    await put(store, "pods", POD)
    plain = accounts.issue(ACCOUNT)[0]
    bound = accounts.issue(ACCOUNT, bound=[BoundObject("pod", "p", "u-pod")])[0]
    assert await by_token(authenticator, plain)
    assert await by_token(authenticator, bound)
    await delete(store, "pods", "ops/p")
    assert await by_token(authenticator, plain)
    with pytest.raises(Unauthorized):
        await by_token(authenticator, bound)
    await delete(store, "serviceaccounts", "ops/robot")
    with pytest.raises(Unauthorized):
        await by_token(authenticator, plain)


async def test_a_recreated_account_does_not_inherit_tokens(
    store: Store, authenticator: Authenticator, accounts: ServiceAccounts
) -> None:
    await put(store, "serviceaccounts", ACCOUNT)
    token = accounts.issue(ACCOUNT)[0]
    await delete(store, "serviceaccounts", "ops/robot")
    await put(store, "serviceaccounts", {"metadata": {**ACCOUNT["metadata"], "uid": "u-2"}})
    with pytest.raises(Unauthorized):
        await by_token(authenticator, token)


async def test_a_pod_that_is_being_deleted_keeps_its_token_for_a_minute(
    store: Store, authenticator: Authenticator, accounts: ServiceAccounts, clock: Time
) -> None:
    await put(store, "serviceaccounts", ACCOUNT)
    await put(store, "pods", POD)
    token = accounts.issue(ACCOUNT, bound=[BoundObject("pod", "p", "u-pod")])[0]
    assert await by_token(authenticator, token)
    dying = {"metadata": {**POD["metadata"], "deletionTimestamp": "2027-01-15T08:00:00Z"}}
    clock.seconds = 1_800_000_000.0  # 2027-01-15T08:00:00Z
    await put(store, "pods", dying)
    assert await by_token(authenticator, token)
    clock.seconds += 61
    with pytest.raises(Unauthorized):
        await by_token(authenticator, token)


def _other_key(token: str) -> str:
    return jwt.sign(jwt.peek(token) or {}, make_key())


def _other_claims(token: str) -> str:
    head, _, tail = token.split(".")
    claims = {**(jwt.peek(token) or {}), "sub": "system:serviceaccount:kube-system:root"}
    return f"{head}.{base64.urlsafe_b64encode(orjson.dumps(claims)).rstrip(b'=').decode()}.{tail}"


def _no_algorithm(token: str) -> str:
    _, body, _ = token.split(".")
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    return f"{head}.{body}."


@pytest.mark.parametrize("forge", [_other_key, _other_claims, _no_algorithm, lambda token: token[:-4] + "AAAA"])
async def test_a_forged_token_is_refused(
    store: Store, authenticator: Authenticator, accounts: ServiceAccounts, forge: Callable[[str], str]
) -> None:
    await put(store, "serviceaccounts", ACCOUNT)
    with pytest.raises(Unauthorized):
        await by_token(authenticator, forge(accounts.issue(ACCOUNT)[0]))


async def test_a_token_for_somebody_else_is_refused_here(
    store: Store, authenticator: Authenticator, accounts: ServiceAccounts
) -> None:
    await put(store, "serviceaccounts", ACCOUNT)
    token = accounts.issue(ACCOUNT, audiences=["vault", "other"])[0]
    with pytest.raises(Unauthorized):
        await by_token(authenticator, token)
    assert authenticator.verify(token, ["vault", "x"]).audiences == ("vault",)
    with pytest.raises(TokenInvalid, match=r'token audiences \["vault" "other"\] is invalid'):
        authenticator.verify(token)


async def test_a_token_from_a_secret_lives_as_long_as_the_secret(
    store: Store, authenticator: Authenticator, accounts: ServiceAccounts
) -> None:
    await put(store, "serviceaccounts", ACCOUNT)
    secret: dict[str, Any] = {"metadata": {"namespace": "ops", "name": "robot-token"}}
    token = accounts.issue_for_secret(ACCOUNT, secret)
    with pytest.raises(Unauthorized):
        await by_token(authenticator, token)
    await put(store, "secrets", {**secret, "data": {"token": base64.b64encode(token.encode()).decode()}})
    user = await by_token(authenticator, token)
    assert user is not None
    assert user.name == "system:serviceaccount:ops:robot"
    await put(store, "secrets", {**secret, "data": {}})
    with pytest.raises(Unauthorized):
        await by_token(authenticator, token)


async def test_a_bootstrap_token_names_a_bootstrapper(store: Store, authenticator: Authenticator) -> None:
    await put(store, "secrets", bootstrap_secret())
    user = await by_token(authenticator, "abcdef.0123456789abcdef")
    assert user == User(
        "system:bootstrap:abcdef",
        ("system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated"),
    )
    await delete(store, "secrets", "kube-system/bootstrap-token-abcdef")
    with pytest.raises(Unauthorized):
        await by_token(authenticator, "abcdef.0123456789abcdef")


@pytest.mark.parametrize(
    "changes",
    [
        {"token_secret": "fedcba9876543210"},
        {"token_secret": None},
        {"token_id": "xxxxxx"},
        {"usage_bootstrap_authentication": "false"},
        {"usage_bootstrap_authentication": None},
        {"expiration": "2026-01-01T00:00:00Z"},
        {"expiration": "soon"},
        {"auth_extra_groups": "system:masters"},
    ],
)
async def test_a_bootstrap_token_that_is_not_in_order_is_refused(
    store: Store, authenticator: Authenticator, changes: dict[str, str | None]
) -> None:
    await put(store, "secrets", bootstrap_secret(**changes))
    with pytest.raises(Unauthorized):
        await by_token(authenticator, "abcdef.0123456789abcdef")


async def test_a_bootstrap_token_ends_with_its_time(store: Store, authenticator: Authenticator, clock: Time) -> None:
    await put(store, "secrets", bootstrap_secret(expiration="2027-01-15T08:01:00Z"))
    assert await by_token(authenticator, "abcdef.0123456789abcdef")
    clock.seconds += 61
    with pytest.raises(Unauthorized):
        await by_token(authenticator, "abcdef.0123456789abcdef")


async def test_the_cache_keeps_the_tokens_used_last(store: Store) -> None:
    cache = TokenCache(store, limit=2)
    for name in (b"a", b"b"):
        cache.put(name, Verified(User("x"), ("api",), 0.0, (("pods", "ns/p"),)))
    assert cache.get(b"a", 0.0)
    cache.put(b"c", Verified(User("x"), ("api",), 0.0, (("pods", "ns/p"),)))
    assert [cache.get(name, 0.0) is not None for name in (b"a", b"b", b"c")] == [True, False, True]
    await put(store, "pods", {"metadata": {"namespace": "ns", "name": "p"}})
    assert len(cache) == 0


def test_the_token_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    assert load_tokens(path) == {}
    path.write_text('t1,anna,7,"devs,ops"\n\n# a note\nt2,ben,8\n')
    assert list(load_tokens(path).values()) == [User("anna", ("devs", "ops"), "7"), User("ben", (), "8")]


@pytest.mark.parametrize("line", ["only-a-token", ",anna,7", "t,,7"])
def test_a_broken_token_file_names_the_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(f"ok,anna,7\n{line}\n")
    with pytest.raises(PkiError, match=r"tokens\.csv: line 2 lacks"):
        load_tokens(path)
