"""What a user may have meant by a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near_only(wanted: str, names: Iterable[str]) -> str:
    """To be put behind an error: close matches alone, for names that not everybody may see."""
    close = difflib.get_close_matches(wanted, sorted(set(names)), n=2, cutoff=0.7)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def near(wanted: str, names: Iterable[str]) -> str:
    """To be put behind an error: close matches, otherwise some of the names that there are."""
    known = sorted(set(filter(None, names)))
    close = difflib.get_close_matches(wanted, known, n=3, cutoff=0.4)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    if not known:
        return "; there are none"
    more = f" and {len(known) - 5} more" if len(known) > 5 else ""
    return f"; there are: {', '.join(map(repr, known[:5]))}{more}"
