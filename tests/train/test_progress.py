"""Signs that a training goes wrong are said, and said once."""

import logging

import pytest

from ncrf.evaluate.spans import Score
from ncrf.train.progress import GradientWatch, Progress, watch_entities, watch_loss


def score(predicted, gold=5, kind="spans"):
    return Score(kind, gold, predicted, 0, sentences=3, tokens=20, correct_tokens=15)


def warnings_of(caplog):
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([score(0)] * 3, 1),
        ([score(0)] * 9, 1),
        ([score(0), score(0), score(1), score(0), score(0)], 0),
        ([score(0, gold=0)] * 3, 0),
        ([score(0, kind="labels")] * 3, 0),
        ([score(0)] * 3 + [score(2)] + [score(0)] * 3, 1),
    ],
)
def test_no_entity_for_three_epochs(scores, said, caplog):
    progress = Progress()
    with caplog.at_level(logging.WARNING, "ncrf"):
        for one in scores:
            watch_entities(progress, one)
    assert len(warnings_of(caplog)) == said
    assert all("no entity was predicted" in text for text in warnings_of(caplog))


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ([20.0, 10.0, 5.0, 6.0], 0),
        ([43.0, 39.0], 0),  # a little above guessing, as before the first step
        ([61.0, 200.0], 1),
        ([10.0, 2.0, 7.0], 1),
        ([0.01, 0.05, 0.2], 0),  # near nothing, a multiple of the lowest says nothing
    ],
)
def test_a_loss_that_explodes(losses, said, caplog):
    progress = Progress()
    with caplog.at_level(logging.WARNING, "ncrf"):
        for epoch, loss in enumerate(losses):
            progress.epoch = epoch
            watch_loss(progress, loss, guessing=40.0)
            progress.history.append({"loss": loss})
    assert len(warnings_of(caplog)) == said
    assert all("clip=5" in text and "epoch" in text for text in warnings_of(caplog))


def test_a_gradient_far_longer_than_usual():
    watch = GradientWatch()
    assert not any(watch.far_above(norm) for norm in [1500.0, 50.0] * 10 + [50.0] * 80)
    assert watch.usual == 50.0
    assert not watch.far_above(1000.0)
    assert watch.far_above(1001.0)
    assert watch.bound() == 200.0
    # Towards the end gradients are short; what was usual before still does no harm.
    assert not any(watch.far_above(norm) for norm in [5.0] * 98 + [900.0])
    assert watch.usual == 50.0 and watch.far_above(1001.0)


def test_what_was_said_before_a_resume_is_not_said_again(caplog):
    first = Progress()
    first.say_once("key", "message")
    again = Progress(**vars(first))
    caplog.clear()
    again.say_once("key", "message")
    assert not caplog.records
