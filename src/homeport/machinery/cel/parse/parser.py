"""Tokens to a syntax tree, by precedence climbing."""

from __future__ import annotations

from typing import Final

from homeport.machinery.cel.errors import CelError
from homeport.machinery.cel.parse import macro
from homeport.machinery.cel.parse.lexer import INT_MAX, Token, error_at, tokenize
from homeport.machinery.cel.parse.syntax import Call, Fold, Ident, ListNode, Literal, MapNode, Node, Select, depth
from homeport.machinery.cel.types import BOOL, BYTES, DOUBLE, INT, NULL, STRING, UINT
from homeport.machinery.cel.values import Uint

# Every level of brackets costs some Python frames in each of the passes over the tree, so both limits stay
# well below what the interpreter's own limit allows. Real rules nest a handful of levels.
MAX_NESTING: Final = 80
MAX_DEPTH: Final = 160
MAX_FOLD_NESTING: Final = 16

RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_BINARY: Final = {
    "||": (1, "_||_"),
    "&&": (2, "_&&_"),
    "<": (3, "_<_"),
    "<=": (3, "_<=_"),
    ">": (3, "_>_"),
    ">=": (3, "_>=_"),
    "==": (3, "_==_"),
    "!=": (3, "_!=_"),
    "in": (3, "@in"),
    "+": (4, "_+_"),
    "-": (4, "_-_"),
    "*": (5, "_*_"),
    "/": (5, "_/_"),
    "%": (5, "_%_"),
}
_CONSTANTS: Final = {"true": (True, BOOL), "false": (False, BOOL), "null": (None, NULL)}


def parse(text: str, *, bind: bool = True) -> Node:
    """The tree of an expression; `bind` allows cel.bind(), which Kubernetes does not."""
    parser = _Parser(text, bind)
    root = parser.parse()
    if depth(root, MAX_DEPTH) > MAX_DEPTH:
        raise CelError(f"expression recursion limit exceeded: {MAX_DEPTH}")
    _limit_folds(text, root)
    return root


def _limit_folds(text: str, root: Node) -> None:
    """Loops in loops: each becomes a nested function, and each multiplies the cost."""
    pending = [(root, 0)]
    while pending:
        node, nested = pending.pop()
        if isinstance(node, Fold):
            nested += 1
            if nested > MAX_FOLD_NESTING:
                raise error_at(text, node.pos, "comprehension exceeds nesting limit")
        pending.extend((child, nested) for child in node.children())


class _Parser:
    def __init__(self, text: str, bind: bool) -> None:
        self._text = text
        self._bind = bind
        self._tokens = tokenize(text)
        self._at = 0
        self._nesting = 0

    def parse(self) -> Node:
        root = self._expression()
        if self._peek.kind != "end":
            raise self._unexpected()
        return root

    @property
    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _accept(self, kind: str) -> bool:
        if self._peek.kind != kind:
            return False
        self._at += 1
        return True

    def _expect(self, kind: str) -> Token:
        if self._peek.kind != kind:
            raise self._unexpected(f", expecting '{kind}'")
        return self._next()

    def _fail(self, pos: int, message: str) -> CelError:
        return error_at(self._text, pos, message)

    def _unexpected(self, hint: str = "") -> CelError:
        token = self._peek
        if token.kind == "end":
            return self._fail(token.pos, f"syntax error: unexpected end of expression{hint}")
        return self._fail(token.pos, f"syntax error: unexpected '{token.value}'{hint}")

    def _expression(self) -> Node:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise self._fail(self._peek.pos, f"expression recursion limit exceeded: {MAX_NESTING}")
        condition = self._binary(1)
        if self._peek.kind == "?":
            pos = self._next().pos
            chosen = self._binary(1)
            self._expect(":")
            condition = Call(pos, "_?_:_", None, [condition, chosen, self._expression()])
        self._nesting -= 1
        return condition

    def _operator(self) -> tuple[int, str] | None:
        token = self._peek
        key = token.value if token.kind == "ident" else token.kind
        return _BINARY.get(key)

    def _binary(self, least: int) -> Node:
        left = self._unary()
        while (operator := self._operator()) is not None and operator[0] >= least:
            precedence, function = operator
            pos = self._next().pos
            right = self._binary(precedence + 1)
            if function in ("_&&_", "_||_") and isinstance(left, Call) and left.function == function:
                # one flat node for a whole chain; brackets in between make no difference to the result
                left.args.append(right)
            else:
                left = Call(pos, function, None, [left, right])
        return left

    def _unary(self) -> Node:
        operator = self._peek.kind
        if operator not in ("!", "-"):
            return self._member(self._primary())
        first, count = self._peek.pos, 0
        while self._accept(operator):
            count += 1
        if operator == "-" and self._peek.kind in ("int", "double"):
            count -= 1
            operand = self._member(self._number(negative=True, pos=first))
        else:
            operand = self._member(self._primary())
        # as in the reference implementation an even number of signs is none at all
        if count % 2:
            operand = Call(first, "!_" if operator == "!" else "-_", None, [operand])
        return operand

    def _number(self, *, negative: bool, pos: int) -> Node:
        token = self._next()
        if token.kind == "double":
            return Literal(pos, -token.value if negative else token.value, DOUBLE)
        if token.value > INT_MAX + negative:
            raise self._fail(token.pos, "invalid int literal")
        return Literal(pos, -token.value if negative else token.value, INT)

    def _member(self, node: Node) -> Node:
        while True:
            token = self._peek
            if token.kind == ".":
                self._next()
                node = self._selection(node, token.pos)
            elif token.kind == "[":
                self._next()
                function = "_[?_]" if self._accept("?") else "_[_]"
                index = self._expression()
                self._expect("]")
                node = Call(token.pos, function, None, [node, index])
            else:
                return node

    def _selection(self, operand: Node, pos: int) -> Node:
        optional = self._accept("?")
        name = self._next()
        if name.kind not in ("ident", "escaped"):
            self._at -= 1
            raise self._unexpected(", expecting a name")
        if optional:
            return Call(pos, "_?._", None, [operand, Literal(name.pos, name.value, STRING)])
        if name.kind == "ident" and self._peek.kind == "(":
            call = Call(name.pos, name.value, operand, self._arguments())
            return macro.expand(call, self._fail, bind=self._bind)
        if name.kind == "ident" and name.value in ("true", "false", "null", "in"):
            raise self._fail(name.pos, f"syntax error: reserved word '{name.value}', expecting a name")
        return Select(pos, operand, name.value)

    def _arguments(self) -> list[Node]:
        self._expect("(")
        args: list[Node] = []
        if not self._accept(")"):
            args.append(self._expression())
            while self._accept(","):
                args.append(self._expression())
            self._expect(")")
        return args

    def _primary(self) -> Node:
        token = self._peek
        if token.kind in ("int", "double"):
            return self._number(negative=False, pos=token.pos)
        if token.kind in ("string", "bytes", "uint"):
            self._next()
            if token.kind == "uint":
                return Literal(token.pos, Uint(token.value), UINT)
            return Literal(token.pos, token.value, STRING if token.kind == "string" else BYTES)
        if token.kind == "(":
            self._next()
            inner = self._expression()
            self._expect(")")
            return inner
        if token.kind == "[":
            return self._list()
        if token.kind == "{":
            return self._map()
        if token.kind == "." or token.kind == "ident":
            return self._name()
        raise self._unexpected()

    def _name(self) -> Node:
        absolute = self._accept(".")
        token = self._expect("ident")
        name = str(token.value)
        if name in _CONSTANTS and not absolute:
            value, type_ = _CONSTANTS[name]
            return Literal(token.pos, value, type_)
        if name in RESERVED:
            raise self._fail(token.pos, f"reserved identifier: {name}")
        if self._peek.kind == "(":
            return macro.expand(Call(token.pos, name, None, self._arguments()), self._fail, bind=self._bind)
        if self._peek.kind == "{":
            raise self._fail(token.pos, f"undeclared reference to '{name}': objects can't be constructed")
        return Ident(token.pos, name)

    def _list(self) -> Node:
        pos = self._next().pos
        items: list[Node] = []
        optional: set[int] = set()
        while self._peek.kind != "]":
            if self._accept("?"):
                optional.add(len(items))
            items.append(self._expression())
            if not self._accept(","):
                break
        self._expect("]")
        return ListNode(pos, items, frozenset(optional))

    def _map(self) -> Node:
        pos = self._next().pos
        entries: list[tuple[Node, Node, bool]] = []
        while self._peek.kind != "}":
            optional = self._accept("?")
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression(), optional))
            if not self._accept(","):
                break
        self._expect("}")
        return MapNode(pos, entries)
