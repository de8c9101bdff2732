"""What the stand-ins of programs share: their flags and files as they were given, and how they complain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.certificate import PrivateKey
from homeport.runtime.workload.runner import Launch
from homeport.sim.machine.shell.flag import parse_flags


class ProgramError(Exception):
    """The program ends: its last words."""


class Program:
    """One container's command line and files."""

    def __init__(
        self,
        launch: Launch,
        words: Sequence[str] | None = None,
        env: str = "",
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        """`env`: variables that begin so are flags, too, as for etcd (ETCD_DATA_DIR: --data-dir). `files`: more files
        than those that are mounted."""
        self.launch = launch
        given = {
            name.removeprefix(env).replace("_", "-").lower(): value
            for name, value in launch.env.items()
            if env and name.startswith(env)
        }
        self.flags: Mapping[str, str] = given | parse_flags(list(words if words is not None else launch.command[1:]))[1]
        self._files = {**(files or {}), **launch.files}

    def has(self, path: str) -> bool:
        return path in self._files

    def under(self, folder: str) -> list[str]:
        return sorted(path for path in self._files if path.startswith(f"{folder.rstrip('/')}/"))

    def with_flags(self, flags: Mapping[str, str]) -> Program:
        """The same files for another program."""
        made = Program(self.launch, (), files=self._files)
        made.flags = dict(flags)
        return made

    def flag(self, name: str, default: str = "") -> str:
        return self.flags.get(name, default)

    def number(self, name: str, default: int) -> int:
        text = self.flag(name) or str(default)
        if not text.isdigit():
            raise ProgramError(f'invalid argument "{text}" for "--{name}" flag: strconv.ParseInt: parsing "{text}"')
        return int(text)

    def switch(self, name: str) -> bool:
        return self.flag(name).lower() in ("true", "1", "t")

    def read(self, path: str) -> bytes:
        found = self._files.get(path)
        if found is None:
            raise ProgramError(f"open {path}: no such file or directory")
        return found

    def file(self, flag: str, *, required: bool = True) -> bytes:
        """The content of the file that a flag names."""
        path = self.flag(flag)
        if not path:
            if required:
                raise ProgramError(f"--{flag} is a required flag")
            return b""
        return self.read(path)

    def pair(self, certificate: str, key: str) -> tuple[x509.Certificate, PrivateKey]:
        """A certificate and its key, by their flags."""
        cert = parse_certificate(self.file(certificate), self.flag(certificate))
        private = parse_key(self.file(key), self.flag(key))
        if not certs.same_key(private, cert):
            raise ProgramError("tls: private key does not match public key")
        return cert, private


def parse_certificate(pem: bytes, path: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as broken:
        raise ProgramError(f"{path}: tls: failed to find any PEM data in certificate input") from broken


def parse_bundle(pem: bytes, path: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as broken:
        raise ProgramError(f"data does not contain any valid RSA or ECDSA certificates: {path}") from broken


def parse_key(pem: bytes, path: str) -> PrivateKey:
    try:
        return certs.load_private_key(pem)
    except (ValueError, TypeError) as broken:
        raise ProgramError(f"{path}: tls: failed to find any PEM data in key input") from broken


def signed_by(leaf: x509.Certificate, authorities: Sequence[x509.Certificate]) -> bool:
    for each in authorities:
        try:
            leaf.verify_directly_issued_by(each)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False
