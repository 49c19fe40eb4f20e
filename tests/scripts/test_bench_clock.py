"""The clock on another program's functions: each second is counted once, under one stage."""

import sys
import threading
import time
import types

import pytest
from benchmark.clock import Clock, watch


@pytest.fixture
def ticks(monkeypatch):
    """A time that goes on by itself only where a test says so."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def work(seconds):
        now[0] += seconds

    return work


@pytest.fixture
def program(monkeypatch, ticks):
    """A package of two modules; the second has a function of the first under another name."""
    first = types.ModuleType("clocked.first")
    first.work = ticks
    code = """
def read():
    for number in range(3):
        work(1)
        yield number

def outer():
    work(10)
    inner()
    work(10)

def inner():
    work(5)

def _private():
    work(100)

class Layer:
    def forward(self):
        work(2)
        return "base"

    @classmethod
    def build(cls):
        work(3)
        return cls()

class Other(Layer):
    def forward(self):
        work(4)
        return super().forward()
"""
    exec(code, vars(first))
    second = types.ModuleType("clocked.second")
    second.renamed = first.inner
    for name, module in (
        ("clocked", types.ModuleType("clocked")),
        ("clocked.first", first),
        ("clocked.second", second),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    return first, second


def test_a_stage_inside_another_is_counted_once(program):
    first, second = program
    clock = Clock()
    stages = {"a": ["clocked.first:outer"], "b": ["clocked.first:inner"]}
    assert watch(clock, stages, "clocked") == []
    first.outer()
    second.renamed()
    assert clock.seconds == {"a": 20, "b": 10}
    assert clock.calls == {"a": 1, "b": 2}


def test_generators_count_while_they_run(program, ticks):
    first, _ = program
    clock = Clock()
    watch(clock, {"reading": ["clocked.first:read"]}, "clocked")
    for _ in first.read():
        ticks(50)
    assert clock.seconds == {"reading": 3} and clock.calls == {"reading": 1}


def test_methods_of_subclasses_and_class_methods(program):
    first, _ = program
    clock = Clock()
    names = ["clocked.first:Layer.forward", "clocked.first:Layer.build"]
    assert watch(clock, {"layer": names}, "clocked") == []
    assert first.Other.build().forward() == "base"
    assert isinstance(first.Other.build(), first.Other)
    assert clock.seconds == {"layer": 12}


def test_all_public_functions_of_a_module(program):
    first, second = program
    clock = Clock()
    assert watch(clock, {"all": ["clocked.first:*"]}, "clocked") == []
    second.renamed()
    first._private()
    assert clock.seconds == {"all": 5}


def test_names_that_are_gone_are_said(program):
    names = ["clocked.first:gone", "clocked.first:Layer.gone", "clocked.first:Gone.forward"]
    names += ["clocked.missing:f", "clocked.second:*"]
    assert watch(Clock(), {"a": names}, "clocked") == names


def test_an_error_ends_its_stage(ticks):
    clock = Clock()

    def fail():
        ticks(1)
        raise KeyError

    with pytest.raises(KeyError):
        clock.timed("a", fail)()
    clock.timed("b", ticks)(2)
    assert clock.seconds == {"a": 1, "b": 2}


def test_other_threads_count_aside(ticks):
    clock = Clock()
    assembled = clock.timed("batch", ticks)

    def main():
        thread = threading.Thread(target=assembled, args=(7,))
        thread.start()
        thread.join()

    clock.timed("step", main)()
    assert clock.aside == {"batch": 7} and clock.seconds == {"step": 7}


def test_work_that_was_only_started_is_waited_for(ticks):
    waited = []
    clock = Clock(lambda: (waited.append(1), ticks(3)))
    clock.timed("a", ticks)(1)
    assert clock.seconds == {"a": 4} and len(waited) == 2
