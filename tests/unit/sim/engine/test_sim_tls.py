"""Certificates of simulated servers."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509

from homeport.runtime.clock import Clock, SystemClock
from homeport.sim.engine.tls import Authority


class Ahead(SystemClock):
    """Wrong by more than a year."""

    def now(self) -> float:
        return super().now() + 400 * 86400


def leaf(folder: Path, clock: Clock) -> x509.Certificate:
    Authority.ensure(folder, clock).context("server", ["localhost"], clock)
    return x509.load_pem_x509_certificate((folder / "server.pem").read_bytes())


def test_certificates_that_are_not_valid_yet_are_issued_again(tmp_path: Path) -> None:
    wrong, right = leaf(tmp_path, Ahead()), leaf(tmp_path, SystemClock())
    assert right.not_valid_before_utc.timestamp() <= SystemClock().now() < wrong.not_valid_before_utc.timestamp()
    authority = Authority.ensure(tmp_path, SystemClock()).certificate
    right.verify_directly_issued_by(authority)
    assert authority.not_valid_before_utc.timestamp() <= SystemClock().now()
    assert leaf(tmp_path, SystemClock()) == right
