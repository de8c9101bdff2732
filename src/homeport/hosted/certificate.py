"""Certificates of a hosted control plane: what they say, and when they must be made again. Pure.

Authorities are made once, with `capi.remote.pki.generate`, and never replaced behind a user's back: every node trusts
them. What they sign is renewed before it expires.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from cryptography import x509
from cryptography.x509.oid import NameOID

from homeport.apiserver.auth import certificate as certs
from homeport.capi.remote.pki import KeyPair, client_certificate, moment

DAY_SECONDS = 86400.0
RENEW_DAYS = 30  # before expiry; of short-lived certificates a third of their time


def sign_server(ca: KeyPair, hosts: Iterable[str], *, now: float, days: int = certs.LEAF_DAYS) -> KeyPair:
    """A serving certificate. Names and addresses appear once, in a fixed order."""
    made = ca.issuer().server(sorted(set(hosts)), moment(now), days=days)
    return KeyPair(made.certificate, made.key)


def sign_peer(ca: KeyPair, name: str, hosts: Iterable[str], *, now: float, days: int = certs.LEAF_DAYS) -> KeyPair:
    """Of a member of etcd: a server, and a client of the other members."""
    made = ca.issuer().peer(name, sorted(set(hosts)), moment(now), days=days)
    return KeyPair(made.certificate, made.key)


def sign_client(
    ca: KeyPair, user: str, groups: Sequence[str] = (), *, now: float, days: int = certs.LEAF_DAYS
) -> KeyPair:
    return client_certificate(ca, user, groups, now=now, days=days)


def stale_server(pair: KeyPair, ca: KeyPair, hosts: Iterable[str], *, now: float) -> str:
    """Why a serving certificate must be made again; '' if it is good."""
    found = _load(pair)
    if found is None:
        return "it is not a certificate with its key"
    known = certs.host_names(found)
    if missing := sorted({_normal(each) for each in hosts} - known):
        return f"it is not valid for {', '.join(missing)}"
    return _stale(found, ca, now)


def stale_client(pair: KeyPair, ca: KeyPair, user: str, groups: Sequence[str] = (), *, now: float) -> str:
    found = _load(pair)
    if found is None:
        return "it is not a certificate with its key"
    if subject(found) != (user, frozenset(groups)):
        return "it is for another user"
    return _stale(found, ca, now)


def subject(certificate: x509.Certificate) -> tuple[str, frozenset[str]]:
    """User and groups, as an API server reads them."""
    user = [str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    return (user[0] if user else ""), frozenset(groups)


def renew_at(pem: bytes) -> float:
    """When (seconds since the epoch) a certificate is due."""
    found = x509.load_pem_x509_certificate(pem)
    start, end = found.not_valid_before_utc.timestamp(), found.not_valid_after_utc.timestamp()
    return end - min(RENEW_DAYS * DAY_SECONDS, (end - start) / 3)


def _stale(found: x509.Certificate, ca: KeyPair, now: float) -> str:
    authority = x509.load_pem_x509_certificate(ca.certificate)
    try:
        found.verify_directly_issued_by(authority)
    except Exception:  # the library raises several kinds, one of which is TypeError
        return "another CA signed it"
    if found.not_valid_before_utc > moment(now):
        return "it is not valid yet: the clock was probably wrong when it was issued"
    if now >= renew_at(certs.certificate_pem(found)):
        return f"it expires on {found.not_valid_after_utc:%Y-%m-%d}"
    return ""


def _load(pair: KeyPair) -> x509.Certificate | None:
    try:
        found = x509.load_pem_x509_certificate(pair.certificate)
        key = certs.load_private_key(pair.key)
    except (ValueError, TypeError):
        return None
    return found if certs.same_key(key, found) else None


def _normal(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host


def api_server_hosts(
    service: str, namespace: str, *, endpoint: str, service_cidr: str, domain: str, extra: Iterable[str] = ()
) -> list[str]:
    """Names and addresses under which an API server is reached: inside its Pod, beside it, from nodes and from Pods."""
    within = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{domain}"]
    beside = [f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local"]
    first = [str(nth_address(each, 1)) for each in service_cidr.split(",") if each]
    found = ["localhost", "127.0.0.1", *within, *beside, *first, endpoint, *extra]
    return list(dict.fromkeys(_normal(each) for each in found if each))


def nth_address(cidr: str, number: int) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The first address of a Service network is the API server's; the tenth (16th of IPv6) is the cluster DNS's."""
    return ipaddress.ip_network(cidr.strip(), strict=False)[number]
