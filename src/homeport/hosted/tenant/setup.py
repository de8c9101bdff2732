"""The data of a TenantControlPlane: its schema and user in the DataStore, migration to another one, and removal.

The Secret `<name>-datastore-config` says which DataStore is in use, and holds the token that proves whose the data is.
It is written before anything is made in a DataStore, and it is the last thing to go.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import quote_from_bytes

import structlog

from homeport.api.steward.v1alpha1 import AnyDataStore, ConfigState, SetupState, StorageState
from homeport.capi.remote.pki import SECRET, KeyPair
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.hosted import name as names
from homeport.hosted.certificate import renew_at, sign_client, stale_client
from homeport.hosted.datastore.content import Credentials, access_of, is_ours, read_credentials
from homeport.hosted.etcd import tenancy
from homeport.hosted.etcd.client import Etcd
from homeport.hosted.etcd.dial import Access, DatastoreError
from homeport.hosted.etcd.tenancy import Tenant
from homeport.hosted.secret import Data, Held, SecretKeeper, decoded, encoded
from homeport.hosted.tenant.scope import TenantScope
from homeport.hosted.tenant.storage import Override, Storage, default_schema
from homeport.runtime.cache import Cache
from homeport.runtime.clock import rfc3339
from homeport.runtime.event import Recorder
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

DEFAULT = "default"
# Keys of the Secret. Those with DB_ are the variables of kine.
SCHEMA, USER, PASSWORD, SERVERS = "DB_SCHEMA", "DB_USER", "DB_PASSWORD", "DB_CONNECTION_STRING"
IN_USE, PREVIOUS, CLAIM = "DATASTORE", "PREVIOUS_DATASTORE", "CLAIM"
RETRY_SECONDS = 10.0

Connect = Callable[[Access], AbstractAsyncContextManager[Etcd]]


class Setup:
    """Phases of the reconciler."""

    def __init__(
        self, client: Client, options: Write, recorder: Recorder, datastores: Cache[Any], connect: Connect
    ) -> None:
        self._client = client
        self._options = options
        self._recorder = recorder
        self._datastores = datastores
        self._connect = connect
        self._prepared: dict[Key, tuple[object, ...]] = {}  # what was found in order since we run

    def forget(self, key: Key) -> None:
        self._prepared.pop(key, None)

    # -- phases ------------------------------------------------------------------------------------------------

    async def hold(self, scope: TenantScope) -> Wait | None:
        name = scope.spec.data_store or DEFAULT
        datastore = self._find(name)
        if datastore is None:
            text = f"DataStore {name} does not exist: {_advice(name)}, or set spec.dataStore to another one"
            return Wait("DataStoreNotFound", text)
        if datastore.metadata.deletion_timestamp and not scope.object.status.storage.data_store_name:
            return Wait("DataStoreNotFound", f"DataStore {name} is being deleted: set spec.dataStore to another one")
        keeper = self._keeper(scope)
        known = await keeper.read(scope.part(names.DATASTORE_CONFIG)) or {}
        if not known.get(CLAIM) and scope.object.status.storage.setup is not None:
            text = (
                f"Secret {scope.key.namespace}/{scope.part(names.DATASTORE_CONFIG)} is missing or has no key {CLAIM}, "
                f"which proves whose the data is: restore it from a backup"
            )
            return Wait("ClaimLost", text, warning=True)
        in_use = known.get(IN_USE, name.encode()).decode()
        if in_use != name:
            wait = await self._migrate(scope, known, datastore)
            if wait is not None:
                return wait
        held = await self._hold_config(scope, datastore)
        _check_schema(scope, held.data, etcd=datastore.spec.driver == "etcd")
        # Until the control plane was seen to work with the new DataStore.
        scope.findings.migrating = bool(held.data.get(PREVIOUS))
        credentials = await read_credentials(self._client, datastore)
        storage = await self._storage(scope, datastore, held, credentials)
        if storage.etcd:
            await self._prepare(scope, storage, datastore, credentials, held)
        certificate = await self._hold_certificate(scope, keeper, storage, credentials)
        self._note(scope, storage, held, certificate)
        return None

    async def finish_migration(self, scope: TenantScope) -> Wait | None:
        """The control plane was seen to work with the new DataStore: now the data in the old one goes."""
        held = await self._keeper(scope).read(scope.part(names.DATASTORE_CONFIG))
        if held is None or not held.get(PREVIOUS):
            return None
        previous = held[PREVIOUS].decode()
        await self._remove_from(scope, previous, held)
        await self._client.patch(
            SECRET,
            Key(scope.key.namespace, scope.part(names.DATASTORE_CONFIG)),
            MergePatch({"data": {PREVIOUS: None}}),
            self._options,
        )
        scope.findings.migrating = False
        log.info("the data was moved to another datastore", tenant=str(scope.key), previous=previous)
        return None

    async def remove(self, scope: TenantScope) -> Wait | None:
        """Of a deletion: the API servers are gone. Without proof that data is this control plane's, it stays."""
        key = Key(scope.key.namespace, scope.part(names.DATASTORE_CONFIG))
        try:
            secret = await self._client.get(SECRET, key)
        except NotFound:
            if scope.object.status.storage.setup is not None:
                self._left(scope, scope.object.status.storage.data_store_name, f"Secret {key} is gone")
            return None
        data = decoded(secret)
        for name in dict.fromkeys((data.get(IN_USE, b"").decode(), data.get(PREVIOUS, b"").decode())):
            if name:
                await self._remove_from(scope, name, data)
        for each in scope.spec.data_store_overrides:
            await self._remove_from(scope, each.data_store, data)
        if secret.metadata.get("finalizers"):
            body = {"resourceVersion": secret.resource_version, "finalizers": None}
            await self._client.patch(SECRET, key, MergePatch({"metadata": body}), self._options)
        return None

    # -- parts -------------------------------------------------------------------------------------------------

    def _find(self, name: str) -> AnyDataStore | None:
        found: AnyDataStore | None = self._datastores.get(Key("", name))
        return found

    def _keeper(self, scope: TenantScope) -> SecretKeeper:
        return SecretKeeper(self._client, self._options, scope.key.namespace, scope.metadata())

    async def _hold_config(self, scope: TenantScope, datastore: AnyDataStore) -> Held:
        """`datastore` is the one in use."""
        spec, meta = scope.spec, scope.object.metadata
        schema = spec.data_store_schema or default_schema(meta.namespace, meta.name)
        user = spec.data_store_username or schema
        basics = {} if datastore.spec.driver == "etcd" else await self._login(datastore)

        def wanted(found: Data) -> Data:
            # Which DataStore is in use is changed by a migration alone, and the claim never.
            return {
                SCHEMA: schema.encode(),
                USER: user.encode(),
                PASSWORD: b"",
                CLAIM: str(uuid.uuid4()).encode(),
                IN_USE: datastore.metadata.name.encode(),
                SERVERS: ",".join(datastore.spec.endpoints).encode(),
                **{each: found[each] for each in (CLAIM, IN_USE, SCHEMA, USER) if found.get(each)},
                **basics,
            }

        def stale(found: Data) -> str:
            expected = wanted(found)
            return "" if {each: found.get(each) for each in expected} == expected else "it has other content"

        # Deleting the TenantControlPlane in the foreground must not take the proof away before the data.
        marks = {**scope.metadata(), "finalizers": [f"{scope.flavour.finalizer}/datastore-secret"]}
        guarded = SecretKeeper(self._client, self._options, scope.key.namespace, marks)
        return await guarded.hold(scope.part(names.DATASTORE_CONFIG), stale, wanted)

    async def _login(self, datastore: AnyDataStore) -> dict[str, bytes]:
        found = await read_credentials(self._client, datastore)
        if not found.user:
            return {}
        # MySQL's data source names are no URLs; in the others these characters would end the password.
        login = {USER: found.user, PASSWORD: found.password}
        if datastore.spec.driver == "MySQL":
            return login
        return {name: quote_from_bytes(value, safe="").encode() for name, value in login.items()}

    async def _storage(
        self, scope: TenantScope, datastore: AnyDataStore, held: Held, credentials: Credentials
    ) -> Storage:
        given = scope.spec.data_store_overrides
        overrides = tuple([await self._override(each, datastore, credentials) for each in given])
        storage = Storage(
            datastore=datastore.metadata.name,
            driver=datastore.spec.driver,
            endpoints=tuple(datastore.spec.endpoints),
            schema=held.data[SCHEMA].decode(),
            user=held.data[USER].decode(),
            overrides=overrides,
            tls=datastore.spec.tls_config is not None,
        )
        scope.findings.storage = storage
        return storage

    async def _override(self, given: Any, datastore: AnyDataStore, credentials: Credentials) -> Override:
        where = f"spec.dataStoreOverrides[{given.resource}]"
        found = self._find(given.data_store)
        if found is None:
            raise DatastoreError(
                "DataStoreNotFound", f"{where}: DataStore {given.data_store} does not exist: create it"
            )
        if found.spec.driver != "etcd" or datastore.spec.driver != "etcd":
            raise DatastoreError("InvalidDataStore", f"{where}: only DataStores of driver etcd can be combined")
        other = await read_credentials(self._client, found)
        if other.ca.certificate != credentials.ca.certificate:
            text = (
                f"{where}: DataStore {given.data_store} has another CA than DataStore {datastore.metadata.name}; "
                "kube-apiserver uses one client certificate for all of them"
            )
            raise DatastoreError("InvalidDataStore", text)
        return Override(given.resource, tuple(found.spec.endpoints))

    async def _prepare(
        self, scope: TenantScope, storage: Storage, datastore: AnyDataStore, credentials: Credentials, held: Held
    ) -> None:
        """Claim, user and role in every etcd that is used. Found in order once, it is not asked for again."""
        mark = (scope.object.metadata.uid, storage, credentials.ca.certificate)
        if self._prepared.get(scope.key) == mark:
            return
        tenant = _tenant(held.data, adopt=scope.annotations.get(scope.flavour.adopt_annotation) == "true")
        others = [found for each in scope.spec.data_store_overrides if (found := self._find(each.data_store))]
        for each in (datastore, *others):
            access = access_of(each, await read_credentials(self._client, each))
            async with self._connect(access) as etcd:
                await tenancy.prepare_datastore(etcd, ours=is_ours(each), name=each.metadata.name)
                established = each is datastore and _is_established(scope, storage)
                await tenancy.ensure(etcd, tenant, each.metadata.name, established=established)
        self._prepared[scope.key] = mark

    async def _hold_certificate(
        self, scope: TenantScope, keeper: SecretKeeper, storage: Storage, credentials: Credentials
    ) -> Held | None:
        name, ca = scope.part(names.DATASTORE_CERTIFICATE), credentials.ca
        if not ca.certificate:
            return None
        if not storage.etcd:
            shown = credentials.client
            files = {"ca.crt": ca.certificate, "server.crt": shown.certificate, "server.key": shown.key}
            held = await keeper.hold_exact(name, files)
        else:

            def stale(data: Data) -> str:
                if data.get("ca.crt") != ca.certificate:
                    return "the DataStore has another CA"
                pair = KeyPair(data.get("server.crt", b""), data.get("server.key", b""))
                return stale_client(pair, ca, storage.user, now=scope.now)

            def make(_: Data) -> Data:
                pair = sign_client(ca, storage.user, now=scope.now)
                return {"ca.crt": ca.certificate, "server.crt": pair.certificate, "server.key": pair.key}

            held = await keeper.hold(name, stale, make)
            scope.findings.renewals.append(renew_at(held.data["server.crt"]))
        scope.findings.checksums[names.DATASTORE_CERTIFICATE] = held.checksum
        return held

    def _note(self, scope: TenantScope, storage: Storage, held: Held, certificate: Held | None) -> None:
        if not storage.etcd:
            scope.findings.checksums[names.DATASTORE_CONFIG] = held.checksum
        before = scope.object.status.storage
        # Nobody learns a password from the checksum: the claim is part of it.
        setup = SetupState(checksum=held.checksum, schema=storage.schema, user=storage.user)
        same = before.setup is not None and (before.setup.schema, before.setup.user) == (setup.schema, setup.user)
        if before.setup is not None and same and before.setup.checksum == setup.checksum:
            setup = before.setup
        else:
            setup.last_update = rfc3339(scope.now)
        scope.object.status.storage = StorageState(
            driver=storage.driver,
            data_store_name=storage.datastore,
            config=ConfigState(checksum=held.checksum, secret_name=held.name),
            setup=setup,
            certificate=scope.noted(certificate, before.certificate) if certificate is not None else None,
        )

    # -- migration ---------------------------------------------------------------------------------------------

    async def _migrate(self, scope: TenantScope, known: Data, target: AnyDataStore) -> Wait | None:
        """Freezes the tenant, copies its keys, verifies them, and switches: the Pods follow by a rollout.

        Every step may be repeated. Until the switch the old DataStore is in use, and it keeps its data after that
        until the control plane was seen to work.
        """
        scope.findings.migrating = True
        old, new = known[IN_USE].decode(), target.metadata.name
        source = self._find(old)
        if source is None:
            return Wait("DataStoreNotFound", f"DataStore {old} holds the data and no longer exists: restore it")
        if (obstacle := _obstacle(source, target, previous=known.get(PREVIOUS, b"").decode())) is not None:
            return obstacle
        tenant = _tenant(known)
        # Set back before it is finished, the tenant must be allowed to write again.
        self.forget(scope.key)
        from_access = access_of(source, await read_credentials(self._client, source))
        to_access = access_of(target, await read_credentials(self._client, target))
        async with self._connect(from_access) as old_etcd, self._connect(to_access) as new_etcd:
            if not await tenancy.owns(old_etcd, tenant):
                text = f"DataStore {old}: the schema {tenant.schema!r} is not this control plane's: nothing is moved"
                return Wait("SchemaTaken", text, warning=True)
            # Whatever speaks against the new one is found out while the tenant can still write.
            await tenancy.prepare_datastore(new_etcd, ours=is_ours(target), name=new)
            await tenancy.ensure(new_etcd, tenant, new)
            await tenancy.ensure(old_etcd, tenant, old, frozen=True)
            copied = await tenancy.copy(old_etcd, new_etcd, tenant)
        changed = {IN_USE: new.encode(), PREVIOUS: old.encode(), SERVERS: ",".join(target.spec.endpoints).encode()}
        key = Key(scope.key.namespace, scope.part(names.DATASTORE_CONFIG))
        await self._client.patch(SECRET, key, MergePatch({"data": encoded(changed)}), self._options)
        self.forget(scope.key)
        text = f"{copied} keys were copied from DataStore {old} to {new}; the Pods are restarted with it"
        self._recorder.record(scope.object, "DataCopied", text)
        return None

    # -- removal -----------------------------------------------------------------------------------------------

    async def _remove_from(self, scope: TenantScope, name: str, data: Data) -> None:
        datastore = self._find(name)
        if datastore is None:
            self._left(scope, name, f"DataStore {name} does not exist")
            return
        if datastore.spec.driver != "etcd":
            self._left(scope, name, f"Homeport does not remove databases of driver {datastore.spec.driver}")
            return
        access = access_of(datastore, await read_credentials(self._client, datastore))
        async with self._connect(access) as etcd:
            if not await tenancy.remove(etcd, _tenant(data)):
                self._left(scope, name, "it is not proven that the data belongs to this control plane")

    def _left(self, scope: TenantScope, datastore: str, why: str) -> None:
        setup = scope.object.status.storage.setup
        schema = setup.schema if setup is not None else "unknown"
        text = f"the schema {schema} was left in DataStore {datastore}: {why}; remove it by hand if nothing uses it"
        self._recorder.record(scope.object, "DataLeft", text, warning=True)


def _is_established(scope: TenantScope, storage: Storage) -> bool:
    """Whether the control plane had its data in this DataStore before."""
    known = scope.object.status.storage
    return known.setup is not None and known.data_store_name == storage.datastore


def _advice(name: str) -> str:
    made = "; controllers that run in the cluster make it themselves" if name == DEFAULT else ""
    return f"create it with spec.driver etcd, its endpoints and tlsConfig (`kubectl explain datastores.spec`){made}"


def _check_schema(scope: TenantScope, data: Data, *, etcd: bool) -> None:
    """With another schema the control plane would start again, empty, and nobody would be told.

    Users of databases are the DataStore's, which may change them.
    """
    known = scope.object.status.storage.setup or SetupState()
    for name, before in ((SCHEMA, known.schema), (USER, known.user if etcd else "")):
        held = data[name].decode(errors="replace")
        if before and held != before:
            raise DatastoreError(
                "SchemaChanged",
                f"Secret {scope.key.namespace}/{scope.part(names.DATASTORE_CONFIG)}: data[{name}] is {held!r}, and the "
                f"data of the control plane is in {before!r}: set it back",
            )


def _obstacle(source: AnyDataStore, target: AnyDataStore, *, previous: str) -> Wait | None:
    """Why the data can't be moved now. `previous`: the DataStore from which the last migration came, '' once it is
    finished."""
    old, new = source.metadata.name, target.metadata.name
    if source.spec.driver != "etcd" or target.spec.driver != "etcd":
        text = (
            f"data can't be moved from DataStore {old} ({source.spec.driver}) to {new} ({target.spec.driver}): "
            "only etcd can be copied; set spec.dataStore back"
        )
        return Wait("MigrationNotSupported", text, warning=True)
    if previous and previous != new:
        text = f"the migration from DataStore {previous} to {old} is not finished; the next one starts after that"
        return Wait("MigrationInProgress", text, after=RETRY_SECONDS)
    return None


def _tenant(data: Data, *, adopt: bool = False) -> Tenant:
    return Tenant(data[SCHEMA].decode(), data[USER].decode(), data[CLAIM].decode(), adopt)
