"""Random functions, keys and times: the same for every rendering of a release, and of no use without its seed."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509

from homeport.machinery.chart import ChartError, ReleaseInfo, load_chart, render
from homeport.machinery.chart.function.blowfish import hashed

HEAD = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: made\ndata:\n"
NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def data(template: str, more: str = "", **release: Any) -> dict[str, Any]:
    given = {"name": "web", "namespace": "shop", "time": NOW, "seed": b"secret", **release}
    files = {
        "Chart.yaml": b"apiVersion: v2\nname: demo\nversion: 1.0.0\n",
        "templates/made.yaml": (HEAD + template).encode(),
        "templates/_h.tpl": (more or '{{ define "pw" }}{{ randAlphaNum 20 }}{{ end }}').encode(),
    }
    made: dict[str, Any] = render(load_chart(files), {}, ReleaseInfo(**given)).manifests[0].object["data"]
    return made


PASSWORDS = '  a: {{ randAlphaNum 20 }}\n  b: {{ randAlphaNum 20 }}\n  c: {{ uuidv4 }}\n  d: {{ include "pw" . }}\n  e: {{ include "pw" . }}\n'


def test_passwords_are_the_same_for_every_rendering_and_revision() -> None:
    first = data(PASSWORDS)
    assert len(set(first.values())) == 5
    assert data(PASSWORDS) == first
    assert data(PASSWORDS, revision=7, is_install=False, is_upgrade=True, time=NOW + timedelta(days=9)) == first


def test_a_line_more_in_the_file_makes_no_other_password() -> None:
    assert data("  z: x\n# more\n" + PASSWORDS)["a"] == data(PASSWORDS)["a"]


@pytest.mark.parametrize("other", [{"name": "api"}, {"namespace": "other"}, {"seed": b"another"}])
def test_another_release_has_other_passwords(other: dict[str, Any]) -> None:
    assert not set(data(PASSWORDS).values()) & set(data(PASSWORDS, **other).values())


@pytest.mark.parametrize(
    "call", ["randAlphaNum 5", "uuidv4", '(genCA "x" 5).Cert', 'bcrypt "x"', 'genPrivateKey "rsa"']
)
def test_nothing_secret_is_made_without_a_seed(call: str) -> None:
    with pytest.raises(ChartError, match=r"demo/templates/made\.yaml, line 6: .*needs the secret seed"):
        data(f"  a: {{{{ {call} }}}}\n", seed=b"")


CERTIFICATES = """  {{- $ca := genCA "ca" 100 }}
  {{- $cert := genSignedCert "web" (list "10.0.0.1") (list "web.local") 100 $ca }}
  ca: {{ b64enc $ca.Cert }}
  cert: {{ b64enc $cert.Cert }}
  key: {{ b64enc $cert.Key }}
"""


def loaded(text: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(text))


def test_a_certificate_is_signed_by_its_authority_and_valid_now() -> None:
    made = data(CERTIFICATES)
    authority, certificate = loaded(made["ca"]), loaded(made["cert"])
    certificate.verify_directly_issued_by(authority)
    assert certificate.not_valid_before_utc <= NOW < certificate.not_valid_after_utc
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == timedelta(days=100)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["web.local"]


def test_a_certificate_stays_the_same_until_half_of_its_validity_is_over() -> None:
    first = data(CERTIFICATES)
    certificate = loaded(first["cert"])
    renewed = certificate.not_valid_before_utc + timedelta(days=50)
    assert data(CERTIFICATES, time=renewed - timedelta(seconds=1)) == first
    later = data(CERTIFICATES, time=renewed)
    assert later["key"] == first["key"]
    assert loaded(later["cert"]).not_valid_before_utc == renewed


def test_now_is_the_time_of_the_release() -> None:
    made = data('  a: {{ now | date "2006-01-02 15:04" | quote }}\n  b: {{ now.Unix | quote }}\n', seed=b"")
    assert made == {"a": "2026-03-01 12:30", "b": str(int(NOW.timestamp()))}


def test_a_time_without_a_zone_is_utc() -> None:
    made = data(
        '  a: {{ now.Unix | quote }}\n  b: {{ (genCA "x" 9).Cert | len | quote }}\n', time=NOW.replace(tzinfo=None)
    )
    assert made["a"] == str(int(NOW.timestamp()))


def test_hashes_are_those_of_bcrypt() -> None:
    """Of the published test vectors."""
    assert (
        hashed(b"U*U", b"\x10\x41\x04" * 5 + b"\x10", 5)
        == "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
    )


def test_a_chart_makes_a_limited_number_of_keys() -> None:
    with pytest.raises(ChartError, match="at most 40 keys"):
        data('  a: {{ range until 50 }}{{ genPrivateKey "ed25519" | len }}{{ end }}\n')
