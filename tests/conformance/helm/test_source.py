"""Charts that real Helm packaged, signed and pushed are fetched from a real registry, a repository and disk."""

from __future__ import annotations

import asyncio
import base64
import datetime
import functools
import http.server
import json
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from conformance.helm.pgpkey import USER, SigningKey
from homeport.helm.errors import SourceError
from homeport.helm.source.credential import Credential, Credentials
from homeport.helm.source.provenance import parse_keyring
from homeport.helm.source.reference import ChartLocation
from homeport.helm.source.source import ChartSource
from homeport.helm.source.wire import Trust
from realhelm import PASSWORD, USERNAME, Helm, Registry
from realkube import Authority

VERSIONS = ("1.0.0", "1.1.0", "1.2.0", "2.0.0-rc.1", "1.3.0+build.5")


@pytest.fixture(scope="session")
def key() -> SigningKey:
    return SigningKey()


@pytest.fixture(scope="session")
def packaged(programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, key: SigningKey) -> Path:
    """A folder of archives, the newest signed, and an index of them."""
    folder = tmp_path_factory.mktemp("charts")
    helm = Helm(programs["helm3"], folder / "home")
    helm.ok("create", "buoy", cwd=folder)
    (folder / "secring.gpg").write_bytes(key.secret_ring)
    made = folder / "made"
    for version in VERSIONS:
        signed = ("--sign", "--key", USER, "--keyring", str(folder / "secring.gpg")) if version == "1.2.0" else ()
        helm.ok("package", "buoy", "--version", version, "--destination", str(made), *signed, cwd=folder)
    helm.ok("repo", "index", str(made))
    return made


@pytest.fixture(scope="session")
def filled(
    programs: dict[str, Path], packaged: Path, tmp_path_factory: pytest.TempPathFactory, registry: Registry
) -> Registry:
    helm = Helm(programs["helm4"], tmp_path_factory.mktemp("home"))
    login = ("--username", USERNAME, "--password-stdin", "--ca-file", str(registry.ca))
    helm.ok("registry", "login", registry.host, *login, stdin=PASSWORD)
    for archive in sorted(packaged.glob("*.tgz")):
        helm.ok("push", str(archive), f"oci://{registry.host}/fleet", "--ca-file", str(registry.ca))
    return registry


def source_of(registry: Registry, password: str = PASSWORD, cache: Path | None = None) -> ChartSource:
    credentials = Credentials({registry.host: Credential(USERNAME, password)})
    return ChartSource(credentials, Trust(ca=registry.ca.read_bytes()), cache=cache)


def location(registry: Registry, version: str = "", tail: str = "") -> ChartLocation:
    return ChartLocation(oci=f"oci://{registry.host}/fleet/buoy{tail}", version=version)


@pytest.mark.parametrize(
    ("version", "chosen"),
    [("", "1.3.0+build.5"), ("1.1.x", "1.1.0"), (">=1.0.0 <1.2.0", "1.1.0"), ("1.2.0", "1.2.0"), (">=2.0.0-0", "2.0.0-rc.1")],
)  # fmt: skip
async def test_a_version_range_chooses_the_newest_tag(filled: Registry, version: str, chosen: str) -> None:
    assert (await source_of(filled).fetch(location(filled, version))).version == chosen


async def test_a_tag_and_a_digest_name_one_chart(filled: Registry) -> None:
    tagged = await source_of(filled).fetch(location(filled, tail=":1.1.0"))
    assert tagged.version == "1.1.0"
    shown = ChartLocation(oci=f"oci://{filled.host}/fleet/buoy", version="1.1.0", digest=tagged.digest)
    assert (await source_of(filled).fetch(shown)).digest == tagged.digest
    other = ChartLocation(oci=f"oci://{filled.host}/fleet/buoy", version="1.0.0", digest=tagged.digest)
    with pytest.raises(SourceError, match="it was changed after it was published"):
        await source_of(filled).fetch(other)


async def test_a_wrong_password_is_refused_and_not_shown(filled: Registry) -> None:
    with pytest.raises(SourceError, match="the credentials were refused") as refused:
        await source_of(filled, "wrong-pass-1").fetch(location(filled))
    assert "wrong-pass-1" not in str(refused.value)


async def test_no_password_is_answered_with_what_is_missing(filled: Registry) -> None:
    source = ChartSource(trust=Trust(ca=filled.ca.read_bytes()))
    with pytest.raises(SourceError, match="it needs credentials, and none were given"):
        await source.fetch(location(filled))


async def test_an_unknown_authority_is_refused(filled: Registry) -> None:
    source = ChartSource(source_of(filled).credentials)
    with pytest.raises(SourceError, match="its TLS certificate can't be verified"):
        await source.fetch(location(filled))


async def test_a_chart_that_does_not_exist_is_reported(filled: Registry) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        await source_of(filled).fetch(ChartLocation(oci=f"oci://{filled.host}/fleet/absent"))
    with pytest.raises(SourceError, match=r"no version matches '9.x'; the newest on offer are 2.0.0-rc.1, 1.3.0"):
        await source_of(filled).fetch(location(filled, "9.x"))


async def test_an_archive_is_kept_by_its_digest_and_not_asked_for_again(filled: Registry, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = await source_of(filled, cache=cache).fetch(location(filled, "1.1.0"))
    kept = next(iter(cache.iterdir()))
    assert kept.stat().st_mode & 0o777 == 0o600
    asked = filled.log().count(f"/blobs/{first.digest}")
    await source_of(filled, cache=cache).fetch(location(filled, "1.1.0"))
    assert filled.log().count(f"/blobs/{first.digest}") == asked
    kept.write_bytes(b"damaged")
    again = await source_of(filled, cache=cache).fetch(location(filled, "1.1.0"))
    assert again.digest == first.digest


async def test_a_signature_of_helm_is_verified(filled: Registry, key: SigningKey) -> None:
    source = source_of(filled)
    ring = parse_keyring(key.public_ring)
    signed = ChartSource(source.credentials, source.trust, keyring=ring)
    assert (await signed.fetch(location(filled, "1.2.0"))).signed_by == key.fingerprint
    with pytest.raises(SourceError, match="the chart has no provenance file"):
        await signed.fetch(location(filled, "1.1.0"))
    other = ChartSource(source.credentials, source.trust, keyring=parse_keyring(SigningKey().public_ring))
    with pytest.raises(SourceError, match="is not in the keyring"):
        await other.fetch(location(filled, "1.2.0"))


async def test_a_folder_of_archives_serves_without_a_network(packaged: Path, key: SigningKey) -> None:
    source = ChartSource(mirrors={"oci://registry.example.com/fleet": str(packaged)})
    fetched = await source.fetch(ChartLocation(oci="oci://registry.example.com/fleet/buoy:1.1.0"))
    assert fetched.version == "1.1.0"
    signed = ChartSource(keyring=parse_keyring(key.public_ring))
    found = await signed.fetch(ChartLocation(path=str(packaged), chart="buoy", version="~1.2"))
    assert found.signed_by == key.fingerprint


async def test_a_changed_archive_does_not_pass_for_the_signed_one(
    packaged: Path, key: SigningKey, tmp_path: Path
) -> None:
    (tmp_path / "buoy-1.2.0.tgz").write_bytes((packaged / "buoy-1.1.0.tgz").read_bytes())
    (tmp_path / "buoy-1.2.0.tgz.prov").write_bytes((packaged / "buoy-1.2.0.tgz.prov").read_bytes())
    signed = ChartSource(keyring=parse_keyring(key.public_ring))
    with pytest.raises(SourceError, match="which its signed provenance file does not name"):
        await signed.fetch(ChartLocation(path=str(tmp_path / "buoy-1.2.0.tgz")))
    text = (packaged / "buoy-1.2.0.tgz.prov").read_text().replace("version: 1.2.0", "version: 1.2.1")
    (tmp_path / "buoy-1.2.0.tgz.prov").write_text(text)
    with pytest.raises(SourceError, match="the text was changed after it was signed"):
        await signed.fetch(ChartLocation(path=str(tmp_path / "buoy-1.2.0.tgz")))


# -- a repository over HTTPS -----------------------------------------------------------------------------------------


class _Files(http.server.SimpleHTTPRequestHandler):
    asked: list[tuple[str, str]]

    def do_GET(self) -> None:
        wanted = "Basic " + base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != wanted:
            self.send_error(401)
            return
        super().do_GET()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def repository(packaged: Path, tmp_path: Path) -> Iterator[tuple[str, bytes]]:
    """Its address, and the authority of its certificate."""
    authority = Authority(tmp_path)
    serving = authority.issue("repository", serving=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Files, directory=str(packaged)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(serving.cert, serving.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}", authority.ca.read_bytes()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_repository_with_a_password_and_an_own_authority(
    repository: tuple[str, bytes], key: SigningKey, tmp_path: Path
) -> None:
    address, ca = repository
    login = Credentials({"": Credential(USERNAME, PASSWORD)})
    cache = tmp_path / "cache"
    source = ChartSource(login, Trust(ca=ca), cache=cache, keyring=parse_keyring(key.public_ring))
    fetched = await source.fetch(ChartLocation(repository=address, chart="buoy", version="~1.2.0"))
    assert (fetched.version, fetched.signed_by) == ("1.2.0", key.fingerprint)
    assert len(list(cache.iterdir())) == 1
    with pytest.raises(SourceError, match="is not in the repository"):
        await source.fetch(ChartLocation(repository=address, chart="absent"))
    anonymous = ChartSource(trust=Trust(ca=ca))
    with pytest.raises(SourceError, match="it needs credentials"):
        await anonymous.fetch(ChartLocation(repository=address, chart="buoy"))


# -- a registry that gives out tokens --------------------------------------------------------------------------------


class _Tokens(http.server.BaseHTTPRequestHandler):
    """What an authorization service does: a signed token for whoever knows the password."""

    key: ec.EllipticCurvePrivateKey
    chain: str
    asked: list[str]

    def do_GET(self) -> None:
        wanted = "Basic " + base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        self.asked.append(query.get("scope", [""])[0])
        if self.headers.get("Authorization") != wanted:
            self.send_error(401)
            return
        granted = [scope.split(":") for scope in query.get("scope", [])]  # a login asks for none
        now = int(datetime.datetime.now(datetime.UTC).timestamp())
        claims = {
            "iss": "tokens", "sub": USERNAME, "aud": "charts", "exp": now + 300, "nbf": now - 60, "iat": now, "jti": "1",
            "access": [{"type": kind, "name": name, "actions": actions.split(",")} for kind, name, actions in granted],
        }  # fmt: skip
        body = json.dumps({"token": self._signed(claims)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _signed(self, claims: dict[str, object]) -> str:
        def part(content: bytes) -> str:
            return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

        header = {"typ": "JWT", "alg": "ES256", "x5c": [self.chain]}
        text = f"{part(json.dumps(header).encode())}.{part(json.dumps(claims).encode())}"
        r, s = decode_dss_signature(self.key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{part(r.to_bytes(32) + s.to_bytes(32))}"

    def log_message(self, *args: object) -> None:
        pass


async def test_a_registry_with_tokens(programs: dict[str, Path], packaged: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    serving = authority.issue("tokens", serving=True)
    loaded = serialization.load_pem_private_key(serving.key.read_bytes(), None)
    assert isinstance(loaded, ec.EllipticCurvePrivateKey)
    certificate = x509.load_pem_x509_certificate(serving.cert.read_bytes())
    chain = base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()
    asked: list[str] = []
    handler = type("Tokens", (_Tokens,), {"key": loaded, "chain": chain, "asked": asked})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(serving.cert, serving.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    realm = f"https://127.0.0.1:{server.server_address[1]}/token"
    auth = {"token": {"realm": realm, "service": "charts", "issuer": "tokens", "rootcertbundle": str(authority.ca)}}
    try:
        with Registry(programs["registry"], auth=auth, authority=authority) as registry:
            helm = Helm(programs["helm3"], tmp_path / "home")
            login = ("--username", USERNAME, "--password-stdin", "--ca-file", str(registry.ca))
            helm.ok("registry", "login", registry.host, *login, stdin=PASSWORD)
            archive = str(packaged / "buoy-1.1.0.tgz")
            target = f"oci://{registry.host}/fleet"
            await asyncio.to_thread(helm.ok, "push", archive, target, "--ca-file", str(registry.ca))
            trust = Trust(ca=registry.ca.read_bytes())
            source = ChartSource(Credentials({registry.host: Credential(USERNAME, PASSWORD)}), trust)
            fetched = await source.fetch(location(registry, "1.x"))
            assert fetched.version == "1.1.0"
            assert "repository:fleet/buoy:pull" in asked
            wrong = ChartSource(Credentials({registry.host: Credential(USERNAME, "wrong-pass-1")}), trust)
            with pytest.raises(SourceError, match=r"no token from https://127.0.0.1.*the credentials were refused"):
                await wrong.fetch(location(registry, "1.x"))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
