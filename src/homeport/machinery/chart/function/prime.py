"""RSA keys from a stream of bytes: the library makes them from its own randomness only."""

from __future__ import annotations

import functools
import math
from typing import Final

from cryptography.hazmat.primitives.asymmetric import rsa

from homeport.machinery.chart.function.chance import Stream

BITS: Final = 2048
_EXPONENT: Final = 65537
_ROUNDS: Final = 5  # of the test: enough for numbers of this size that nobody chose


def _small_primes(limit: int) -> list[int]:
    sieve = bytearray([1]) * limit
    for i in range(2, math.isqrt(limit) + 1):
        if sieve[i]:
            sieve[i * i :: i] = bytes(len(range(i * i, limit, i)))
    return [i for i in range(3, limit) if sieve[i]]


_SMALL: Final = _small_primes(20_000)


@functools.lru_cache(maxsize=256)
def rsa_key(key: bytes) -> rsa.RSAPrivateKey:
    """The same key for the same bytes. Takes about half a second; the last ones are remembered."""
    stream = Stream(key)
    while True:
        p, q = _prime(stream, BITS // 2), _prime(stream, BITS // 2)
        phi = (p - 1) * (q - 1)
        if p != q and (p * q).bit_length() == BITS and math.gcd(phi, _EXPONENT) == 1:
            break
    d = pow(_EXPONENT, -1, math.lcm(p - 1, q - 1))
    p, q = max(p, q), min(p, q)
    numbers = rsa.RSAPrivateNumbers(
        p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), rsa.RSAPublicNumbers(_EXPONENT, p * q)
    )
    return numbers.private_key()


def _prime(stream: Stream, bits: int) -> int:
    """The first prime behind a random number with its two highest bits set."""
    start = int.from_bytes(stream.read(bits // 8), "big") | 3 << (bits - 2) | 1
    span = 4096
    marked = bytearray(span)  # start + 2 * i has a small divisor
    for prime in _SMALL:
        first = -start * pow(2, -1, prime) % prime
        marked[first::prime] = b"\1" * len(range(first, span, prime))
    for i in range(span):
        candidate = start + 2 * i
        if not marked[i] and candidate.bit_length() == bits and _is_prime(candidate, stream):
            return candidate
    return _prime(stream, bits)


def _is_prime(n: int, stream: Stream) -> bool:
    """Miller and Rabin's test."""
    shift = (n - 1 & -(n - 1)).bit_length() - 1
    odd = (n - 1) >> shift
    for turn in range(_ROUNDS):
        base = 2 if turn == 0 else 2 + stream.below(n - 3)
        x = pow(base, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(shift - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True
