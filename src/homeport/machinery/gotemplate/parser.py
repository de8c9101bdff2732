"""Tokens to a tree."""

from __future__ import annotations

from collections.abc import Container
from typing import Final, Literal

from homeport.machinery.gotemplate import literal, tree
from homeport.machinery.gotemplate.error import TemplateError
from homeport.machinery.gotemplate.lexer import Token, tokens
from homeport.machinery.gotemplate.sprig.refusal import REFUSED

_DEEPEST: Final = 100  # actions and parentheses inside of each other; Python's stack takes a few more
_OPERANDS: Final = frozenset({"bool", "character", "dot", "field", "word", "number", "nil", "string", "variable", "("})


def parse(source: str, functions: Container[str]) -> tree.Tree:
    """Raises TemplateError. `functions` are the names that may be called."""
    return _Parser(tokens(source), functions).parse()


class _Parser:
    def __init__(self, found: list[Token], functions: Container[str]) -> None:
        self._tokens = found
        self._position = 0
        self._functions = functions
        self._tree = tree.Tree()
        self._variables = ["$"]
        self._loops = 0
        self._depth = 0

    # -- tokens ----------------------------------------------------------------------------------------------------

    def _peek(self) -> Token:
        return self._tokens[self._position]

    def _next(self) -> Token:
        token = self._tokens[self._position]
        if token.kind != "end of text":
            self._position += 1
        return token

    def _peek_word(self) -> Token:
        while self._peek().kind == "space":
            self._position += 1
        return self._peek()

    def _next_word(self) -> Token:
        self._peek_word()
        return self._next()

    def _expect(self, kind: str, context: str) -> Token:
        token = self._next_word()
        if token.kind != kind:
            raise _unexpected(token, context)
        return token

    # -- actions ---------------------------------------------------------------------------------------------------

    def parse(self) -> tree.Tree:
        while self._peek().kind != "end of text":
            if self._is_definition():
                self._definition()
                continue
            node, stop = self._node()
            if stop:
                raise TemplateError(self._peek().line, f"{{{{{stop}}}}} without a beginning")
            if node is not None:
                self._tree.body.append(node)
        return self._tree

    def _is_definition(self) -> bool:
        if self._peek().kind != "left":
            return False
        position = self._position + 1
        while self._tokens[position].kind == "space":
            position += 1
        return self._tokens[position].kind == "define"

    def _definition(self) -> None:
        self._next()
        line = self._next_word().line
        name = self._template_name("define")
        self._expect("right", "define")
        self._add(line, name, self._separate("define"))

    def _separate(self, kind: str) -> list[tree.Node]:
        """The body of another template: variables of this one are not known there."""
        variables, loops = self._variables, self._loops
        self._variables, self._loops = ["$"], 0
        body, stop = self._nodes(kind)
        self._variables, self._loops = variables, loops
        if stop != "end":
            raise TemplateError(self._peek().line, f"{{{{{stop}}}}} in {kind}")
        return body

    def _add(self, line: int, name: str, body: list[tree.Node]) -> None:
        known = self._tree.defined.get(name)
        if known is None or tree.is_empty(known):
            self._tree.defined[name] = body
        elif not tree.is_empty(body):
            raise TemplateError(line, f"the template {name!r} is defined twice")

    def _nodes(self, context: str) -> tuple[list[tree.Node], str]:
        """Up to an end or else that belongs to somebody above; which it was."""
        started = self._peek().line
        self._deeper(started)
        nodes: list[tree.Node] = []
        while self._peek_word().kind != "end of text":
            node, stop = self._node()
            if stop:
                self._depth -= 1
                return nodes, stop
            if node is not None:
                nodes.append(node)
        raise TemplateError(started, f"{context} is not closed: '{{{{end}}}}' is missing")

    def _node(self) -> tuple[tree.Node | None, str]:
        token = self._next_word()
        if token.kind == "text":
            return tree.Text(token.line, token.text), ""
        if token.kind != "left":
            raise _unexpected(token, "the text")
        line = self._peek_word().line
        kind = self._peek().kind
        if kind in ("end", "else"):
            self._next()
            if kind == "else" and self._peek_word().kind in ("if", "with"):
                return None, f"else {self._peek().kind}"
            self._expect("right", kind)
            return None, kind
        if kind in ("if", "with", "range", "break", "continue", "template", "block"):
            self._next()
            return self._control(kind, line), ""
        return tree.Print(line, self._pipeline("action", "right")), ""

    def _control(self, kind: str, line: int) -> tree.Node:
        if kind in ("if", "with"):
            return self._branch("if" if kind == "if" else "with", line)
        if kind == "range":
            return self._loop(line)
        if kind == "template":
            name = self._template_name(kind)
            if self._peek_word().kind == "right":
                self._next()
                return tree.Include(line, name, None)
            return tree.Include(line, name, self._pipeline("template", "right"))
        if kind == "block":
            name = self._template_name(kind)
            pipeline = self._pipeline("block", "right")
            self._add(line, name, self._separate("block"))
            return tree.Include(line, name, pipeline)
        self._expect("right", kind)
        if not self._loops:
            raise TemplateError(line, f"{kind} outside of a range")
        return tree.Jump(line, "break" if kind == "break" else "continue")

    def _branch(self, kind: Literal["if", "with"], line: int) -> tree.Branch:
        known = len(self._variables)
        pipeline = self._pipeline(kind, "right")
        body, stop = self._nodes(kind)
        otherwise: list[tree.Node] = []
        if stop == f"else {kind}":
            self._next_word()
            self._deeper(line)
            otherwise = [self._branch(kind, line)]
            self._depth -= 1
        elif stop != "end":
            otherwise = self._otherwise(kind, stop)
        del self._variables[known:]
        return tree.Branch(line, kind, pipeline, body, otherwise)

    def _loop(self, line: int) -> tree.Loop:
        known = len(self._variables)
        pipeline = self._pipeline("range", "right")
        self._loops += 1
        body, stop = self._nodes("range")
        self._loops -= 1
        otherwise = self._otherwise("range", stop) if stop != "end" else []
        del self._variables[known:]
        return tree.Loop(line, pipeline, body, otherwise)

    def _otherwise(self, kind: str, stop: str) -> list[tree.Node]:
        if stop != "else":
            raise TemplateError(self._peek().line, f"{{{{{stop}}}}} can't follow {kind}")
        nodes, stop = self._nodes(kind)
        if stop != "end":
            raise TemplateError(self._peek().line, f"unexpected {{{{{stop}}}}} behind {{{{else}}}}")
        return nodes

    def _template_name(self, context: str) -> str:
        token = self._next_word()
        if token.kind != "string":
            raise _unexpected(token, context)
        return _literal(token)

    def _deeper(self, line: int) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TemplateError(line, f"actions and parentheses are nested deeper than {_DEEPEST}")

    # -- pipelines -------------------------------------------------------------------------------------------------

    def _pipeline(self, context: str, end: str) -> tree.Pipeline:
        line = self._peek_word().line
        self._deeper(line)
        variables, declares = self._declaration(context)
        commands: list[tree.Command] = []
        while True:
            token = self._peek_word()
            if token.kind == end:
                self._next()
                break
            if token.kind not in _OPERANDS:
                raise _unexpected(token, context)
            commands.append(self._command())
        if not commands:
            raise TemplateError(line, f"{context} is empty" if context == "action" else f"{context} needs a value")
        for command in commands[1:]:
            if isinstance(command.operands[0], tree.Constant | literal.Number | tree.Nil | tree.Dot):
                raise TemplateError(line, "only a function can stand behind a '|'")
        self._depth -= 1
        return tree.Pipeline(line, tuple(commands), variables, declares)

    def _declaration(self, context: str) -> tuple[tuple[str, ...], bool]:
        names: list[str] = []
        while self._peek_word().kind == "variable":
            start = self._position
            name = self._next().text
            mark = self._peek_word().kind
            if mark in ("=", ":="):
                self._next()
                names.append(name)
                self._variables.append(name)
                return tuple(names), mark == ":="
            if mark != ",":
                self._position = start
                break
            line = self._next().line
            names.append(name)
            self._variables.append(name)
            if context != "range" or len(names) > 1:
                raise TemplateError(line, f"too many variables in {context}")
            if self._peek_word().kind not in ("variable", "right", ")"):
                raise TemplateError(line, "range can set variables only")
        return tuple(names), False

    def _command(self) -> tree.Command:
        line = self._peek_word().line
        operands: list[tree.Operand] = []
        while True:
            self._peek_word()
            operand = self._operand()
            if operand is not None:
                operands.append(operand)
            token = self._peek()
            if token.kind == "space":
                self._next()
                continue
            if token.kind == "|":
                self._next()
            elif token.kind not in ("right", ")"):
                raise _unexpected(token, "a command")
            break
        if not operands:
            raise TemplateError(line, "a command is missing")
        return tree.Command(line, tuple(operands))

    def _operand(self) -> tree.Operand | None:
        term = self._term()
        if term is None or self._peek().kind != "field":
            return term
        line = self._peek().line
        path: list[str] = []
        while self._peek().kind == "field":
            path.append(self._next().text[1:])
        if isinstance(term, tree.Field):
            return tree.Field((*term.path, *path))
        if isinstance(term, tree.Variable):
            return tree.Variable(term.name, tuple(path))
        if isinstance(term, tree.Constant | literal.Number | tree.Nil | tree.Dot):
            raise TemplateError(line, f"unexpected .{path[0]}: only maps have fields")
        return tree.Chain(term, tuple(path))

    def _term(self) -> tree.Operand | None:
        token = self._peek_word()
        if token.kind not in _OPERANDS:
            return None
        self._next()
        if token.kind == "(":
            return self._pipeline("parenthesis", ")")
        if token.kind == "word":
            return self._call(token)
        if token.kind == "variable":
            if token.text not in self._variables:
                raise TemplateError(token.line, f"undefined variable {token.text}")
            return tree.Variable(token.text, ())
        if token.kind == "field":
            return tree.Field((token.text[1:],))
        if token.kind == "bool":
            return tree.Constant(token.text == "true")
        if token.kind == "string":
            return tree.Constant(_literal(token))
        if token.kind in ("number", "character"):
            return _number(token)
        return tree.Dot() if token.kind == "dot" else tree.Nil()

    def _call(self, token: Token) -> tree.Call:
        if token.text not in self._functions:
            reason = REFUSED.get(token.text)
            why = f"is not available: it {reason}" if reason else "is not known here"
            raise TemplateError(token.line, f"function {token.text!r} {why}")
        self._tree.functions.add(token.text)
        return tree.Call(token.text)


def _literal(token: Token) -> str:
    try:
        return literal.unquoted(token.text)
    except literal.BadLiteral as wrong:
        raise TemplateError(token.line, str(wrong)) from None


def _number(token: Token) -> literal.Number:
    try:
        if token.kind == "character":
            code = literal.character(token.text)
            return literal.Number(token.text, code, float(code), looks_floating=False)
        return literal.number(token.text)
    except literal.BadLiteral as wrong:
        raise TemplateError(token.line, str(wrong)) from None


def _unexpected(token: Token, context: str) -> TemplateError:
    shown = "the end" if token.kind == "end of text" else f"{token.text[:20]!r}"
    return TemplateError(token.line, f"unexpected {shown} in {context}")
