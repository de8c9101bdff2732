"""Kubernetes' expression language: validation rules of schemas, and conditions of admission.

rules, problems = compile_rules(schema)
violations = rules.validate(obj, old)

program = compile("object.spec.replicas > 1", {"object": DYN})
program.evaluate({"object": obj})
"""

from __future__ import annotations

from homeport.machinery.cel.errors import CelError
from homeport.machinery.cel.program import Program, compile
from homeport.machinery.cel.rule import RuleProblem
from homeport.machinery.cel.rules import MISSING, Rules, Violation, compile_rules
from homeport.machinery.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
    list_of,
    map_of,
    optional_of,
)

__all__ = [
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "INT",
    "MISSING",
    "NULL",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "CelError",
    "CelType",
    "Program",
    "RuleProblem",
    "Rules",
    "Violation",
    "compile",
    "compile_rules",
    "list_of",
    "map_of",
    "optional_of",
]
