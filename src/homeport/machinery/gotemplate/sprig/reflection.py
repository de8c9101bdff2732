"""Types."""

from __future__ import annotations

from typing import Final

from homeport.machinery.gotemplate.function import functions
from homeport.machinery.gotemplate.value import kind_of, same, type_of

FUNCTIONS: Final = functions(
    {
        "typeOf": ("any", type_of),
        "typeIs": ("string any", lambda wanted, value: wanted == type_of(value)),
        "typeIsLike": ("string any", lambda wanted, value: type_of(value) in (wanted, f"*{wanted}")),
        "kindOf": ("any", kind_of),
        "kindIs": ("string any", lambda wanted, value: wanted == kind_of(value)),
    },
    cheap=True,
) | functions({"deepEqual": ("any any", same)})
