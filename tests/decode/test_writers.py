"""The layouts of decoding's output, written out by hand."""

import json

from ncrf.decode.prediction import Labeling, PredictedSpan, Prediction
from ncrf.decode.writers import classified_line, json_line, text_block

BEST = Labeling(["S-PER", "O"], 0.92171)
NBEST = [BEST, Labeling(["S-LOC", "O"], 0.051043), Labeling(["O", "O"], 0.0019316)]
SPANS = [PredictedSpan("PER", 0, 1, "Anna", 0.9303)]


def prediction(**more):
    return Prediction(["Anna", "left"], BEST.labels, BEST.probability, SPANS, **more)


def test_best_labels():
    assert text_block(prediction(), " ") == "Anna S-PER\nleft O\n\n"


def test_nbest_has_a_header_of_four_significant_digits():
    assert text_block(prediction(nbest=NBEST), " ") == (
        "# 0.9217 0.05104 0.001932\nAnna S-PER S-LOC O\nleft O O O\n\n"
    )


def test_marginals_are_the_last_column_and_tabs_stay_tabs():
    block = text_block(prediction(nbest=NBEST[:1], marginals=[0.93, 1.0]), "\t")
    assert block == "# 0.9217\nAnna\tS-PER\t0.93\nleft\tO\t1\n\n"


def test_an_empty_sentence_is_an_empty_block():
    assert text_block(Prediction([], [], 1.0, []), " ") == "\n"


def test_json_is_one_object_a_line():
    line = json_line(prediction(nbest=NBEST[:2], marginals=[0.93, 1.0]))
    assert line.endswith("\n") and line.count("\n") == 1
    assert json.loads(line) == {
        "tokens": ["Anna", "left"],
        "labels": ["S-PER", "O"],
        "probability": 0.92171,
        "spans": [{"label": "PER", "start": 0, "end": 1, "text": "Anna", "probability": 0.9303}],
        "nbest": [
            {"labels": ["S-PER", "O"], "probability": 0.92171},
            {"labels": ["S-LOC", "O"], "probability": 0.051043},
        ],
        "marginals": [0.93, 1.0],
    }
    assert set(json.loads(json_line(prediction()))) == {"tokens", "labels", "probability", "spans"}


def test_classified_sentences():
    best = Prediction(["it", "was", "good"], ["pos"], 0.75, [])
    assert classified_line(best) == "it was good\tpos\n"
    both = Prediction(
        best.tokens, ["pos"], 0.75, [], nbest=[Labeling(["pos"], 0.75), Labeling(["neg"], 0.25)]
    )
    assert classified_line(both) == "it was good\tpos 0.75\tneg 0.25\n"
