"""Keys, certificates and passwords. Those that are random are the same for every rendering of a release."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from homeport.machinery.chart.function.blowfish import hashed
from homeport.machinery.chart.function.chance import Chance, Stream
from homeport.machinery.chart.function.prime import rsa_key
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import Function, functions
from homeport.machinery.gotemplate.value import Struct, octets, text_of, type_of
from homeport.machinery.keyusage import key_usage

_MOST_KEYS: Final = 40
_MOST_HASHES: Final = 10
_P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_DERIVED: Final = b"com.lyndir.masterpassword"
_FORMS: Final = {
    "maximum": ("anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"),
    "long": (
        "CvcvnoCvcvCvcv", "CvcvCvcvnoCvcv", "CvcvCvcvCvcvno", "CvccnoCvcvCvcv", "CvccCvcvnoCvcv", "CvccCvcvCvcvno",
        "CvcvnoCvccCvcv", "CvcvCvccnoCvcv", "CvcvCvccCvcvno", "CvcvnoCvcvCvcc", "CvcvCvcvnoCvcc", "CvcvCvcvCvccno",
        "CvccnoCvccCvcv", "CvccCvccnoCvcv", "CvccCvccCvcvno", "CvcvnoCvccCvcc", "CvcvCvccnoCvcc", "CvcvCvccCvccno",
        "CvccnoCvcvCvcc", "CvccCvcvnoCvcc", "CvccCvcvCvccno",
    ),
    "medium": ("CvcnoCvc", "CvcCvcno"),
    "short": ("Cvcn",),
    "basic": ("aaanaaan", "aannaaan", "aaannaaa"),
    "pin": ("nnnn",),
}  # fmt: skip
_LETTERS: Final = {
    "C": "BCDFGHJKLMNPQRSTVWXYZ",
    "v": "aeiou",
    "c": "bcdfghjklmnpqrstvwxyz",
    "a": "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
    "n": "0123456789",
    "o": "@&%?,=[]_:-+*$#!'^~;()/.",
    "x": "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
}

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


class Certificate(Struct):
    """What the functions give: .Cert and .Key, both PEM."""

    type_name = "sprig.certificate"

    def __init__(self, cert: str, key: str) -> None:
        super().__init__({"Cert": cert, "Key": key}, {"Cert": "Cert", "Key": "Key"})


class Keys:
    """`now` dates the certificates; the keys don't depend on it."""

    def __init__(self, chance: Chance, now: datetime) -> None:
        self._chance = chance
        self._now = now
        self._keys = 0
        self._hashes = 0

    def functions(self) -> dict[str, Function]:
        return functions(
            {
                "genPrivateKey": ("string", self._private_key),
                "genCA": ("string int", lambda name, days: self._authority("genCA", name, days)),
                "genCAWithKey": ("string int string", lambda *given: self._authority("genCAWithKey", *given)),
                "genSelfSignedCert": ("string any any int", lambda *given: self._signed("genSelfSignedCert", *given)),
                "genSelfSignedCertWithKey": (
                    "string any any int string",
                    lambda *given: self._signed("genSelfSignedCertWithKey", *given[:4], key=given[4]),
                ),
                "genSignedCert": (
                    "string any any int any",
                    lambda *given: self._signed("genSignedCert", *given[:4], authority=given[4]),
                ),
                "genSignedCertWithKey": (
                    "string any any int any string",
                    lambda *given: self._signed("genSignedCertWithKey", *given[:4], authority=given[4], key=given[5]),
                ),
                "buildCustomCert": ("string string", custom),
                "bcrypt": ("string", self._bcrypt),
                "htpasswd": ("string string", self._htpasswd),
                "encryptAES": ("string string", self._encrypted),
                "decryptAES": ("string string", decrypted),
                "derivePassword": ("int string string string string", self._derived),
            }
        )

    # -- keys ------------------------------------------------------------------------------------------------------

    def _count(self) -> None:
        self._keys += 1
        if self._keys > _MOST_KEYS:
            raise CallError(f"a chart makes at most {_MOST_KEYS} keys")

    def _private_key(self, kind: str) -> str:
        self._count()
        stream = self._chance.stream("genPrivateKey", kind)
        if kind in ("", "rsa"):
            return _pem(rsa_key(stream.read(32)))
        if kind == "ecdsa":
            return _pem(ec.derive_private_key(1 + stream.below(_P256_ORDER - 1), ec.SECP256R1()))
        if kind == "ed25519":
            return _pem(ed25519.Ed25519PrivateKey.from_private_bytes(stream.read(32)))
        if kind == "dsa":
            raise CallError("keys of the kind dsa are outdated and can't be made: use rsa, ecdsa or ed25519")
        return f"Unknown type {kind}"

    # -- certificates ----------------------------------------------------------------------------------------------

    def _authority(self, function: str, name: str, days: int, key: str = "") -> Certificate:
        stream = self._chance.stream(function, name, days)
        private = _read_key(key) if key else self._new_key(stream)
        made = self._builder(stream, name, days, private)
        made = made.add_extension(key_usage(key_encipherment=True, key_cert_sign=True), critical=True).add_extension(
            _PURPOSE, critical=False
        )
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
        return _finished(made.issuer_name(_subject(name)), private, private)

    def _signed(
        self, function: str, name: str, addresses: Any, names: Any, days: int, *, authority: Any = None, key: str = ""
    ) -> Certificate:
        stream = self._chance.stream(function, name, addresses, names, days)
        alternatives = [*map(_address, _listed(addresses)), *map(_dns_name, _listed(names))]
        private = _read_key(key) if key else self._new_key(stream)
        made = self._builder(stream, name, days, private)
        made = made.add_extension(key_usage(key_encipherment=True), critical=True).add_extension(
            _PURPOSE, critical=False
        )
        made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        if alternatives:
            made = made.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        if function.startswith("genSelf"):
            return _finished(made.issuer_name(_subject(name)), private, private)
        if not isinstance(authority, Certificate):
            raise CallError(f"a certificate of genCA is needed, not {type_of(authority)}")
        issuer, signer = _read_certificate(authority.fields["Cert"]), _read_key(authority.fields["Key"])
        try:
            known = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
            identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known)
            made = made.add_extension(identifier, critical=False)
        except x509.ExtensionNotFound:
            pass
        return _finished(made.issuer_name(issuer.subject), private, signer)

    def _new_key(self, stream: Stream) -> PrivateKey:
        self._count()
        return rsa_key(stream.read(32))

    def _builder(self, stream: Stream, name: str, days: int, private: PrivateKey) -> x509.CertificateBuilder:
        """Dated by halves of its validity, so that it is renewed in time but stays the same in between."""
        if not 0 < days <= 365 * 1000:
            raise CallError(f"a certificate can't be valid for {days} days")
        half = timedelta(days=days) / 2
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        start = epoch + (self._now - epoch) // half * half
        start = start.replace(microsecond=0)
        digest = hashlib.sha256(stream.read(16) + str(start).encode()).digest()
        try:
            return (
                x509.CertificateBuilder()
                .subject_name(_subject(name))
                .public_key(private.public_key())
                .serial_number(int.from_bytes(digest[:16], "big") >> 1 or 1)
                .not_valid_before(start)
                .not_valid_after(start + timedelta(days=days))
            )
        except (ValueError, OverflowError) as wrong:
            raise CallError(f"the certificate of {name!r} can't be made: {wrong}") from None

    # -- passwords -------------------------------------------------------------------------------------------------

    def _count_hash(self) -> None:
        """Hashes of passwords take long on purpose."""
        self._hashes += 1
        if self._hashes > _MOST_HASHES:
            raise CallError(
                f"a chart makes at most {_MOST_HASHES} hashes of passwords (bcrypt, htpasswd, derivePassword)"
            )

    def _derived(self, counter: int, form: str, password: str, user: str, site: str) -> str:
        self._count_hash()
        return derived(counter, form, password, user, site)

    def _bcrypt(self, text: str) -> str:
        self._count_hash()
        raw = octets(text)
        if len(raw) > 72:
            return "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
        salt = self._chance.stream("bcrypt", hashlib.sha256(raw).hexdigest()).read(16)
        return hashed(raw, salt)

    def _htpasswd(self, user: str, password: str) -> str:
        return f"invalid username: {user}" if ":" in user else f"{user}:{self._bcrypt(password)}"

    def _encrypted(self, password: str, text: str) -> str:
        if not text:
            return ""
        raw = octets(text)
        vector = self._chance.stream("encryptAES", hashlib.sha256(raw).hexdigest()).read(16)
        padding = 16 - len(raw) % 16
        cipher = Cipher(algorithms.AES(_aes_key(password)), modes.CBC(vector)).encryptor()
        return base64.b64encode(vector + cipher.update(raw + bytes([padding]) * padding) + cipher.finalize()).decode()


_PURPOSE: Final = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])


def _subject(name: str) -> x509.Name:
    # The library limits names to 64 characters; Go does not.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name, _validate=False)] if name else [])


def _finished(builder: x509.CertificateBuilder, private: PrivateKey, signer: PrivateKey) -> Certificate:
    algorithm = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    exact = True if isinstance(signer, ec.EllipticCurvePrivateKey) else None
    try:
        made = builder.sign(signer, algorithm, ecdsa_deterministic=exact)
    except ValueError as wrong:
        raise CallError(f"the certificate can't be made: {wrong}") from None
    return Certificate(made.public_bytes(serialization.Encoding.PEM).decode(), _pem(private))


def _pem(key: PrivateKey) -> str:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    if isinstance(key, ed25519.Ed25519PrivateKey):
        form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def _read_key(text: str) -> PrivateKey:
    try:
        found = serialization.load_pem_private_key(octets(text), None)
    except (ValueError, TypeError):
        raise CallError("the private key can't be read: expected PEM without a password") from None
    if not isinstance(found, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey):
        raise CallError("the private key is of a kind that can't be used: expected rsa, ecdsa or ed25519")
    return found


def _read_certificate(text: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(octets(text))
    except ValueError:
        raise CallError("the certificate can't be read: expected PEM") from None


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise CallError(f"a list is needed, not {type_of(value)}")
    return value


def _address(value: Any) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(value if isinstance(value, str) else "none"))
    except ValueError:
        raise CallError("an IP address of the certificate is not valid") from None


def _dns_name(value: Any) -> x509.GeneralName:
    if not isinstance(value, str) or not value.isascii():
        raise CallError("a DNS name of the certificate is not valid")
    return x509.DNSName(value)


def custom(cert: str, key: str) -> Certificate:
    """From base64 of PEM."""
    try:
        made = Certificate(*(text_of(base64.b64decode(octets(each), validate=True)) for each in (cert, key)))
    except binascii.Error:
        raise CallError("the certificate or its key is not valid base64") from None
    _read_certificate(made.fields["Cert"])
    _read_key(made.fields["Key"])
    return made


def _aes_key(password: str) -> bytes:
    return octets(password)[:32].ljust(32, b"\0")


def decrypted(password: str, text: str) -> str:
    if not text:
        return ""
    try:
        raw = base64.b64decode(octets(text), validate=True)
    except binascii.Error:
        raise CallError("the text is not valid base64") from None
    if len(raw) < 32 or len(raw) % 16:
        raise CallError("the text was not made by encryptAES")
    cipher = Cipher(algorithms.AES(_aes_key(password)), modes.CBC(raw[:16])).decryptor()
    plain = cipher.update(raw[16:]) + cipher.finalize()
    return text_of(plain[: len(plain) - plain[-1]])


def derived(counter: int, form: str, password: str, user: str, site: str) -> str:
    if form not in _FORMS:
        return f"cannot find password template {form}"
    name, place = octets(user), octets(site)
    salt = _DERIVED + len(name).to_bytes(4, "big") + name
    key = hashlib.scrypt(octets(password), salt=salt, n=32768, r=8, p=2, maxmem=1 << 27, dklen=64)
    message = _DERIVED + len(place).to_bytes(4, "big") + place + (counter & 0xFFFFFFFF).to_bytes(4, "big")
    seed = hmac.digest(key, message, "sha256")
    chosen = _FORMS[form][seed[0] % len(_FORMS[form])]
    return "".join(_LETTERS[kind][seed[i + 1] % len(_LETTERS[kind])] for i, kind in enumerate(chosen))
