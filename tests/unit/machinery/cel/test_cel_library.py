"""Function libraries."""

from __future__ import annotations

import time
from typing import Any

import pytest

from homeport.machinery.cel import DYN, STRING, CelError, compile

HOLDS = [
    # strings
    "'gopher'.charAt(3) == 'h' && 'gopher'.charAt(6) == ''",
    "'banana'.indexOf('an') == 1 && 'banana'.indexOf('an', 2) == 3 && 'banana'.indexOf('x') == -1",
    "'banana'.lastIndexOf('an') == 3 && 'banana'.lastIndexOf('an', 2) == 1 && 'a'.indexOf('', 9) == 1",
    "'ÄbC'.lowerAscii() == 'Äbc' && 'äbc'.upperAscii() == 'äBC'",
    "'a-b-c'.replace('-', '') == 'abc' && 'a-b-c'.replace('-', '+', 1) == 'a+b-c'",
    "'abc'.replace('', '.') == '.a.b.c.' && 'aa'.replace('a', 'b', 0) == 'aa'",
    "'a,b,,c'.split(',') == ['a', 'b', '', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
    "'äb'.split('') == ['ä', 'b'] && 'abc'.split('', 2) == ['a', 'bc'] && 'a'.split(',', 0) == []",
    "'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco'",
    "' \\t\\u00a0trimmed\\n'.trim() == 'trimmed' && '\\u200bx'.trim() == '\\u200bx'",
    "['a', 'b'].join() == 'ab' && ['a', 'b'].join('::') == 'a::b' && [].join() == ''",
    "strings.quote('a\"b\\n\\\\') == '\"a\\\\\"b\\\\n\\\\\\\\\"'",
    "'%s has %d of %.1f%%'.format(['x', 2, 12.25]) == 'x has 2 of 12.2%'",
    "'%s %s %s'.format([[1, 'a'], {'k': 1.5}, null]) == '[1, \"a\"] {\"k\":1.500000} null'",
    "'%b %o %x %X'.format([5, 8, 255, 255]) == '101 10 ff FF' && '%x'.format(['hi']) == '6869'",
    "'%f'.format([1234567.891]) == '1,234,567.891000'",
    "'%s %s'.format([duration('90s'), timestamp(0)]) == '90s 1970-01-01T00:00:00Z'",
    "'%s'.format([[duration('90s'), duration('1s')]]) == '[duration(\"90s\"), duration(\"1s\")]'",
    # regular expressions
    "'abc123'.matches('[0-9]+$') && matches('abc', '^abc$') && !'ab\\nc'.matches('^ab$')",
    "'äöü'.matches('^.{3}$') && 'x'.matches('(?i)X') && !'١'.matches('\\\\d')",
    "'a1b22'.find('[0-9]+') == '1' && 'abc'.find('[0-9]') == ''",
    "'a1b22c333'.findAll('[0-9]+') == ['1', '22', '333'] && 'a1b2'.findAll('[0-9]', 1) == ['1']",
    "'baaac'.findAll('a*') == ['', 'aaa', '', ''] || 'baaac'.findAll('a*') == ['', 'aaa', '']",
    "'äxä'.findAll('ä') == ['ä', 'ä']",
    # lists and sets
    "[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [].isSorted()",
    "[1, 2, 3].sum() == 6 && [0.5, 1.5].sum() == 2.0 && [duration('1m'), duration('1s')].sum() == duration('61s')",
    "[3, 1, 2].min() == 1 && ['a', 'c'].max() == 'c' && [1u, 2u].sum() == 3u",
    "['a', 'b', 'a'].indexOf('a') == 0 && ['a', 'b', 'a'].lastIndexOf('a') == 2 && [1].indexOf(3) == -1",
    "[1, 2].includes(2) && !'a'.includes('b') && 'a'.includes('a')",
    "[1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2, 3]].flatten() == [1, 2, 3]",
    "[[[1]], [[2]]].flatten(2) == [1, 2]",
    "[2, 1].sort() == [1, 2] && ['b', 'a'].sort() == ['a', 'b'] && [true, false].sort() == [false, true]",
    "[{'n': 2}, {'n': 1}].sortBy(x, x.n) == [{'n': 1}, {'n': 2}]",
    "lists.range(3) == [0, 1, 2] && [1, 2].reverse() == [2, 1] && [1, 1, 2].distinct() == [1, 2]",
    "[{'a': 1}, {'a': 1}].distinct() == [{'a': 1}]",
    "sets.contains([1, 2, 3], [1, 3]) && sets.equivalent([1, 2, 1], [2, 1]) && !sets.intersects([1], [2])",
    # urls
    "url('https://user:pw@example.com:8443/a b?x=1&x=2&y=%20z#f').getHost() == 'example.com:8443'",
    "url('https://example.com:8443/a%2Fb').getEscapedPath() == '/a%2Fb'",
    "url('https://example.com/a b').getEscapedPath() == '/a%20b'",
    "url('https://h/?x=1&x=2&y=a+b').getQuery() == {'x': ['1', '2'], 'y': ['a b']}",
    "url('HTTPS://[fe80::1]:80/').getHostname() == 'fe80::1' && url('HTTP://h').getScheme() == 'http'",
    "url('/only/path').getScheme() == '' && isURL('/p') && !isURL('p') && !isURL('http://a b') && !isURL('')",
    "!isURL('http://h:port/') && !isURL('http://[::1') && !isURL('http://h/%zz') && isURL('mailto:x@y')",
    # networks
    "ip('10.0.0.1').family() == 4 && ip('::1').family() == 6 && string(ip('FE80::0:1')) == 'fe80::1'",
    "!isIP('10.0.0.256') && !isIP('010.0.0.1') && !isIP('fe80::1%eth0') && !isIP('::ffff:1.2.3.4')",
    "ip.isCanonical('::1') && !ip.isCanonical('0::1')",
    "ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified() && ip('169.254.1.1').isLinkLocalUnicast()",
    "ip('224.0.0.5').isLinkLocalMulticast() && ip('10.0.0.1').isGlobalUnicast() && !ip('::').isGlobalUnicast()",
    "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
    "cidr('10.0.0.0/8').containsIP('10.9.9.9') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
    "!cidr('10.0.0.0/8').containsIP('::1') && cidr('2001:db8::/32').prefixLength() == 32",
    "!isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0') && !isCIDR('10.0.0.0/08') && isCIDR('10.0.0.1/8')",
    "string(cidr('10.0.0.1/8')) == '10.0.0.1/8' && type(ip('::1')) == net.IP",
    # quantities
    "quantity('1Gi') == quantity('1024Mi') && quantity('500m') == quantity('0.5') && quantity('1e3') == quantity('1k')",
    "quantity('1.5Gi').isGreaterThan(quantity('1Gi')) && quantity('1').isLessThan(quantity('1001m'))",
    "quantity('10').add(5).sub(quantity('1')).asInteger() == 14 && sign(quantity('-3')) == -1",
    "quantity('1.5').asApproximateFloat() == 1.5 && !quantity('1.5').isInteger() && quantity('2k').isInteger()",
    "isQuantity('-1.5Gi') && !isQuantity('1 Gi') && !isQuantity('1gi') && !isQuantity('') && !isQuantity('1.2.3')",
    "quantity('0.0000000001') == quantity('1n')",
    "quantity('99999999999999999999Ei') == quantity('9223372036854775807')",
    "quantity('1e999999999').isGreaterThan(quantity('1'))",
    # versions
    "semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('1.2.3+a') == semver('1.2.3+b')",
    "semver('1.2.3-2').isLessThan(semver('1.2.3-10')) && semver('1.0.0-1').isLessThan(semver('1.0.0-a'))",
    "semver('1.10.0').compareTo(semver('1.9.0')) == 1 && semver('3.2.1').major() == 3",
    "isSemver('v1.2', true) && !isSemver('v1.2') && !isSemver('1.2.3-01') && semver('v01.2', true).minor() == 2",
    # named formats
    "format.dns1123Subdomain().validate('a.b-c') == optional.none()",
    "format.dns1123Label().validate('a.b').value() == ['must not contain dots']",
    "format.dns1035Label().validate('1a').hasValue() && format.labelValue().validate('') == optional.none()",
    "format.dns1123LabelPrefix().validate('ab-') == optional.none()",
    "format.dns1123Label().validate('-').value().size() == 1",
    "format.qualifiedName().validate('example.com/Name_1') == optional.none()",
    "format.qualifiedName().validate('a/b/c').hasValue() && format.qualifiedName().validate('/x').hasValue()",
    "format.date().validate('2024-02-29') == optional.none() && format.date().validate('2023-02-29').hasValue()",
    "format.datetime().validate('2024-01-01T23:59:59.5+01:00') == optional.none()",
    "format.datetime().validate('2024-01-01T24:00:00Z').hasValue()",
    "format.uuid().validate('123e4567e89b12d3a456426614174000') == optional.none()",
    "format.byte().validate('aGk=') == optional.none() && format.byte().validate('!').hasValue()",
    "format.uri().validate('https://h') == optional.none() && format.uri().validate('h').hasValue()",
    "format.named('uuid').hasValue() && !format.named('nope').hasValue()",
    "format.named('uuid').value() == format.uuid()",
]


@pytest.mark.parametrize("expression", HOLDS)
def test_library_expression_holds(expression: str) -> None:
    program = compile(expression)
    assert program.evaluate() is True
    assert program._run_exactly(())[0] is True


ERRORS = [
    ("'abc'.charAt(4)", "index out of range: 4"),
    ("'abc'.substring(4)", "index out of range: 4"),
    ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
    ("'abc'.indexOf('a', -1)", "index out of range: -1"),
    ("[dyn('a'), dyn(1)].join()", "join: invalid input: 1"),
    ("'%s'.format(dyn([]))", "index 0 out of range"),
    ("'%d'.format([dyn('a')])", "decimal clause can only be used on integers, was given string"),
    ("'x'.matches(p)", "error parsing regexp"),
    ("dyn([]).min()", "min called on empty list"),
    ("[dyn(1), dyn('a')].sort()", "list elements must have the same type"),
    ("[1].slice(0, 2)", "cannot slice(0, 2), list is length 1"),
    ("lists.range(-1)", "size must be non-negative"),
    ("lists.range(1000001)", "actual cost limit exceeded"),
    ("url('nope')", "URL parse error during conversion from string"),
    ("ip('nope')", 'IP Address "nope" parse error'),
    ("ip('fe80::1%eth0')", "with zone value is not allowed"),
    ("cidr('10.0.0.0/99')", "prefix length out of range"),
    ("quantity('1iG')", "unable to parse quantity's suffix"),
    ("quantity('1.5').asInteger()", "cannot convert value to integer"),
    ("semver('1.2')", 'invalid semantic version "1.2"'),
    ("[9223372036854775807, 1].sum()", "integer overflow"),
]


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_library_call_fails_with_the_reason(expression: str, message: str) -> None:
    with pytest.raises(CelError) as caught:
        compile(expression, {"p": STRING}).evaluate({"p": "("})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 5000 + "!"),
        ("(x+x+)+y", "x" * 5000),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 5000),
        ("(.*)*(.*)*(.*)*=", "b" * 5000),
    ],
)
def test_a_pattern_that_makes_others_backtrack_is_fast(pattern: str, text: str) -> None:
    program = compile("text.matches(pattern)", {"text": STRING, "pattern": STRING})
    started = time.monotonic()
    assert program.evaluate({"text": text, "pattern": pattern}) is False
    assert time.monotonic() - started < 1


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(2000).all(a, lists.range(2000).all(b, a >= 0))",
        "lists.range(5000).map(x, 'aaaaaaaaaa').distinct().size() > 0",
        "sets.equivalent(lists.range(3000), lists.range(3000))",
        "cel.bind(a, s + s, cel.bind(b, a + a + a + a, b + b + b + b + b + b + b + b)).size() > 0",
        "[s].map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).size() > 0",
        "l.map(a, l.map(b, l.map(c, l.map(d, 1)))).size() > 0",
        "s.matches(s)",
        "s.contains(s)",
    ],
)
def test_an_expensive_expression_is_stopped_soon(expression: str) -> None:
    values: dict[str, Any] = {"s": "a" * 500_000, "l": list(range(200))}
    program = compile(expression, {"s": STRING, "l": DYN})
    started = time.monotonic()
    with pytest.raises(CelError, match="actual cost limit exceeded"):
        program.evaluate(values)
    assert time.monotonic() - started < 5


def test_a_list_that_doubles_itself_is_stopped() -> None:
    doubled = "cel.bind(l, l + l, " * 30 + "l.size()" + ")" * 30
    with pytest.raises(CelError):
        compile(doubled, {"l": DYN}).evaluate({"l": [1, 2]})
    doubled = "cel.bind(l, l + l, " * 15 + "cel.bind(l, l + l, l + l + l + l).size()" + ")" * 15
    with pytest.raises(CelError, match="more than 1000000 items"):
        compile(doubled, {"l": DYN}).evaluate({"l": list(range(20))})
