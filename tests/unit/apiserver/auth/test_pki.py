from __future__ import annotations

import datetime
import ssl
import stat
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.certificate import host_names
from homeport.apiserver.auth.pki import PKI, PkiError, server_hosts, utc_now


def client_context(pki: PKI, path: Path | None = None) -> ssl.SSLContext:
    """Trusts the authority of `pki`; `path` is a file with a key and its certificate."""
    context = ssl.create_default_context(cadata=pki.ca_pem.decode())
    if path is not None:
        context.load_cert_chain(path)
    return context


ROOT_FILES = ("ca.key", "ca.crt", "sa.key", "secrets.key")
ALL_FILES = (*ROOT_FILES, "server.pem", "admin.pem")


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> bytes | None:
    """A TLS handshake in memory; gives the client's certificate as the server sees it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=host)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    done: set[ssl.SSLObject] = set()
    for _ in range(10):
        for side in (near, far):
            if side not in done:
                try:
                    side.do_handshake()
                    done.add(side)
                except ssl.SSLWantReadError:
                    continue
    assert len(done) == 2
    return far.getpeercert(binary_form=True)


def test_a_first_start_makes_files_that_only_the_owner_reads(tmp_path: Path) -> None:
    directory = tmp_path / "pki"
    PKI.ensure(directory)
    assert set(contents(directory)) == set(ALL_FILES)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    first = PKI.ensure(tmp_path)
    before = contents(tmp_path)
    second = PKI.ensure(tmp_path)
    assert contents(tmp_path) == before
    assert second.secrets_key == first.secrets_key
    assert len(second.secrets_key) == 32


def test_the_secrets_key_is_not_in_the_representation(tmp_path: Path) -> None:
    pki = PKI.ensure(tmp_path)
    assert repr(pki.secrets_key) not in repr(pki)


def test_client_and_server_trust_each_other_under_every_name(tmp_path: Path) -> None:
    pki = PKI.ensure(tmp_path, ["10.1.2.3", "homeport.example.org"])
    client = client_context(pki, pki.admin_path)
    for host in ("127.0.0.1", "::1", "localhost", "10.1.2.3", "homeport.example.org", "kubernetes.default.svc"):
        der = handshake(pki.server_context(), client, host)
        assert der is not None
        subject = x509.load_der_x509_certificate(der).subject.rfc4514_string()
        assert subject == "CN=kubernetes-admin,O=system:masters"


def test_a_client_needs_no_certificate(tmp_path: Path) -> None:
    pki = PKI.ensure(tmp_path)
    assert handshake(pki.server_context(), client_context(pki), "localhost") is None


def test_a_client_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    pki, other = PKI.ensure(tmp_path / "a"), PKI.ensure(tmp_path / "b")
    client = client_context(pki, other.admin_path)
    with pytest.raises(ssl.SSLError):
        handshake(pki.server_context(), client, "localhost")


def test_certificates_pass_the_strict_checks_of_newer_clients(tmp_path: Path) -> None:
    pki = PKI.ensure(tmp_path)
    client, server = client_context(pki, pki.admin_path), pki.server_context()
    for context in (client, server):
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    assert handshake(server, client, "localhost")


def test_old_protocols_are_refused(tmp_path: Path) -> None:
    assert PKI.ensure(tmp_path).server_context().minimum_version == ssl.TLSVersion.TLSv1_2


def test_the_server_certificate_follows_its_hosts(tmp_path: Path) -> None:
    PKI.ensure(tmp_path)
    before = contents(tmp_path)
    PKI.ensure(tmp_path, ["192.0.2.7"])
    after = contents(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {"server.pem"}
    assert "192.0.2.7" in host_names(x509.load_pem_x509_certificate(after["server.pem"]))


def test_certificates_near_expiry_are_renewed_and_the_authority_stays(tmp_path: Path) -> None:
    pki = PKI.ensure(tmp_path)
    before = contents(tmp_path)
    later = utc_now() + datetime.timedelta(days=340)
    pki.now = lambda: later
    assert pki.renew()
    after = contents(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {"server.pem", "admin.pem"}
    assert not pki.renew()


def test_a_running_context_serves_the_renewed_certificate(tmp_path: Path) -> None:
    pki = PKI.ensure(tmp_path)
    context = pki.server_context()
    pki.hosts = (*pki.hosts, "new.example.org")
    assert pki.renew()
    pki.load_server(context)
    handshake(context, client_context(pki), "new.example.org")


def test_an_interrupted_first_start_goes_on_where_it_stopped(tmp_path: Path) -> None:
    PKI.ensure(tmp_path)
    kept = contents(tmp_path)
    for name in ("ca.crt", "server.pem", "admin.pem"):
        (tmp_path / name).unlink()
    PKI.ensure(tmp_path)
    after = contents(tmp_path)
    assert {name: after[name] for name in ("ca.key", "sa.key", "secrets.key")} == {
        name: kept[name] for name in ("ca.key", "sa.key", "secrets.key")
    }


@pytest.mark.parametrize("name", ROOT_FILES)
def test_a_missing_file_is_an_error_and_nothing_is_replaced(tmp_path: Path, name: str) -> None:
    PKI.ensure(tmp_path)
    (tmp_path / name).unlink()
    before = contents(tmp_path)
    with pytest.raises(PkiError, match=f"{name}: missing.*backup"):
        PKI.ensure(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ALL_FILES)
@pytest.mark.parametrize("damage", [b"", b"rubbish", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_a_damaged_file_is_named_and_nothing_is_replaced(tmp_path: Path, name: str, damage: bytes) -> None:
    PKI.ensure(tmp_path)
    (tmp_path / name).write_bytes(damage)
    before = contents(tmp_path)
    with pytest.raises(PkiError, match=name):
        PKI.ensure(tmp_path)
    assert contents(tmp_path) == before


def test_a_key_of_another_authority_is_refused(tmp_path: Path) -> None:
    PKI.ensure(tmp_path / "a")
    PKI.ensure(tmp_path / "b")
    (tmp_path / "a" / "ca.key").write_bytes((tmp_path / "b" / "ca.key").read_bytes())
    with pytest.raises(PkiError, match=r"ca\.key: does not belong to ca\.crt"):
        PKI.ensure(tmp_path / "a")


def test_keys_are_not_regenerated_for_an_existing_database(tmp_path: Path) -> None:
    with pytest.raises(PkiError, match=r"secrets\.key: missing, though the database"):
        PKI.ensure(tmp_path / "pki", data_exists=True)


def test_an_expired_authority_names_the_cure_and_the_cure_works(tmp_path: Path) -> None:
    PKI.ensure(tmp_path)
    secrets = (tmp_path / "secrets.key").read_bytes()
    later = utc_now() + datetime.timedelta(days=3651)
    with pytest.raises(PkiError, match=r"ca\.crt: expired on .*move ca\.crt"):
        PKI.ensure(tmp_path, now=lambda: later)
    for name in ("ca.crt", "ca.key", "server.pem", "admin.pem"):
        (tmp_path / name).unlink()
    PKI.ensure(tmp_path, data_exists=True, now=lambda: later)
    assert (tmp_path / "secrets.key").read_bytes() == secrets


def test_certificates_that_are_not_valid_yet_are_issued_again(tmp_path: Path) -> None:
    """The clock was wrong when they were issued, and is right now."""
    PKI.ensure(tmp_path)
    authority = (tmp_path / "ca.crt").read_bytes()
    for name in ("server.pem", "admin.pem"):
        (tmp_path / name).unlink()
    PKI.ensure(tmp_path, now=lambda: utc_now() + datetime.timedelta(days=400))
    assert PKI.ensure(tmp_path).renew() is False
    for name in ("server.pem", "admin.pem"):
        leaf = x509.load_pem_x509_certificate((tmp_path / name).read_bytes())
        assert leaf.not_valid_before_utc <= utc_now(), name
    assert (tmp_path / "ca.crt").read_bytes() == authority


def test_an_authority_that_is_not_valid_yet_is_refused_with_both_cures(tmp_path: Path) -> None:
    PKI.ensure(tmp_path, now=lambda: utc_now() + datetime.timedelta(days=400))
    before = contents(tmp_path)
    with pytest.raises(PkiError, match=r"ca\.crt: not valid before .*set the clock; if it is right, move ca\.crt"):
        PKI.ensure(tmp_path)
    assert contents(tmp_path) == before


def test_loose_permissions_are_tightened(tmp_path: Path) -> None:
    PKI.ensure(tmp_path)
    (tmp_path / "ca.key").chmod(0o644)
    PKI.ensure(tmp_path)
    assert stat.S_IMODE((tmp_path / "ca.key").stat().st_mode) == 0o600


def test_the_kubeconfig_holds_everything_and_only_the_owner_reads_it(tmp_path: Path) -> None:
    pki = PKI.ensure(tmp_path / "pki")
    path = tmp_path / "kubeconfig"
    pki.write_kubeconfig(path, "https://127.0.0.1:6443")
    pki.write_kubeconfig(path, "https://127.0.0.1:6443")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
    assert config["current-context"] == config["contexts"][0]["name"]


def test_addresses_that_mean_everything_are_not_put_into_certificates() -> None:
    hosts = server_hosts("0.0.0.0", "::", "[::1]", "Example.ORG.", "bücher.example")
    assert "example.org" in hosts
    assert not {"0.0.0.0", "::", "bücher.example"} & set(hosts)
    assert len(hosts) == len(set(hosts))


def test_leaves_name_the_key_of_their_authority_as_it_does_itself() -> None:
    """Authorities made elsewhere name their keys in other ways: OpenSSL finds no issuer by a name that is not the same."""
    now = datetime.datetime.now(datetime.UTC)
    key = certs.make_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    authority = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier(b"of another method"), critical=False)
        .sign(key, hashes.SHA256())
    )
    made = certs.Issuer(authority, key).server(["127.0.0.1"], now)
    leaf = x509.load_pem_x509_certificate(made.certificate)
    found = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert found.key_identifier == b"of another method"
