"""String formats."""

from __future__ import annotations

import pytest

from homeport.machinery.schema.format import recognised, string_check

GOOD = {
    "date": ["2024-02-29", "0000-02-29"],
    "date-time": ["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20+01:00"],
    "ipv4": ["10.0.0.1", "010.000.0.1"],
    "ipv6": ["::1", "fe80::1", "::ffff:10.0.0.1"],
    "cidr": ["10.0.0.0/8", "fd00::/64", "010.0.0.0/8"],
    "mac": ["01:23:45:67:89:ab", "01-23-45-67-89-AB", "0123.4567.89ab"],
    "uuid": ["f3b0c3c0-0000-4000-8000-000000000000", "F3B0C3C000004000800000000000000A"],
    "uuid4": ["f3b0c3c0-0000-4000-8000-000000000000"],
    "hostname": ["example.com", "host", "a-b"],
    "uri": ["https://example.com/a?b=c", "/path", "urn:x:y"],
    "email": ["a@example.com", "Ann <a@example.com>"],
    "byte": ["YWJj", "YQ=="],
    "duration": ["1h30m", "22 ns", "3 days", "0"],
    "hexcolor": ["#fff", "FFFFFF"],
    "rgbcolor": ["rgb(1, 2,255)"],
    "isbn": ["0321751043", "978-0321751041"],
    "creditcard": ["4111 1111 1111 1111"],
    "ssn": ["123-45-6789"],
    "bsonobjectid": ["507f1f77bcf86cd799439011"],
    "k8s-short-name": ["a-b"],
    "k8s-long-name": ["a.b-c"],
    "password": ["anything"],
}
BAD = {
    "date": ["2023-02-29", "2023-2-1", "20230101", "2023-13-01", "２０２３-01-01"],
    "date-time": ["2014-12-15", "2014-12-15T25:00:00Z", "2014-12-15T10:00:00", "T"],
    "ipv4": ["10.0.0", "256.1.1.1", "::1"],
    "ipv6": ["10.0.0.1", "fe80::1%eth0", ":::"],
    "cidr": ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/x"],
    "mac": ["01:23:45:67:89", "01:23-45:67:89:ab", "xx:23:45:67:89:ab"],
    "uuid": ["f3b0c3c0", "g3b0c3c0-0000-4000-8000-000000000000"],
    "uuid4": ["f3b0c3c0-0000-5000-8000-000000000000"],
    "hostname": ["-a", "a_b", "a." + "b" * 70],
    "uri": ["example", "", "http://a b/", "%zz:"],
    "email": ["nobody", "@x"],
    "byte": ["YWJ", "Y!==", ""],
    "duration": ["soon", "1x"],
    "hexcolor": ["#ff"],
    "rgbcolor": ["rgb(1,2,256)"],
    "isbn": ["0321751044", "123"],
    "creditcard": ["4111 1111 1111 1112"],
    "ssn": ["123456789"],
    "bsonobjectid": ["507f"],
    "k8s-short-name": ["a.b", "A"],
    "k8s-long-name": ["a..b"],
}


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in GOOD.items() for t in texts])
def test_a_string_of_the_format_passes(name: str, text: str) -> None:
    check = string_check(name)
    assert check is not None
    assert check(text)


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in BAD.items() for t in texts])
def test_a_string_of_another_form_does_not(name: str, text: str) -> None:
    check = string_check(name)
    assert check is not None
    assert not check(text)


def test_a_format_means_something_only_for_its_own_type() -> None:
    assert recognised("integer", "int32") == "int32"
    assert recognised("integer", "date") == ""
    assert recognised("string", "int32") == ""
    assert recognised("string", "date-time") == "date-time"
    assert recognised("object", "date") == ""
