"""Addresses of files and repositories that users name."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from homeport.platforms.butler.normal.outcome import Reading

_NONE = urlsplit("")


def split(url: str) -> SplitResult:
    """Without a host if it is not a URL: `https://[::1/x` is none."""
    try:
        return urlsplit(url)
    except ValueError:
        return _NONE


def check_url(reading: Reading, path: str, url: str) -> None:
    if not url:
        return
    if not split(url).hostname:
        reading.fault(path, f'"{url}" is not a valid URL: expected for example https://example.com/path')
    elif "@" in split(url).netloc:
        reading.fault(path, "must not have a user name or password: everybody who reads it would see them")
