"""One control plane in a shared etcd: its prefix, its user, its role, and the proof that they are its own.

    /homeport.dev/tenants/SCHEMA   the claim: a token that only the Secret of the control plane knows
    /homeport.dev/users/USER       the same token: two control planes never share a user
    /SCHEMA/...                    the data; the role of the same name may read and write there, and nowhere else

Claims are outside the prefix, so that a tenant can't change them. They are made before anything else and removed last:
whatever is found without a matching claim belongs to somebody else and is left alone.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from homeport.hosted.etcd.client import READ, READ_WRITE, Etcd, KeyValue, prefix_end
from homeport.hosted.etcd.dial import DatastoreError

CLAIMS = b"/homeport.dev/tenants/"
USER_CLAIMS = b"/homeport.dev/users/"
RESERVED = frozenset(("root", "homeport.dev", "registry"))  # as a schema or a user
ROOT = "root"
_BATCH_KEYS = 64
_BATCH_BYTES = 512 * 1024
# Seconds that objects with a limited life keep after a migration: as long as kube-apiserver gives events.
_LEASE_SECONDS = 3600


_NAME = re.compile(r"[A-Za-z0-9_]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9_])?")


def is_name(text: str) -> bool:
    """Whether a schema or a user can be called so: in etcd and in databases alike."""
    return _NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Tenant:
    """`claim`: a random token, kept in a Secret of the control plane."""

    schema: str
    user: str
    claim: str = field(repr=False)
    adopt: bool = False  # data that nobody claims may be taken over

    def __post_init__(self) -> None:
        """Users can write the Secret that these come from: `other/registry` would be inside another tenant's data."""
        for name in (self.schema, self.user):
            if not is_name(name):
                raise DatastoreError(
                    "InvalidSchema",
                    f"{name!r} can't be a schema or user of a DataStore: letters, digits, _, - and . only, at most 63",
                )

    @property
    def prefix(self) -> bytes:
        """With the slash at the end: `/demo` would also be the beginning of `/demo2/...`."""
        return f"/{self.schema}/".encode()

    @property
    def claim_key(self) -> bytes:
        return CLAIMS + self.schema.encode()

    @property
    def user_key(self) -> bytes:
        return USER_CLAIMS + self.user.encode()


async def check_health(etcd: Etcd, name: str) -> None:
    """An etcd without a leader answers nothing, and a full one writes nothing. Raises DatastoreError."""
    found = await etcd.health()
    if not found.leader:
        raise DatastoreError(
            "NoLeader", f"DataStore {name}: etcd has no leader: check that most of its members run and reach each other"
        )
    for each in found.errors:
        if "NOSPACE" in each:
            raise DatastoreError(
                "DatastoreFull",
                f"DataStore {name}: etcd has used all its space and refuses writes of all tenants (alarm NOSPACE): "
                "compact and defragment it or raise --quota-backend-bytes, then run `etcdctl alarm disarm`",
            )
        if "CORRUPT" in each:
            raise DatastoreError(
                "DatastoreCorrupt", f"DataStore {name}: members of etcd have different data ({each}): restore it"
            )


async def prepare_datastore(etcd: Etcd, *, ours: bool, name: str) -> None:
    """An etcd that does not check who asks would show every tenant the data of all others. Raises DatastoreError."""
    await check_health(etcd, name)
    if await etcd.auth_enabled():
        return
    if not ours:
        raise DatastoreError(
            "AuthenticationDisabled",
            f"DataStore {name}: etcd does not authenticate users, so tenants could read each other's data: add a user "
            "root with the role root and run `etcdctl auth enable`",
        )
    if ROOT not in await etcd.users():
        await etcd.add_user(ROOT)
    if ROOT not in await etcd.roles():
        await etcd.add_role(ROOT)
    if ROOT not in await etcd.user_roles(ROOT):
        await etcd.grant_role(ROOT, ROOT)
    await etcd.enable_auth()


async def owns(etcd: Etcd, tenant: Tenant) -> bool:
    """Whether the claim on the schema is the tenant's."""
    return await _holds(etcd, tenant, tenant.claim_key)


async def _holds(etcd: Etcd, tenant: Tenant, key: bytes) -> bool:
    found = await etcd.get(key)
    return found is not None and found.value == tenant.claim.encode()


async def claim(etcd: Etcd, tenant: Tenant, datastore: str) -> None:
    """Raises DatastoreError if the schema or the user is, or may be, somebody else's."""
    for name in {tenant.schema, tenant.user} & RESERVED:
        raise DatastoreError(
            "NameReserved",
            f"DataStore {datastore}: {name!r} is reserved: set another spec.dataStoreSchema and spec.dataStoreUsername",
        )
    await _claim_schema(etcd, tenant, datastore)
    await _claim_user(etcd, tenant, datastore)


async def _claim_user(etcd: Etcd, tenant: Tenant, datastore: str) -> None:
    """A shared user could read the data of both control planes, and would go with the first one that is deleted."""
    if await _holds(etcd, tenant, tenant.user_key):
        return
    unclaimed = await etcd.get(tenant.user_key) is None and (tenant.adopt or tenant.user not in await etcd.users())
    if unclaimed and await etcd.create(tenant.user_key, tenant.claim.encode()):
        return
    if not await _holds(etcd, tenant, tenant.user_key):
        raise DatastoreError(
            "UserTaken",
            f"DataStore {datastore}: etcd has a user {tenant.user!r} that is not this control plane's: set another "
            "spec.dataStoreUsername",
        )


async def _claim_schema(etcd: Etcd, tenant: Tenant, datastore: str) -> None:
    if await owns(etcd, tenant):
        return
    if await etcd.get(tenant.claim_key) is not None:
        raise DatastoreError(
            "SchemaTaken",
            f"DataStore {datastore}: another control plane uses the schema {tenant.schema!r}: set another "
            "spec.dataStoreSchema",
        )
    if not tenant.adopt and await etcd.count(tenant.prefix):
        raise DatastoreError(
            "SchemaTaken",
            f"DataStore {datastore}: there is data below /{tenant.schema}/ that this control plane did not write: set "
            "another spec.dataStoreSchema, delete the data, or adopt it with the annotation that `kubectl explain` "
            "names for spec.dataStoreSchema",
        )
    if not await etcd.create(tenant.claim_key, tenant.claim.encode()) and not await owns(etcd, tenant):
        raise DatastoreError("SchemaTaken", f"DataStore {datastore}: the schema {tenant.schema!r} was taken just now")


async def ensure(
    etcd: Etcd, tenant: Tenant, datastore: str, *, frozen: bool = False, established: bool = False
) -> None:
    """Claim, role and user. `frozen`: the tenant may read its data and change nothing.

    `established`: everything was there before. A datastore without the claim is another one, or has lost its data.
    """
    if established and await etcd.get(tenant.claim_key) is None:
        raise DatastoreError(
            "DataLost",
            f"DataStore {datastore}: the schema {tenant.schema!r} of this control plane is not there: check "
            "spec.endpoints and whether etcd has lost its data; restore etcd from a backup, or delete the "
            "TenantControlPlane and create it again to start with an empty cluster",
        )
    await claim(etcd, tenant, datastore)
    if tenant.user not in await etcd.roles():
        await etcd.add_role(tenant.user)
    wanted, kind = ("read", READ) if frozen else ("readwrite", READ_WRITE)
    granted = await etcd.role_permissions(tenant.user)
    if (wanted, tenant.prefix) not in {(each.kind, each.key) for each in granted}:
        await etcd.grant_prefix(tenant.user, tenant.prefix, kind)
    if tenant.user not in await etcd.users():
        await etcd.add_user(tenant.user)
    if tenant.user not in await etcd.user_roles(tenant.user):
        await etcd.grant_role(tenant.user, tenant.user)


async def is_ready(etcd: Etcd, tenant: Tenant) -> bool:
    """Whether everything that `ensure` makes is there."""
    if not await owns(etcd, tenant) or not await _holds(etcd, tenant, tenant.user_key):
        return False
    if tenant.user not in await etcd.users() or tenant.user not in await etcd.user_roles(tenant.user):
        return False
    granted = await etcd.role_permissions(tenant.user)
    return ("readwrite", tenant.prefix) in {(each.kind, each.key) for each in granted}


async def remove(etcd: Etcd, tenant: Tenant) -> bool:
    """Data, user and role, with proof that they are the tenant's. False: there is no proof, and nothing was removed.

    Claims go last, so that what a crash left can be removed later.
    """
    if not await owns(etcd, tenant):
        return await etcd.get(tenant.claim_key) is None and not await etcd.count(tenant.prefix)
    if await _holds(etcd, tenant, tenant.user_key):
        if tenant.user in await etcd.users():
            await etcd.delete_user(tenant.user)
        if tenant.user in await etcd.roles():
            await etcd.delete_role(tenant.user)
        await etcd.delete(tenant.user_key)
    await etcd.delete_prefix(tenant.prefix)
    await etcd.delete(tenant.claim_key)
    return True


# -- migration -----------------------------------------------------------------------------------------------------


async def copy(source: Etcd, target: Etcd, tenant: Tenant) -> int:
    """All keys of the tenant, as they are at one moment; keys of an earlier attempt that are no more are removed.

    The tenant must be frozen in `source`. Returns the number of keys. Raises DatastoreError when the copy differs.
    """
    revision = await source.revision()
    await target.delete_prefix(tenant.prefix)
    copied = lease = 0
    async for batch in _batches(source, tenant.prefix, revision):
        if not lease and any(each.lease for each in batch):
            lease = await target.grant_lease(_LEASE_SECONDS)
        await target.put_all(batch, lease)
        copied += len(batch)
    counted = await target.count(tenant.prefix)
    if counted != copied:
        raise DatastoreError("MigrationFailed", f"{copied} keys were copied and {counted} arrived: copying again")
    return copied


async def _batches(etcd: Etcd, prefix: bytes, revision: int) -> AsyncIterator[list[KeyValue]]:
    start, end = prefix, prefix_end(prefix)
    batch: list[KeyValue] = []
    size = 0
    while True:
        page = await etcd.page(start, end, revision=revision)
        if not page:
            break
        start = page[-1].key + b"\0"
        for each in page:
            if each.key.startswith(prefix + b"masterleases/"):
                continue  # who serves now: each API server writes that again within seconds
            if batch and (len(batch) == _BATCH_KEYS or size + len(each.value) > _BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(each)
            size += len(each.value) + len(each.key)
    if batch:
        yield batch
