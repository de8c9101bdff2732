"""Output on terminals whose character set lacks some of the characters that we print."""

from __future__ import annotations

import codecs
import io
from typing import TextIO

_PLAIN = {"│": "|", "├": "|", "└": "`", "─": "-", "…": "~", "→": ">", "–": "-", "’": "'"}
_HANDLER = "homeport-plain"


def degrade(stream: TextIO) -> None:
    """From now on, what the stream can't encode is written in ASCII instead of ending the program."""
    codecs.register_error(_HANDLER, _replace)
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors=_HANDLER)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_PLAIN.get(each, "?") for each in lost), error.end
