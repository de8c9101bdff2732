"""Go's text/template, with the repeatable functions of sprig: what ClusterClasses and bootstrap files are written in.

    compiled("{{ .name | upper }}").render({"name": "a"})

Values are JSON: int is Go's int, float its float64. Templates come from users, so the size of the text, the number of
steps and the work of functions are bounded.
"""

from __future__ import annotations

from homeport.machinery.gotemplate.error import TemplateError
from homeport.machinery.gotemplate.template import Template, compiled, render

__all__ = ["Template", "TemplateError", "compiled", "render"]
