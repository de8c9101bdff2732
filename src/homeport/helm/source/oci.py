"""Charts in OCI registries: tags, manifests with Helm's media types, blobs checked against their digests."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urljoin

import orjson

from homeport.helm.errors import SourceError
from homeport.helm.source.credential import Credential, Credentials
from homeport.helm.source.reference import OciReference, host_of
from homeport.helm.source.version import choose_version
from homeport.helm.source.wire import LARGEST_BYTES, Reply, Wire, shown

Json = dict[str, Any]

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
CONTENT: Final = ("application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip")
PROVENANCE: Final = "application/vnd.cncf.helm.chart.provenance.v1.prov"
_LARGEST_MANIFEST: Final = 4 << 20
_MOST_PAGES: Final = 100
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_CHALLENGE: Final = re.compile(r'([a-zA-Z]+)="((?:[^"\\]|\\.)*)"')
_NEXT: Final = re.compile(r'<([^>]+)>\s*;\s*rel="?next"?')


@dataclass(frozen=True, slots=True)
class Blob:
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class OciChart:
    """What a manifest says: the version that was chosen, and where its archive and provenance are."""

    reference: OciReference
    version: str
    manifest_digest: str
    archive: Blob
    provenance: Blob | None


class Registry:
    """One registry during one fetch."""

    def __init__(self, wire: Wire, scheme: str, reference: OciReference, credentials: Credentials) -> None:
        self._wire = wire
        self._root = f"{scheme}://{reference.host}/v2/{reference.path}"
        self._reference = reference
        self._credential = credentials.need(reference.host, reference.path)
        self._authorization = ""

    async def find(self, version: str) -> OciChart:
        """The chart that the reference and the version mean."""
        reference = self._reference
        if reference.digest:
            return await self._manifest(reference.digest, reference.tag)
        tag = reference.tag or await self._choose(version)
        return await self._manifest(tag.replace("+", "_"), tag)

    async def blob(self, blob: Blob) -> bytes:
        reply = await self._get(f"{self._root}/blobs/{blob.digest}", "*/*", blob.size)
        found = f"sha256:{hashlib.sha256(reply.body).hexdigest()}"
        if found != blob.digest:
            raise SourceError(
                f"{self._reference}: the registry sent content with digest {found} instead of {blob.digest}: "
                "it was changed on the way or in the registry"
            )
        return reply.body

    async def _choose(self, version: str) -> str:
        """Tags can't hold '+': Helm writes '_' for it."""
        exact = version.replace("+", "_")
        tags: list[str] = []
        url = f"{self._root}/tags/list?n=1000"
        for _ in range(_MOST_PAGES):
            reply = await self._get(url, "application/json", _LARGEST_MANIFEST)
            tags += [str(tag) for tag in _json(reply, str(self._reference)).get("tags") or ()]
            if exact in tags:
                return version
            following = _NEXT.search(reply.headers.get("Link", ""))
            if following is None:
                break
            url = urljoin(url, following[1])
            if host_of(url) != host_of(self._root):
                raise SourceError(
                    f"{self._reference}: the list of tags continues at another host, {shown(url)}: refused"
                )
        return choose_version([tag.replace("_", "+") for tag in tags], version, str(self._reference))

    async def _manifest(self, name: str, version: str, *, indexed: bool = False) -> OciChart:
        url = f"{self._root}/manifests/{quote(name, safe=':')}"
        reply = await self._get(url, f"{MANIFEST}, {INDEX}", _LARGEST_MANIFEST)
        digest = f"sha256:{hashlib.sha256(reply.body).hexdigest()}"
        wanted = name if name.startswith("sha256:") else reply.headers.get("Docker-Content-Digest", digest)
        if wanted.startswith("sha256:") and digest != wanted:
            raise SourceError(f"{self._reference}: its manifest has digest {digest} instead of {wanted}")
        manifest = _json(reply, str(self._reference))
        if "manifests" in manifest:
            if indexed:
                raise SourceError(f"{self._reference}: an index of the registry names another index: refused")
            return await self._manifest(self._of_index(manifest), version, indexed=True)
        return self._chart(manifest, version, digest)

    def _of_index(self, index: Json) -> str:
        for entry in index.get("manifests") or ():
            if isinstance(entry, dict) and entry.get("artifactType") == CONFIG:
                digest = str(entry.get("digest", ""))
                if not _DIGEST.fullmatch(digest):
                    raise SourceError(f"{self._reference}: an entry of its index has no valid digest")
                return digest
        raise SourceError(f"{self._reference} is an index of images without a Helm chart")

    def _chart(self, manifest: Json, version: str, digest: str) -> OciChart:
        config = manifest.get("config") or {}
        if config.get("mediaType") != CONFIG:
            raise SourceError(
                f"{self._reference} is not a Helm chart: its media type is {config.get('mediaType')!r} "
                f"instead of {CONFIG!r}"
            )
        layers = [each for each in manifest.get("layers") or () if isinstance(each, dict)]
        archives = [each for each in layers if each.get("mediaType") in CONTENT]
        if not archives:
            raise SourceError(f"{self._reference}: its manifest has no layer with a chart ({CONTENT[0]})")
        signed = [each for each in layers if each.get("mediaType") == PROVENANCE]
        return OciChart(
            self._reference, version, digest, self._blob(archives[0]), self._blob(signed[0]) if signed else None
        )

    def _blob(self, layer: Json) -> Blob:
        digest, size = str(layer.get("digest", "")), layer.get("size")
        if not _DIGEST.fullmatch(digest) or not isinstance(size, int) or size < 0:
            raise SourceError(f"{self._reference}: a layer of its manifest has no valid digest and size")
        if size > LARGEST_BYTES:
            raise SourceError(f"{self._reference}: a layer of its manifest is larger than {LARGEST_BYTES >> 20} MiB")
        return Blob(digest, size)

    async def _get(self, url: str, accept: str, limit: int) -> Reply:
        reply = await self._wire.get(url, self._headers(accept), limit)
        if reply.status == 401:
            if host_of(reply.url) != host_of(self._root):
                # Its challenge could name any place to send the credentials to, which are for the registry alone.
                raise SourceError(f"{self._reference}: {shown(reply.url)}, where it redirects to, wants credentials")
            await self._authenticate(reply)
            reply = await self._wire.get(url, self._headers(accept), limit)
        if reply.status == 200:
            return reply
        raise self._refused(reply)

    def _headers(self, accept: str) -> dict[str, str]:
        headers = {"Accept": accept}
        if self._authorization:
            headers["Authorization"] = self._authorization
        return headers

    def _refused(self, reply: Reply) -> SourceError:
        where = str(self._reference)
        if reply.status in (401, 403):
            known = "the credentials were refused" if self._credential else "it needs credentials, and none were given"
            return SourceError(f"{where}: {known} (HTTP {reply.status})")
        if reply.status == 404:
            return SourceError(f"{where} does not exist (HTTP 404): check the name and the version")
        return SourceError(f"{where}: the registry answered HTTP {reply.status}", transient=reply.status >= 429)

    async def _authenticate(self, refused: Reply) -> None:
        challenge = refused.headers.get("WWW-Authenticate", "")
        scheme, _, rest = challenge.partition(" ")
        if scheme.lower() == "basic":
            if self._credential is None or not self._credential.username or self._authorization:
                raise self._refused(refused)
            self._authorization = self._credential.basic
        elif scheme.lower() == "bearer":
            self._authorization = f"Bearer {await self._token(dict(_CHALLENGE.findall(rest)))}"
        else:
            raise SourceError(f"{self._reference}: the registry asks for authentication {scheme!r}, which is not known")

    async def _token(self, challenge: dict[str, str]) -> str:
        """The registry names the realm, which is asked over TLS with the credentials meant for the registry."""
        realm = challenge.get("realm", "")
        scope = challenge.get("scope") or f"repository:{self._reference.path}:pull"
        query = {"service": challenge.get("service", ""), "scope": scope}
        reply = await self._ask(realm, {name: value for name, value in query.items() if value})
        if reply.status != 200:
            known = "the credentials were refused" if self._credential else "it needs credentials, and none were given"
            why = known if reply.status in (400, 401, 403) else f"it answered HTTP {reply.status}"
            raise SourceError(f"{self._reference}: no token from {shown(realm)}: {why}", transient=reply.status >= 429)
        answer = _json(reply, shown(realm))
        token = answer.get("token") or answer.get("access_token")
        if not isinstance(token, str) or not token or not token.isprintable():
            raise SourceError(f"{self._reference}: the answer of {shown(realm)} holds no token")
        return token

    async def _ask(self, realm: str, query: dict[str, str]) -> Reply:
        """With an identity token, as OAuth2 has it; otherwise with the password."""
        credential = self._credential
        if credential is not None and credential.identity_token:
            more = {"grant_type": "refresh_token", "client_id": "homeport", "refresh_token": credential.identity_token}
            return await self._wire.post(realm, {**query, **more}, _LARGEST_MANIFEST)
        separator = "&" if "?" in realm else "?"
        return await self._wire.get(f"{realm}{separator}{urlencode(query)}", _basic(credential), _LARGEST_MANIFEST)


def _basic(credential: Credential | None) -> dict[str, str]:
    return {"Authorization": credential.basic} if credential is not None and credential.username else {}


def _json(reply: Reply, where: str) -> Json:
    try:
        found = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise SourceError(f"{where}: the answer is not a JSON object; is this the address of a registry?")
    return found
