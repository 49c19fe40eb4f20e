"""Parts in threads: what they compute, their gradients, and their failures."""

import threading

import pytest
import torch

from ncrf.model.side_by_side import Part, side_by_side, thread_count, threads


def parts_of(seed):
    """Three products that share a parameter, one of them with an input that needs no gradient."""
    generator = torch.Generator().manual_seed(seed)
    shared = torch.randn(4, 4, generator=generator, requires_grad=True)
    inputs = [torch.randn(2, 4, generator=generator, requires_grad=n != 1) for n in range(3)]
    return shared, inputs, [Part(lambda x: torch.tanh(x @ shared), [x], [shared]) for x in inputs]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_values_and_gradients(count):
    shared, inputs, parts = parts_of(0)
    with threads(count):
        outputs = side_by_side(parts)
        torch.cat(outputs).square().sum().backward()
    plain, again, _ = parts_of(0)
    expected = torch.tanh(torch.cat(again) @ plain)
    expected.square().sum().backward()
    torch.testing.assert_close(torch.cat(outputs), expected)
    torch.testing.assert_close(shared.grad, plain.grad)
    assert inputs[1].grad is None
    for number in (0, 2):
        torch.testing.assert_close(inputs[number].grad, again[number].grad)


def test_threads_compute():
    barrier = threading.Barrier(3, timeout=20)

    def meet(values):
        barrier.wait()  # returns only if three threads are here at once
        return values

    with threads(3):
        met = side_by_side([Part(meet, [torch.ones(1, requires_grad=True)], [])] * 3)
    assert len(met) == 3 and not barrier.broken


def test_outside_of_training_there_is_one_thread():
    assert thread_count() == 1
    with threads(4):
        assert thread_count() == 4
        with torch.no_grad():
            assert thread_count() == 1
    assert thread_count() == 1


@pytest.mark.parametrize("failing", [0, 2])
def test_a_failure_is_raised_and_the_threads_end(failing):
    def fail(values):
        raise ValueError("no")

    before = threading.active_count()
    parts = [Part(torch.tanh, [torch.ones(2, requires_grad=True)], [])] * 3
    parts[failing] = Part(fail, [torch.ones(2, requires_grad=True)], [])
    with pytest.raises(ValueError, match="no"), threads(3):
        side_by_side(parts)
    assert threading.active_count() == before
