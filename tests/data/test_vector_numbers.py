"""Numbers read many at once are those that float() reads one by one."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ncrf.data.vector_numbers import plain_numbers

digits = st.text("0123456789", max_size=25)
cells = st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), digits, digits)
doubles = st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda x: f"{x:.17f}")
short = st.floats(-9, 9).map(lambda x: f"{x:.5f}")


@given(st.lists(cells.filter(lambda cell: cell.strip("-") != ".") | doubles | short, min_size=1))
@example(["-0.0", "0.0"])
@example(["9007199254740993.0", "9.007199254740993"])  # 2^53 + 1
@example(["99999999.99999999", "90071992.54740991", "90071992.54740992", "90071992.54740993"])
@example(["16777217.0", "33554433.0", "0.1", "0.3000000119"])  # between two float32
@example(["340282346638528859811704183484516925440.0"])
def test_as_float_reads_them(texts):
    expected = np.array(list(map(float, texts)), np.float32)
    found = plain_numbers(" ".join(texts).encode())
    assert found is not None and found.dtype == np.float32
    assert found.tobytes() == expected.tobytes()  # signs of zeros too


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1", ".", "-", "-.", "1e5", "1.5e-05", "1.5e5", "nan", "inf", "+1.5", "1_0.5"),
        *("1.5  2.5", " 1.5", "1.5 ", "1.5\t2.5", "1.5\xa02.5", "1.5,2.5", "1.5\r", "1.5\n2.5"),
        *("1.2.3 4", "4 1.2.3", "1.5-2 3.5", "--1.5", "1-.5", "1.-5", "1.5 2-5.", "- .5", ". 1.5"),
        *("1/5.5", "1:5.5", "٣.٥", "0x1.8", "340282356779733661637539395458142568448.0"),
        "-" + "9" * 400 + ".0",
    ],
)
def test_any_other_form_is_left_to_others(text):
    assert plain_numbers(text.encode()) is None
    assert plain_numbers(f"0.25 {text}".encode()) is None
    assert plain_numbers(f"{text} 0.25".encode()) is None
