"""Interrupts at every line of some functions, as Ctrl-C may come at any."""

import sys
from collections import Counter
from functools import partial
from types import CodeType, FunctionType


def codes_of(*things):
    """Code of functions, and of all methods of classes, with what is defined inside them."""
    codes = set()
    for thing in things:
        if isinstance(thing, type):
            members = [*vars(thing).values()]
        elif isinstance(thing, property):
            members = [thing.fget]
        else:
            members = [thing]
        for member in members:
            if isinstance(member, property):
                member = member.fget
            member = getattr(member, "__wrapped__", member)  # a context manager's generator
            if isinstance(member, FunctionType):
                codes |= _with_inner(member.__code__)
    return frozenset(codes)


def _with_inner(code):
    inner = [_with_inner(const) for const in code.co_consts if isinstance(const, CodeType)]
    return {code}.union(*inner)


def press_ctrl_c():
    """Interrupt, as Python's own handler of the signal does."""
    raise KeyboardInterrupt


class Trace:
    """Runs a function and interrupts it before one of the lines that it comes to.

    Attributes:
        times: How often it came to each line, by code and line number (or byte code).
        at: Where it was interrupted; None where it was not.
    """

    def __init__(self, codes, *, every="line", interrupt=press_ctrl_c):
        self._codes, self._every, self._interrupt = codes, every, interrupt
        self.times, self.at = Counter(), None

    def run(self, work, place=None, count=0):
        """Call `work`; interrupt it before the `count`-th time that it comes to `place`."""
        self.times, self.at = Counter(), None
        self._place, self._count = place, count
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            return work()
        finally:
            sys.settrace(before)

    def _called(self, frame, event, arg):
        if frame.f_code not in self._codes:
            return None
        if self._every == "opcode":
            frame.f_trace_opcodes = True
        return self._came

    def _came(self, frame, event, arg):
        if event == self._every:
            number = frame.f_lineno if event == "line" else frame.f_lasti
            place = frame.f_code, number
            self.times[place] += 1
            if place == self._place and self.times[place] == self._count:
                self.at = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
                self._interrupt()
        return self._came


def interruptions(new, *things, **options):
    """Yield a trace and what interrupts work in it, for every place of some functions.

    `new` makes the work, which runs once as a whole to see to which places it comes; each is
    interrupted at the middle one of its visits.
    """
    trace = Trace(codes_of(*things), **options)
    trace.run(new())
    for place, times in dict(trace.times).items():
        yield trace, partial(trace.run, place=place, count=(times + 1) // 2)
