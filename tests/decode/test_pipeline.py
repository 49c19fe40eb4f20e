"""Work in several threads: in order, bounded, and errors where they belong."""

import sys
import threading
import time

import pytest
import torch

from ncrf.decode.pipeline import in_order, sharing_cores


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_come_in_order(threads):
    def work(number):
        time.sleep(0.002 * (number % 3 == 0))
        return number * number

    assert list(in_order(work, range(20), threads)) == [n * n for n in range(20)]


def test_work_is_shared_and_reading_does_not_run_ahead():
    read, busy = [], set()

    def items():
        for number in range(12):
            read.append(number)
            yield number

    def work(number):
        busy.add(threading.get_ident())
        time.sleep(0.003)
        return number

    for done, result in enumerate(in_order(work, items(), 2)):
        assert result == done
        assert len(read) - done <= 4
    assert len(busy) == 2


def test_an_error_comes_after_the_results_before_it():
    def work(number):
        if number == 3:
            raise ValueError("three")
        return number

    results = in_order(work, range(10), 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)


def test_an_error_of_the_reader_ends_it_too():
    def items():
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(in_order(lambda n: n, items(), 2))


def test_the_settings_of_the_process_come_back():
    before = torch.get_num_threads(), sys.getswitchinterval()
    with pytest.raises(KeyError), sharing_cores(2):
        assert torch.get_num_threads() == 1
        raise KeyError
    assert (torch.get_num_threads(), sys.getswitchinterval()) == before
