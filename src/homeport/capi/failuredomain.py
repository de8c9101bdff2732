"""Where to put the next machine, and from where to take one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence


def pick_fewest(domains: Sequence[str], everywhere: Iterable[str], lasting: Iterable[str]) -> str:
    """The domain for a new machine; '' when there are none.

    `lasting` are the domains of machines that will stay (up to date, not being deleted), one entry per machine: they
    decide. Among equals, those with the fewest machines of all, so that a rollout in between is spread as well.
    """
    if not domains:
        return ""
    staying, present = Counter(lasting), Counter(everywhere)
    return min(_shuffled(domains), key=lambda domain: (staying[domain], present[domain]))


def pick_most(domains: Sequence[str], everywhere: Iterable[str], eligible: Iterable[str]) -> str:
    """The domain to take a machine from: with the most that may go, then with the most of all. '' when none may."""
    leaving, present = Counter(eligible), Counter(everywhere)
    if not any(leaving[domain] for domain in domains):
        return ""
    return max(_shuffled(domains), key=lambda domain: (leaving[domain], present[domain]))


def _shuffled(domains: Sequence[str]) -> list[str]:
    """Among equals chance decides: many clusters at once must not all begin with the same domain."""
    return random.sample(list(dict.fromkeys(domains)), k=len(set(domains)))
