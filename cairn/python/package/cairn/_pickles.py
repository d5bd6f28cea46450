# SPDX-License-Identifier: Apache-2.0
"""Reads pickles without executing them: names stay names, and calls stay uncalled."""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_MAX_BYTES = 64 << 20
_KEYS = (type(None), bool, int, float, str, bytes)
_MARK = object()


class Undecodable(ValueError):
    """No pickle, or one that only execution could make sense of."""


@dataclass(frozen=True)
class Name:
    """Of a class or function. Nobody has looked it up."""

    module: str
    qualname: str

    @property
    def text(self) -> str:
        return f"{self.module}:{self.qualname}"


@dataclass(eq=False)
class Call:
    """Of a name with arguments; nobody has called it."""

    what: Any
    arguments: Any
    state: Any = None


def decode(data: bytes) -> Any:
    """What a pickle describes, of plain values, Name and Call. Takes time and memory in proportion
    to the bytes. Values may be shared and contain themselves: walk them with a limit."""
    if len(data) > _MAX_BYTES:
        raise Undecodable(f"a pickle of {len(data)} bytes; at most {_MAX_BYTES} are read")
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                return machine.pop()
            machine.step(opcode.name, argument)
    except Undecodable:
        raise
    except Exception as error:  # genops raises much, for bytes that are no pickle
        raise Undecodable(f"no pickle: {error}") from None
    raise Undecodable("no pickle: it has no end")


class _Machine:
    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        if name in _CONSTANTS:
            self._stack.append(argument)
        elif name in _SINGLE:
            self._stack.append(_SINGLE[name]())
        elif name in _STEPS:
            _STEPS[name](self, argument)
        elif name not in ("PROTO", "FRAME"):
            raise Undecodable(f"{name} is not understood")

    def pop(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise Undecodable("no pickle: the stack is empty")
        return self._stack.pop()

    def top(self, kind: type) -> Any:
        if not self._stack or type(self._stack[-1]) is not kind:
            raise Undecodable(f"no pickle: there is no {kind.__name__} to fill")
        return self._stack[-1]

    def mark(self, _: Any) -> None:
        self._stack.append(_MARK)

    def above_mark(self) -> list[Any]:
        above: list[Any] = []
        while self._stack:
            item = self._stack.pop()
            if item is _MARK:
                return above[::-1]
            above.append(item)
        raise Undecodable("no pickle: there is no mark")

    def memoize(self, _: Any) -> None:
        self.put(len(self._memo))

    def put(self, number: int) -> None:
        if not self._stack:
            raise Undecodable("no pickle: the stack is empty")
        self._memo[number] = self._stack[-1]

    def get(self, number: int) -> None:
        self._stack.append(self._memo[number])

    def tuple_of(self, count: int) -> None:
        items = [self.pop() for _ in range(count)]
        self._stack.append(tuple(items[::-1]))

    def tuple_above(self, _: Any) -> None:
        self._stack.append(tuple(self.above_mark()))

    def append(self, _: Any) -> None:
        item = self.pop()
        self.top(list).append(item)

    def appends(self, _: Any) -> None:
        items = self.above_mark()
        self.top(list).extend(items)

    def set_items(self, pairs: list[Any]) -> None:
        # The hash of a tuple that shares its parts may take for ever.
        if len(pairs) % 2 or any(type(key) not in _KEYS for key in pairs[::2]):
            raise Undecodable("a dict with keys that are no plain values")
        self.top(dict).update(zip(pairs[::2], pairs[1::2], strict=True))

    def set_item(self, _: Any) -> None:
        value, key = self.pop(), self.pop()
        self.set_items([key, value])

    def name(self, module: Any, qualname: Any) -> None:
        if type(module) is not str or type(qualname) is not str:
            raise Undecodable("no pickle: a name that is no text")
        self._stack.append(Name(module, qualname))

    def stack_global(self, _: Any) -> None:
        qualname, module = self.pop(), self.pop()
        self.name(module, qualname)

    def old_global(self, argument: str) -> None:
        self.name(*argument.split(" ", 1))

    def call(self, _: Any) -> None:
        arguments, what = self.pop(), self.pop()
        self._stack.append(Call(what, arguments))

    def build(self, _: Any) -> None:
        state = self.pop()
        self.top(Call).state = state


_CONSTANTS = frozenset((
    "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG", "BINFLOAT", "FLOAT",
    "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE", "SHORT_BINBYTES", "BINBYTES",
    "BINBYTES8"))
_SINGLE: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
    "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_DICT": dict}
_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "MARK": _Machine.mark, "MEMOIZE": _Machine.memoize,
    "PUT": _Machine.put, "BINPUT": _Machine.put, "LONG_BINPUT": _Machine.put,
    "GET": _Machine.get, "BINGET": _Machine.get, "LONG_BINGET": _Machine.get,
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "TUPLE": _Machine.tuple_above, "APPEND": _Machine.append, "APPENDS": _Machine.appends,
    "SETITEM": _Machine.set_item,
    "SETITEMS": lambda machine, _: machine.set_items(machine.above_mark()),
    "STACK_GLOBAL": _Machine.stack_global, "GLOBAL": _Machine.old_global,
    "NEWOBJ": _Machine.call, "REDUCE": _Machine.call, "BUILD": _Machine.build}
