"""Charts of templates: where they are, by the objects that a template refers to, and their content.

    origin = await sources.find(template.spec.helm, namespace)
    fetched = await sources.fetch(origin)

Both raise SourceError, whose text names the field or the object and says what to do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from homeport.addons.chart.credential import decoded
from homeport.addons.chart.shelf import locate
from homeport.api.addon.v1alpha1 import ChartSource as ChartAddress
from homeport.api.flux.v1 import HelmChart, HelmRepository, OCIRepository
from homeport.api.k0rdent.v1beta1.template import ChartRef, ChartSpec, HelmSpec, SourceSpec
from homeport.api.meta import Object, Resource
from homeport.capi.chartsettings import ChartSettings
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.helm.errors import SourceError
from homeport.helm.source.credential import NONE, Credentials, parse_credentials
from homeport.helm.source.held import held_chart, held_files
from homeport.helm.source.reference import ChartLocation
from homeport.helm.source.source import ChartSource, FetchedChart
from homeport.helm.source.wire import Trust
from homeport.machinery.chart import ChartError, load_chart
from homeport.platforms.k0rdent.name import REPOSITORY, SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.repository import GIT, Checkout, Trees, find_checkout, written_checkout

O = TypeVar("O", bound=Object)

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SECRET = Resource("", "v1", "Secret", "secrets")
HELD: Mapping[str, Resource] = {each.kind: each for each in (CONFIG_MAP, SECRET)}
_KEPT = 32  # charts in memory
_UNSUPPORTED = "Homeport reads Helm, OCI and Git repositories, ConfigMaps and Secrets: use one of them"


@dataclass(frozen=True, slots=True)
class Holder:
    """A ConfigMap, a Secret or a Git repository that holds a chart or manifests."""

    kind: str
    key: Key
    path: str = ""
    checkout: Checkout | None = None  # of a Git repository

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a chart is: at an address, or in an object. `named`: the object of the API that says so."""

    named: tuple[str, Key]
    repository: str = ""
    chart: str = ""
    version: str = ""
    digest: str = ""
    plain_http: bool = False
    pass_credentials: bool = False
    secret: Key | None = None  # with an account
    authority: Key | None = None  # with a CA certificate
    holder: Holder | None = None

    @property
    def address(self) -> ChartAddress:
        return ChartAddress(repository=self.repository, name=self.chart, insecure_http=self.plain_http)


class Sources:
    def __init__(self, client: Client, settings: ChartSettings) -> None:
        self._client = client
        self._settings = settings
        self._trees = Trees(client)
        self._kept: OrderedDict[tuple[str, ...], FetchedChart] = OrderedDict()

    # -- where -------------------------------------------------------------------------------------------------

    async def find(self, helm: HelmSpec | None, namespace: str, field: str = "spec.helm") -> Origin:
        """`namespace`: of the template; kcm-system for those without one."""
        if helm is None:
            raise SourceError(f"{field}: it is missing")
        if helm.chart_spec is not None:
            return await self._of_spec(helm.chart_spec, namespace, f"{field}.chartSpec")
        if helm.chart_ref is not None:
            return await self._of_ref(helm.chart_ref, namespace, f"{field}.chartRef")
        if helm.chart_source is not None:
            return await self._of_source(helm.chart_source, namespace, f"{field}.chartSource")
        raise SourceError(f"{field}: set exactly one of chartSpec, chartRef and chartSource")

    async def _of_spec(self, spec: ChartSpec, namespace: str, field: str) -> Origin:
        if spec.verify is not None:
            raise SourceError(f"{field}.verify: signatures can't be verified here: leave it out")
        if spec.values_files:
            raise SourceError(f"{field}.valuesFiles: not supported: write the values where the template is used")
        return await self._in_repository(
            spec.source_ref.kind, spec.source_ref.name, spec.chart, spec.version, namespace, f"{field}.sourceRef"
        )

    async def _in_repository(
        self, kind: str, name: str, chart: str, version: str, namespace: str, field: str
    ) -> Origin:
        if kind == GIT:
            at = Key(namespace, name)
            holder = Holder(GIT, at, chart, await find_checkout(self._client, at, f"{field}.name"))
            return Origin((GIT, at), holder=holder)
        if kind not in ("", "HelmRepository"):
            raise SourceError(f"{field}.kind: {kind} is not supported: {_UNSUPPORTED}")
        key = Key(namespace, name or REPOSITORY)
        found = await self._get(HelmRepository, key, f"{field}.name")
        spec = found.spec
        _check_provider(spec.provider, f"HelmRepository {key}")
        return Origin(
            ("HelmRepository", key),
            repository=spec.url,
            chart=chart,
            version=version,
            plain_http=spec.insecure or spec.url.startswith("http://"),
            pass_credentials=spec.pass_credentials,
            secret=Key(namespace, spec.secret_ref.name) if spec.secret_ref is not None else None,
            authority=Key(namespace, spec.cert_secret_ref.name) if spec.cert_secret_ref is not None else None,
        )

    async def _of_ref(self, ref: ChartRef, namespace: str, field: str) -> Origin:
        key = Key(ref.namespace or namespace, ref.name)
        if key.namespace not in (namespace, SYSTEM_NAMESPACE):
            raise SourceError(
                f"{field}.namespace: {key.namespace}: only {namespace} and {SYSTEM_NAMESPACE} can be used"
            )
        if ref.kind == "OCIRepository":
            return await self._of_artifact(key, field)
        if ref.kind != "HelmChart":
            raise SourceError(f"{field}.kind: {ref.kind} is not supported: {_UNSUPPORTED}")
        spec = (await self._get(HelmChart, key, f"{field}.name")).spec
        if spec.values_files:
            raise SourceError(f"HelmChart {key}: spec.valuesFiles is not supported: leave it out")
        at = f"HelmChart {key}: spec.sourceRef"
        version = "" if spec.version == "*" else spec.version
        return await self._in_repository(
            spec.source_ref.kind, spec.source_ref.name, spec.chart, version, key.namespace, at
        )

    async def _of_artifact(self, key: Key, field: str) -> Origin:
        spec = (await self._get(OCIRepository, key, f"{field}.name")).spec
        _check_provider(spec.provider, f"OCIRepository {key}")
        ref = spec.ref
        return _artifact(
            ("OCIRepository", key),
            spec.url,
            (ref.tag, ref.semver, ref.digest, ref.semver_filter) if ref is not None else ("", "", "", ""),
            plain_http=spec.insecure,
            secret=Key(key.namespace, spec.secret_ref.name) if spec.secret_ref is not None else None,
            authority=Key(key.namespace, spec.cert_secret_ref.name) if spec.cert_secret_ref is not None else None,
        )

    async def _of_source(self, source: SourceSpec, namespace: str, field: str) -> Origin:
        local, remote = source.local_source_ref, source.remote_source_spec
        if local is not None and local.kind == "OCIRepository":
            return await self._of_artifact(Key(namespace, local.name), f"{field}.localSourceRef")
        if remote is not None and remote.oci is not None:
            spec, ref = remote.oci, remote.oci.ref
            return _artifact(
                ("OCIRepository", Key(namespace, "")),
                spec.url,
                (ref.tag, ref.semver, ref.digest, ref.semver_filter) if ref is not None else ("", "", "", ""),
                plain_http=spec.insecure,
                secret=Key(namespace, spec.secret_ref.name) if spec.secret_ref is not None else None,
            )
        holder = await self.holder(source, namespace, field)
        return Origin((holder.kind, holder.key), holder=holder)

    async def holder(self, source: SourceSpec, namespace: str, field: str) -> Holder:
        """What holds the files of a template. Raises SourceError."""
        local, remote = source.local_source_ref, source.remote_source_spec
        if local is None and remote is not None and remote.git is not None:
            return Holder(GIT, Key(namespace, remote.git.url), source.path, written_checkout(remote.git, namespace))
        if local is not None and local.kind == GIT and local.namespace in ("", namespace):
            key = Key(namespace, local.name)
            return Holder(GIT, key, source.path, await find_checkout(self._client, key, f"{field}.localSourceRef.name"))
        return find_holder(source, namespace, field)

    # -- content -----------------------------------------------------------------------------------------------

    async def fetch(self, origin: Origin) -> FetchedChart:
        """From memory if nothing changed that can be seen from here: a version that is a range is asked for again."""
        if origin.holder is not None:
            return await self._held(origin.holder)
        account = await self._secret(origin.secret)
        authority = await self._secret(origin.authority)
        key = (str(origin), _identity(account), _identity(authority))
        if (known := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return known
        fetched = await self._source(origin, account, authority).fetch(self.location(origin))
        if fetched.version.removeprefix("v") == origin.version.removeprefix("v"):
            self._kept[key] = fetched
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return fetched

    async def files(self, holder: Holder, *, whole: bool = False) -> dict[str, bytes]:
        """By their names. Of a Git repository those of the path, or `whole`: all of them."""
        if holder.checkout is None:
            return held_files(await self.read(holder), holder.kind)
        tree = await self._trees.read(holder.checkout)
        return tree.below("" if whole else holder.path, str(holder))

    async def read(self, holder: Holder) -> dict[str, Any]:
        """The ConfigMap or Secret."""
        try:
            return await self._client.get(HELD[holder.kind], holder.key)
        except NotFound:
            raise SourceError(f"{holder} does not exist: create it") from None

    async def _held(self, holder: Holder) -> FetchedChart:
        if holder.checkout is not None:
            files = await self.files(holder)
        else:
            files = held_chart(await self.read(holder), holder.kind, holder.path)
        try:
            return FetchedChart(files, load_chart(files), ChartLocation(path=str(holder)))
        except ChartError as error:
            raise SourceError(f"{holder}: {error}") from None

    def location(self, origin: Origin) -> ChartLocation:
        found = locate(origin.address, origin.version, self._settings)
        if origin.digest and found.oci:
            return ChartLocation(oci=f"{found.oci}@{origin.digest}")
        return found

    def _source(self, origin: Origin, account: dict[str, Any] | None, authority: dict[str, Any] | None) -> ChartSource:
        credentials, ca = NONE, _ca(authority)
        if account is not None:
            ca = ca or _ca(account)
            credentials = _credentials(account, optional=ca is not None)
        trust = Trust(ca, origin.plain_http, dial=self._settings.dial)
        return ChartSource(credentials, trust, cache=self._settings.cache, pass_credentials=origin.pass_credentials)

    async def _secret(self, key: Key | None) -> dict[str, Any] | None:
        if key is None:
            return None
        try:
            return await self._client.get(SECRET, key)
        except NotFound:
            raise SourceError(f"Secret {key} of the repository does not exist: create it") from None

    async def _get(self, kind: type[O], key: Key, field: str) -> O:
        try:
            return await self._client.get(kind, key)
        except NotFound:
            raise SourceError(f"{field}: {kind.__resource__.kind} {key} does not exist: create it") from None


def find_holder(source: SourceSpec, namespace: str, field: str) -> Holder:
    """The ConfigMap or Secret that a template names. Raises SourceError for every other source."""
    local, remote = source.local_source_ref, source.remote_source_spec
    if local is None:
        kinds = [] if remote is None else [each for each in ("git", "bucket", "oci") if getattr(remote, each)]
        what = f"remoteSourceSpec.{kinds[0]}" if kinds else "remoteSourceSpec"
        raise SourceError(f"{field}.{what}: not supported: {_UNSUPPORTED}")
    if local.kind not in HELD:
        raise SourceError(f"{field}.localSourceRef.kind: {local.kind} is not supported: {_UNSUPPORTED}")
    if local.namespace not in ("", namespace):
        raise SourceError(
            f"{field}.localSourceRef.namespace: {local.namespace}: only the namespace of the template can be used"
        )
    return Holder(local.kind, Key(namespace, local.name), source.path)


def _artifact(named: tuple[str, Key], url: str, ref: tuple[str, str, str, str], **more: Any) -> Origin:
    tag, semver, digest, pattern = ref
    if pattern:
        raise SourceError(f"{named[0]} {named[1]}: ref.semverFilter is not supported: use ref.semver")
    repository, _, chart = url.rstrip("/").rpartition("/")
    return Origin(named, repository, chart, "" if digest else tag or semver, digest, **more)


def _check_provider(provider: str, where: str) -> None:
    if provider not in ("", "generic"):
        raise SourceError(f"{where}: spec.provider {provider} is not supported: use generic with a secretRef")


def _identity(secret: dict[str, Any] | None) -> str:
    meta = (secret or {}).get("metadata") or {}
    return f"{meta.get('uid', '')}/{meta.get('resourceVersion', '')}"


def _ca(secret: dict[str, Any] | None) -> bytes | None:
    text = "" if secret is None else decoded(secret).get("ca.crt", "")
    return text.encode() or None


def _credentials(secret: dict[str, Any], *, optional: bool) -> Credentials:
    try:
        return parse_credentials(secret)
    except SourceError:
        if optional:
            return NONE
        raise
