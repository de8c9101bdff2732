from __future__ import annotations

import datetime

import pytest
from cryptography import x509

from homeport.apiserver.auth import certificate as certs
from homeport.client.dial import DIRECT, DialOptions


def _authority() -> bytes:
    return certs.certificate_pem(certs.sign_ca(certs.make_key(), datetime.datetime.now(datetime.UTC)))


def test_by_default_everything_is_dialled_directly() -> None:
    assert DialOptions() == DIRECT
    assert DIRECT.proxy == ""


def test_what_the_manifest_trusts_is_trusted_beside_the_simulators_authority() -> None:
    bundle, own = _authority(), _authority()
    trusted = DialOptions(ca_pem=own).tls(bundle).get_ca_certs(binary_form=True)
    assert {x509.load_der_x509_certificate(each) for each in trusted} == {
        x509.load_pem_x509_certificate(bundle),
        x509.load_pem_x509_certificate(own),
    }


def test_without_simulation_only_the_bundle_is_trusted() -> None:
    assert len(DIRECT.tls(_authority()).get_ca_certs()) == 1


@pytest.mark.parametrize("bundle", [b"", b"not a certificate", "gr\u00fcn".encode()])
def test_a_bundle_without_certificates_is_refused(bundle: bytes) -> None:
    with pytest.raises(ValueError, match="contains no PEM certificate"):
        DIRECT.tls(bundle)
