"""Random values that are the same for every rendering of a release.

They are derived from a secret of the release and from the place that asks: the file that is rendered, the template,
the function with its arguments, and how often it was asked there before.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import string
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Final

from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import Function, functions
from homeport.machinery.gotemplate.value import octets

_LONGEST: Final = 1 << 20
_ASCII: Final = "".join(map(chr, range(32, 127)))


class Stream:
    """Bytes without end from one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._block = 0
        self._left = b""

    def read(self, size: int) -> bytes:
        while len(self._left) < size:
            self._left += hmac.digest(self._key, self._block.to_bytes(8, "big"), "sha256")
            self._block += 1
        made, self._left = self._left[:size], self._left[size:]
        return made

    def below(self, limit: int) -> int:
        size = (limit.bit_length() + 7) // 8 + 8  # so many bytes that the remainder favours no number
        return int.from_bytes(self.read(size), "big") % limit


class Chance:
    """`place` tells where the rendering is."""

    def __init__(self, seed: bytes, release: str, place: Callable[[], str]) -> None:
        self._seed = seed
        self._release = release
        self._place = place
        self._asked: Counter[str] = Counter()

    def stream(self, name: str, *arguments: object) -> Stream:
        if not self._seed:
            raise CallError(f"{name} needs the secret seed of the release, and none was given: pass ReleaseInfo.seed")
        site = "\0".join((self._release, self._place(), name, *map(repr, arguments)))
        self._asked[site] += 1
        key = hmac.digest(self._seed, octets(f"{site}\0{self._asked[site]}"), "sha256")
        return Stream(key)

    def functions(self) -> dict[str, Function]:
        return functions(
            {
                "randAlphaNum": ("int", self._text("randAlphaNum", string.ascii_letters + string.digits)),
                "randAlpha": ("int", self._text("randAlpha", string.ascii_letters)),
                "randNumeric": ("int", self._text("randNumeric", string.digits)),
                "randAscii": ("int", self._text("randAscii", _ASCII)),
                "randBytes": ("int", self._bytes),
                "randInt": ("int int", self._int),
                "shuffle": ("string", self._shuffled),
                "uuidv4": ("", lambda: str(uuid.UUID(bytes=self.stream("uuidv4").read(16), version=4))),
            }
        )

    def _text(self, name: str, letters: str) -> Callable[[int], str]:
        def made(count: int) -> str:
            _check(count)
            stream = self.stream(name, count)
            return "".join(letters[stream.below(len(letters))] for _ in range(count))

        return made

    def _bytes(self, count: int) -> str:
        _check(count)
        return base64.b64encode(self.stream("randBytes", count).read(count)).decode()

    def _int(self, low: int, high: int) -> int:
        if high <= low:
            raise CallError(f"no number is between {low} and {high}")
        return low + self.stream("randInt", low, high).below(high - low)

    def _shuffled(self, text: str) -> str:
        _check(len(text))
        stream = self.stream("shuffle", hashlib.sha256(octets(text)).hexdigest())
        letters = list(text)
        for i in range(len(letters) - 1, 0, -1):
            j = stream.below(i + 1)
            letters[i], letters[j] = letters[j], letters[i]
        return "".join(letters)


def _check(count: int) -> None:
    if not 0 <= count <= _LONGEST:
        raise CallError(f"{count} characters can't be made: expected 0 to {_LONGEST}")
