"""The stand-in on the wire: chart repositories (index.yaml) and the read-only part of the OCI distribution API."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import orjson

from homeport.machinery import yaml
from homeport.sim.engine.tls import DynamicCertificate
from homeport.sim.machine.workload.standin.wire import HttpsService, Message, Reply
from homeport.sim.network import Host, Network
from homeport.sim.registry.shelf import PublishedChart, Shelf, digest_of

PORT = 443
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.cncf.helm.config.v1+json"
_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_BINARY = "application/octet-stream"


class ChartRegistry(HttpsService):
    """A service of the network at every host of its shelf. `close` it."""

    def __init__(self, shelf: Shelf, certificate: DynamicCertificate, now: Callable[[], float]) -> None:
        super().__init__(certificate.context, self._respond)
        self.shelf = shelf
        self._certificate = certificate
        self._now = now

    def attach(self, network: Network) -> Host:
        """Answers for the hosts of the shelf from now on."""
        host = network.attach("registries")
        network.stand_in(PORT, host, self._admit, self.shelf.hosts())
        return host

    def _admit(self, dialled: str) -> ChartRegistry:
        self._certificate.admit(dialled)
        return self

    async def _respond(self, request: Message) -> Reply:
        method, path = request.start.split(" ")[0], request.path
        if method not in ("GET", "HEAD"):
            return Reply(405, _errors("UNSUPPORTED", "this registry is read-only"))
        host = request.headers.get("host", "").partition(":")[0].lower()
        return self._distribution(host, path) if path.startswith("/v2/") else self._repository(host, path)

    # -- chart repositories ------------------------------------------------------------------------------------

    def _repository(self, host: str, path: str) -> Reply:
        folder, _, file = path.rpartition("/")
        charts = self.shelf.within(f"https://{host}{folder}")
        if file == "index.yaml" and charts:
            return Reply(200, self._index(charts), {"content-type": "application/yaml"})
        for chart in charts:
            if file == f"{chart.name}-{chart.version}.tgz":
                return Reply(200, chart.archive(), {"content-type": _BINARY})
        return Reply(404, b"404: Not Found\n", {"content-type": "text/plain"})

    def _index(self, charts: list[PublishedChart]) -> bytes:
        made = datetime.datetime.fromtimestamp(self._now(), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        entries: dict[str, list[dict[str, object]]] = {}
        for chart in charts:
            metadata = chart.chart().metadata
            entry: dict[str, object] = {
                "apiVersion": "v2",
                "name": chart.name,
                "version": chart.version,
                "appVersion": metadata.app_version,
                "description": metadata.description,
                "created": made,
                "digest": digest_of(chart.archive()).removeprefix("sha256:"),
                "urls": [f"{chart.repository.rstrip('/')}/{chart.name}-{chart.version}.tgz"],
            }
            entries.setdefault(chart.name, []).append(entry)
        return yaml.dump({"apiVersion": "v1", "entries": entries, "generated": made}).encode()

    # -- the distribution API ----------------------------------------------------------------------------------

    def _distribution(self, host: str, path: str) -> Reply:
        if path == "/v2/":
            return Reply(200, b"{}", {"docker-distribution-api-version": "registry/2.0"})
        for marker in ("/manifests/", "/blobs/", "/tags/"):
            name, found, reference = path.removeprefix("/v2/").rpartition(marker)
            if found:
                return self._artifact(host, name, marker.strip("/"), reference)
        return Reply(404, _errors("NOT_FOUND", path))

    def _artifact(self, host: str, name: str, what: str, reference: str) -> Reply:
        folder, _, chart = name.rpartition("/")
        charts = [each for each in self.shelf.within(f"oci://{host}/{folder}") if each.name == chart]
        if not charts:
            return Reply(404, _errors("NAME_UNKNOWN", f"repository name not known to registry: {name}"))
        if what == "tags" and reference == "list":
            tags = [each.version.replace("+", "_") for each in charts]
            return Reply(200, orjson.dumps({"name": name, "tags": tags}))
        for each in charts:
            found = _blobs(each) if what == "blobs" else _manifests(each)
            if reference in found:
                content, kind = found[reference]
                return Reply(200, content, {"content-type": kind, "docker-content-digest": digest_of(content)})
        code = "BLOB_UNKNOWN" if what == "blobs" else "MANIFEST_UNKNOWN"
        return Reply(404, _errors(code, f"{name}: {reference} is not known"))


def _config(chart: PublishedChart) -> bytes:
    metadata = chart.chart().metadata
    found = {"name": chart.name, "version": chart.version, "appVersion": metadata.app_version, "apiVersion": "v2"}
    return orjson.dumps({**found, "description": metadata.description})


def _blobs(chart: PublishedChart) -> dict[str, tuple[bytes, str]]:
    config, archive = _config(chart), chart.archive()
    return {digest_of(config): (config, _CONFIG), digest_of(archive): (archive, _BINARY)}


def _manifests(chart: PublishedChart) -> dict[str, tuple[bytes, str]]:
    config, archive = _config(chart), chart.archive()

    def described(kind: str, content: bytes) -> dict[str, object]:
        return {"mediaType": kind, "digest": digest_of(content), "size": len(content)}

    manifest = orjson.dumps(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": described(_CONFIG, config),
            "layers": [described(_LAYER, archive)],
        }
    )
    return dict.fromkeys((chart.version.replace("+", "_"), digest_of(manifest)), (manifest, _MANIFEST))


def _errors(code: str, message: str) -> bytes:
    return orjson.dumps({"errors": [{"code": code, "message": message}]})
