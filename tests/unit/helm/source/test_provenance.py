"""Signatures of charts: what is accepted, and what is refused."""

from __future__ import annotations

import base64
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.helm.pgpkey import SigningKey
from homeport.helm.errors import SourceError
from homeport.helm.source.provenance import Keyring, parse_keyring

DIGEST = "sha256:" + "a" * 64
TEXT = f"name: buoy\nversion: 1.0.0   \n- dashed\n\n...\nfiles:\n  buoy-1.0.0.tgz: {DIGEST}"
KEY = SigningKey()
RING = parse_keyring(KEY.public_ring)


def test_a_signed_text_names_its_signer() -> None:
    assert RING.verify(KEY.sign(TEXT), DIGEST, "x") == KEY.fingerprint
    windows = KEY.sign(TEXT).replace(b"\n", b"\r\n")
    assert RING.verify(windows, DIGEST, "x") == KEY.fingerprint


def test_an_armored_keyring_and_a_secret_one_are_read() -> None:
    armored = f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{base64.encodebytes(KEY.public_ring).decode()}=AAAA\n-----END PGP PUBLIC KEY BLOCK-----\n"
    for content in (armored.encode(), KEY.secret_ring, SigningKey().public_ring + KEY.public_ring):
        assert parse_keyring(content).verify(KEY.sign(TEXT), DIGEST, "x") == KEY.fingerprint


@pytest.mark.parametrize(
    ("provenance", "text"),
    [
        (KEY.sign(TEXT).replace(b"1.0.0   ", b"1.0.1   "), "the text was changed after it was signed"),
        (KEY.sign(TEXT.replace("a" * 64, "b" * 64)), "does not name"),
        (KEY.sign("no digests"), "does not name"),
        (SigningKey().sign(TEXT), "is not in the keyring"),
        (KEY.sign(TEXT, weak=True), "SHA-256 or better is required"),
        (TEXT.encode(), "it is not a signed message"),
        (KEY.sign(TEXT).replace(b"-----END PGP SIGNATURE-----", b""), "it is not a signed message"),
    ],
)
def test_what_is_not_signed_well_is_refused(provenance: bytes, text: str) -> None:
    with pytest.raises(SourceError, match=text):
        RING.verify(provenance, DIGEST, "x")


def test_a_key_that_had_expired_does_not_sign() -> None:
    now = int(time.time())
    key = SigningKey(lifetime=3600, created=now - 7200)
    ring = parse_keyring(key.public_ring)
    assert ring.verify(key.sign(TEXT, when=now - 5400), DIGEST, "x") == key.fingerprint
    with pytest.raises(SourceError, match="had expired when it signed"):
        ring.verify(key.sign(TEXT, when=now), DIGEST, "x")


def test_a_revoked_key_does_not_sign() -> None:
    ring = parse_keyring(KEY.public_ring + KEY.revocation)
    with pytest.raises(SourceError, match="is revoked"):
        ring.verify(KEY.sign(TEXT), DIGEST, "x")


@given(st.binary(max_size=200))
def test_any_bytes_as_a_keyring_are_refused_in_words(content: bytes) -> None:
    with pytest.raises(SourceError):
        parse_keyring(content)


@given(st.binary(max_size=100), st.integers(0, 200))
def test_a_damaged_signature_is_refused_in_words(noise: bytes, at: int) -> None:
    armor = base64.encodebytes(base64.b64decode(_body(KEY.sign(TEXT)))[:at] + noise).decode()
    text = f"-----BEGIN PGP SIGNED MESSAGE-----\n\n{TEXT}\n-----BEGIN PGP SIGNATURE-----\n\n{armor}-----END PGP SIGNATURE-----\n"
    with pytest.raises(SourceError):
        Keyring(RING.keys).verify(text.encode(), DIGEST, "x")


def _body(provenance: bytes) -> str:
    return provenance.decode().partition("-----BEGIN PGP SIGNATURE-----\n\n")[2].partition("-----END")[0]
