"""The grammar of the shell: text to a tree."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from homeport.sim.machine.shell.token import SyntaxProblem, Token, tokens


@dataclass(slots=True)
class Redirect:
    operator: str  # >, >>, <, << or &>
    target: str  # a word; of << the document itself
    fd: str = ""
    expands: bool = True


@dataclass(slots=True)
class Simple:
    words: list[str] = field(default_factory=list)
    assignments: list[tuple[str, str]] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)


@dataclass(slots=True)
class Pipeline:
    commands: list[Command]
    negated: bool = False


@dataclass(slots=True)
class AndOr:
    first: Node
    rest: list[tuple[str, Node]]


@dataclass(slots=True)
class Sequence:
    items: list[Node]


@dataclass(slots=True)
class If:
    branches: list[tuple[Node, Node]]
    otherwise: Node | None


@dataclass(slots=True)
class For:
    name: str
    words: list[str]
    body: Node


@dataclass(slots=True)
class Loop:
    test: Node
    body: Node
    until: bool


@dataclass(slots=True)
class Case:
    word: str
    branches: list[tuple[list[str], Node]]


@dataclass(slots=True)
class Function:
    name: str
    body: Node


@dataclass(slots=True)
class Group:
    body: Node
    redirects: list[Redirect]


Command = Simple | If | For | Loop | Case | Group | Function
Node = Command | Pipeline | AndOr | Sequence

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_WORDS = frozenset(("if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "esac", "{", "}", "!"))


def parse(text: str) -> Node:
    parser = _Parser(tokens(text))
    tree = parser.sequence(())
    if parser.peek().kind != "end":
        raise SyntaxProblem(f"Syntax error: {parser.peek().text!r} unexpected")
    return tree


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _is(self, *words: str) -> bool:
        token = self.peek()
        return token.kind in ("word", "op") and not token.quoted and token.text in words

    def _accept(self, *words: str) -> bool:
        if self._is(*words):
            self._at += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise SyntaxProblem(f"Syntax error: {self.peek().text!r} unexpected (expecting {word!r})")

    def sequence(self, stop: tuple[str, ...]) -> Sequence:
        items: list[Node] = []
        while True:
            while self._accept(";", "\n", "&"):
                pass
            if self.peek().kind == "end" or self._is(*stop, ")"):
                return Sequence(items)
            items.append(self._and_or())

    def _and_or(self) -> Node:
        first = self._pipeline()
        rest: list[tuple[str, Node]] = []
        while self._is("&&", "||"):
            operator = self._next().text
            while self._accept("\n"):
                pass
            rest.append((operator, self._pipeline()))
        return AndOr(first, rest) if rest else first

    def _pipeline(self) -> Node:
        negated = self._accept("!")
        commands = [self._command()]
        while self._accept("|"):
            while self._accept("\n"):
                pass
            commands.append(self._command())
        return commands[0] if len(commands) == 1 and not negated else Pipeline(commands, negated)

    def _command(self) -> Command:
        if self._accept("if"):
            return self._wrapped(self._if())
        if self._accept("for"):
            return self._wrapped(self._for())
        if self._is("while", "until"):
            until = self._next().text == "until"
            test = self.sequence(("do",))
            self._expect("do")
            body = self.sequence(("done",))
            self._expect("done")
            return self._wrapped(Loop(test, body, until))
        if self._accept("{"):
            body = self.sequence(("}",))
            self._expect("}")
            return Group(body, self._redirects())
        if self._accept("("):
            body = self.sequence(())
            self._expect(")")
            return Group(body, self._redirects())
        if self._accept("case"):
            return self._wrapped(self._case())
        return self._simple()

    def _wrapped(self, command: If | For | Loop | Case) -> Command:
        redirects = self._redirects()
        return Group(command, redirects) if redirects else command

    def _if(self) -> If:
        branches: list[tuple[Node, Node]] = []
        otherwise: Node | None = None
        while True:
            test = self.sequence(("then",))
            self._expect("then")
            branches.append((test, self.sequence(("elif", "else", "fi"))))
            if self._accept("elif"):
                continue
            if self._accept("else"):
                otherwise = self.sequence(("fi",))
            self._expect("fi")
            return If(branches, otherwise)

    def _for(self) -> For:
        name = self._next().text
        words: list[str] = []
        if self._accept("in"):
            while self.peek().kind == "word":
                words.append(self._next().text)
        while self._accept(";", "\n"):
            pass
        self._expect("do")
        body = self.sequence(("done",))
        self._expect("done")
        return For(name, words, body)

    def _case(self) -> Case:
        word = self._next().text
        self._skip_lines()
        self._expect("in")
        branches: list[tuple[list[str], Node]] = []
        self._skip_lines()
        while not self._accept("esac"):
            self._accept("(")
            patterns = [self._next().text]
            while self._accept("|"):
                patterns.append(self._next().text)
            self._expect(")")
            branches.append((patterns, self.sequence((";;", "esac"))))
            if not self._is("esac"):
                self._expect(";;")
            self._skip_lines()
        return Case(word, branches)

    def _skip_lines(self) -> None:
        while self._accept("\n"):
            pass

    def _redirects(self) -> list[Redirect]:
        found: list[Redirect] = []
        while self.peek().kind == "redirect":
            found.append(self._redirect())
        return found

    def _redirect(self) -> Redirect:
        token, target = self._next(), self._next()
        if target.kind != "word":
            raise SyntaxProblem(f"Syntax error: {target.text!r} unexpected after {token.text}")
        if token.document is not None:
            return Redirect("<<", token.document, token.fd, expands=not token.quoted)
        if token.text in (">&", "<&"):
            return Redirect(">", "&" + target.text, token.fd)
        return Redirect("&>" if token.text.startswith("&>") else token.text, target.text, token.fd)

    def _simple(self) -> Command:
        made = Simple()
        while True:
            token = self.peek()
            if token.kind == "redirect":
                made.redirects.append(self._redirect())
            elif token.kind == "word":
                self._at += 1
                found = None if token.quoted or made.words else _ASSIGNMENT.fullmatch(token.text)
                if found is not None:
                    made.assignments.append((found.group(1), found.group(2)))
                else:
                    made.words.append(token.text)
            elif token.text == "(" and len(made.words) == 1 and not made.assignments:
                self._at += 1
                self._expect(")")
                while self._accept("\n"):
                    pass
                return Function(made.words[0], self._command())
            else:
                break
        if not made.words and not made.assignments and not made.redirects:
            raise SyntaxProblem(f"Syntax error: {self.peek().text!r} unexpected")
        if made.words and made.words[0] in _WORDS:
            raise SyntaxProblem(f"Syntax error: {made.words[0]!r} unexpected")
        return made
