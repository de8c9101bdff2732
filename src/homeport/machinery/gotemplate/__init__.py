"""Go's text/template, as far as manifests use it: `{{ if .controlPlane }}{{ .controlPlane.version }}{{ end }}`.

Actions if, else, with, range, break and continue; variables; pipelines; comments; trimming; and the built-in functions
that need no code of the caller. Values are JSON. No nested templates (define, template, block).
"""

from __future__ import annotations

from homeport.machinery.gotemplate.error import TemplateError
from homeport.machinery.gotemplate.execute import Template, compiled, render

__all__ = ["Template", "TemplateError", "compiled", "render"]
