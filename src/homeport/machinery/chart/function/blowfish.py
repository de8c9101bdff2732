"""bcrypt. Its cost is lower than that of Helm (5, not 10): in Python, a hash of cost 10 takes many seconds."""

from __future__ import annotations

import functools
from typing import Final

COST: Final = 5
_ALPHABET: Final = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_WORD: Final = 0xFFFFFFFF
_TEXT: Final = (0x4F727068, 0x65616E42, 0x65686F6C, 0x64657253, 0x63727944, 0x6F756274)  # OrpheanBeholderScryDoubt
_WORDS: Final = 18 + 4 * 256


@functools.cache
def _digits_of_pi() -> tuple[int, ...]:
    """Blowfish begins with the digits of pi behind the point, in words of 32 bits."""
    extra = 64
    one = 1 << (_WORDS * 32 + extra)

    def arctan_inverse(x: int) -> int:
        term = one // x
        total, square, n, sign = term, x * x, 1, 1
        while term:
            term //= square
            n += 2
            sign = -sign
            total += sign * (term // n)
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    fraction = (pi - 3 * one) >> extra
    return tuple((fraction >> (32 * (_WORDS - 1 - i))) & _WORD for i in range(_WORDS))


class _Cipher:
    def __init__(self) -> None:
        words = _digits_of_pi()
        self._keys = list(words[:18])
        self._boxes = [list(words[18 + 256 * i : 274 + 256 * i]) for i in range(4)]

    def encrypt(self, left: int, right: int) -> tuple[int, int]:
        keys = self._keys
        a, b, c, d = self._boxes
        for i in range(0, 16, 2):
            left ^= keys[i]
            right ^= (((a[left >> 24] + b[left >> 16 & 255]) ^ c[left >> 8 & 255]) + d[left & 255]) & _WORD
            right ^= keys[i + 1]
            left ^= (((a[right >> 24] + b[right >> 16 & 255]) ^ c[right >> 8 & 255]) + d[right & 255]) & _WORD
        return right ^ keys[17], left ^ keys[16]

    def expand(self, key: list[int], salt: list[int]) -> None:
        """`key` are 18 words; `salt` are 4, all zero where there is none."""
        self._keys = [word ^ key[i] for i, word in enumerate(self._keys)]
        left = right = turn = 0
        for table in (self._keys, *self._boxes):
            for i in range(0, len(table), 2):
                left, right = self.encrypt(left ^ salt[turn], right ^ salt[turn + 1])
                table[i], table[i + 1] = left, right
                turn = 2 - turn


def _cycled(raw: bytes, count: int) -> list[int]:
    whole = (raw * (count * 4 // len(raw) + 1))[: count * 4]
    return [int.from_bytes(whole[i : i + 4], "big") for i in range(0, count * 4, 4)]


def _encoded(raw: bytes) -> str:
    made: list[str] = []
    for i in range(0, len(raw), 3):
        part = raw[i : i + 3]
        value = int.from_bytes(part.ljust(3, b"\0"), "big")
        made += [_ALPHABET[value >> shift & 63] for shift in (18, 12, 6, 0)[: len(part) + 1]]
    return "".join(made)


@functools.lru_cache(maxsize=128)
def hashed(password: bytes, salt: bytes, cost: int = COST) -> str:
    """The hash in the form $2a$05$...; `salt` has 16 bytes, of the password 72 count."""
    cipher = _Cipher()
    key, salt_words, zeros = _cycled((password + b"\0")[:72], 18), _cycled(salt, 4), [0, 0, 0, 0]
    cipher.expand(key, salt_words)
    salt_key = _cycled(salt, 18)
    for _ in range(1 << cost):
        cipher.expand(key, zeros)
        cipher.expand(salt_key, zeros)
    words: list[int] = []
    for i in range(0, 6, 2):
        left, right = _TEXT[i], _TEXT[i + 1]
        for _ in range(64):
            left, right = cipher.encrypt(left, right)
        words += [left, right]
    raw = b"".join(word.to_bytes(4, "big") for word in words)[:23]
    return f"$2a${cost:02d}${_encoded(salt)}{_encoded(raw)}"
