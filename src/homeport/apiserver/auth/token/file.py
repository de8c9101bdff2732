"""DIR/pki/tokens.csv: static tokens, one per line: token,user,uid[,"group1,group2"]. Optional, read at start."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

from homeport.apiserver.auth.file import tighten
from homeport.apiserver.auth.pki import PkiError
from homeport.apiserver.request import User

_CURE = 'correct the line (token,user,uid,"group1,group2") or remove the file'


def load_tokens(path: Path) -> dict[bytes, User]:
    """Users by the hash of their token: a lookup by hash tells nothing about the token by the time it takes."""
    if not path.exists():
        return {}
    tighten(path)
    users: dict[bytes, User] = {}
    with path.open(newline="", encoding="utf-8") as lines:
        reader = csv.reader(lines)
        try:
            for row in reader:
                if row and not row[0].startswith("#"):
                    digest = _hash_of(path, reader.line_num, row)
                    users[digest] = _user(row)
        except (csv.Error, UnicodeDecodeError) as broken:
            raise PkiError(path, f"line {reader.line_num} can't be read", _CURE) from broken
    return users


def _hash_of(path: Path, line: int, row: list[str]) -> bytes:
    if len(row) < 3 or not row[0].strip() or not row[1].strip():
        raise PkiError(path, f"line {line} lacks a token, a user or a uid", _CURE)
    return hashlib.sha256(row[0].strip().encode()).digest()


def _user(row: list[str]) -> User:
    groups = row[3].split(",") if len(row) > 3 else []
    return User(row[1].strip(), tuple(group.strip() for group in groups if group.strip()), row[2].strip())
