"""Error analysis: its sums are conlleval's counts, its groups are counted again as defined."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncrf.data.labels import spans
from ncrf.data.sentence import Sentence
from ncrf.errors import InputError
from ncrf.evaluate.analysis import analyze
from ncrf.evaluate.confusion import Confused
from ncrf.evaluate.frequent_errors import Mention
from ncrf.evaluate.spans import TypeScore, score_accuracy, score_spans
from ncrf.evaluate.vocabulary_classes import VocabularyClasses


@dataclass
class Entity:
    label: str
    start: int
    end: int
    probability: float


@dataclass
class Guess:
    labels: list[str]
    spans: list[Entity] = field(default_factory=list)
    marginals: list[float] | None = None


def corpus(*sentences):
    """Sentences and guesses of ``word gold predicted`` cells, one string a sentence."""
    gold, guesses, line = [], [], 1
    for text in sentences:
        rows = [cell.split("/") for cell in text.split()]
        words, wanted, found = map(list, zip(*rows, strict=True))
        gold.append(Sentence(words, wanted, file="test.txt", line=line))
        guesses.append(Guess(found))
        line += len(rows) + 1
    return gold, guesses


LABELS = st.sampled_from(["O", *(f"{p}-{t}" for p in "BIES" for t in ("A", "B-C"))])


@st.composite
def random_corpora(draw):
    gold, guesses = [], []
    for size in draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)):
        words = draw(st.lists(st.sampled_from("abcd"), min_size=size, max_size=size))
        wanted = draw(st.lists(LABELS, min_size=size, max_size=size))
        kept = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        found = [g if k else draw(LABELS) for g, k in zip(wanted, kept, strict=True)]
        gold.append(Sentence(words, wanted))
        guesses.append(Guess(found))
    return gold, guesses


CLASSES = VocabularyClasses({"a", "b"}, {"a", "c"})


class TestEntities:
    @pytest.mark.parametrize("policy", ["conlleval", "strict"])
    @given(random_corpora())
    def test_all_sums_are_conllevals(self, policy, both):
        gold, guesses = both
        found = analyze(gold, guesses, scheme="BIOES", policy=policy, words=CLASSES, top=100)
        labels = [s.labels for s in gold], [g.labels for g in guesses]
        score = score_spans(*labels, policy=policy, scheme="BIOES")
        assert found.score == score and found.task == "entities"
        of = {k: found.errors.of_kind(k) for k in ("right", "type", "boundary", "both")}
        missed, spurious = found.errors.of_kind("missed"), found.errors.of_kind("spurious")
        assert of["right"] == score.correct
        assert sum(of.values()) + missed == score.gold
        assert sum(of.values()) + spurious == score.predicted
        for groups in (found.lengths, found.classes):
            for part, whole in (("support", "gold"), ("predicted",) * 2, ("correct",) * 2):
                assert sum(getattr(x, part) for x in groups.values()) == getattr(score, whole)
        counts = found.confusion.counts
        for name, row in score.per_type.items():
            assert sum(n for pair, n in counts.items() if pair.gold == name) == row.support
            assert sum(n for pair, n in counts.items() if pair.predicted == name) == row.predicted
            assert counts[Confused(name, name)] == row.correct
        assert counts[Confused(None, None)] == 0
        assert sum(x.count for x in found.frequent) == sum(of.values()) - of["right"] + (
            missed + spurious
        )

    @given(random_corpora())
    def test_groups_counted_again(self, both):
        gold, guesses = both
        found = analyze(gold, guesses, scheme="BIOES", words=CLASSES)
        length, kind = Counter(), Counter()
        for sentence, guess in zip(gold, guesses, strict=True):
            wanted, predicted = set(spans(sentence.labels)), set(spans(guess.labels))
            for place, side in enumerate((wanted, predicted, wanted & predicted)):
                for span in side:
                    words = set(sentence.words[span.start : span.end])
                    size = span.end - span.start
                    length[str(size) if size < 5 else "≥5", place] += 1
                    untrained, unembedded = words - {"a", "b"}, words - {"a", "c"}
                    both_missing = "OOBV" if untrained and unembedded else ""
                    one = "OOTV" if untrained else "OOEV" if unembedded else "IV"
                    kind[both_missing or one, place] += 1
        for counts, groups in ((length, found.lengths), (kind, found.classes)):
            names = {name for name, _ in counts}
            assert groups == {n: TypeScore(*(counts[n, i] for i in range(3))) for n in names}

    def test_by_hand(self):
        gold, guesses = corpus(
            "Bo/B-PER/B-LOC met/O/O Ann/B-PER/B-PER Lee/I-PER/O",
            "Bo/B-PER/B-LOC left/O/O the/O/B-ORG EU/B-ORG/I-ORG",
            "In/O/O York/B-LOC/O",
        )
        found = analyze(gold, guesses)
        assert {k: n for k, n in found.errors.counts.items() if n} == {
            ("type", "PER"): 2,
            ("boundary", "PER"): 1,
            ("boundary", "ORG"): 1,
            ("missed", "LOC"): 1,
        }
        assert found.confusion.counts == {
            Confused("PER", "LOC"): 2,
            Confused("PER", None): 1,
            Confused(None, "PER"): 1,
            Confused("ORG", None): 1,
            Confused(None, "ORG"): 1,
            Confused("LOC", None): 1,
        }
        assert found.confusion.mistakes() == [(Confused("PER", "LOC"), 2)]
        first = found.frequent[0]
        assert first.key == ("type", Mention("Bo", "PER"), Mention("Bo", "LOC"))
        assert (first.count, first.example.place) == (2, "test.txt:1")
        assert [x.key.kind for x in found.frequent] == ["type", "boundary", "boundary", "missed"]
        assert found.frequent[2].example == ("test.txt", 8, "Bo left", "the EU", "")
        assert found.frequent[3].key == ("missed", Mention("York", "LOC"), None)
        assert found.distinct_errors == 4
        assert len(analyze(gold, guesses, top=1).frequent) == 1

    def test_entities_of_five_words_and_more_are_one_group(self):
        sizes = (1, 2, 3, 4, 4, 5, 6, 9)
        labels = [label for n in sizes for label in ["B-A", *["I-A"] * (n - 1)]]
        sentence = Sentence(["x"] * len(labels), labels)
        found = analyze([sentence], [Guess(["O", *labels[1:]])])
        assert {name: (x.support, x.predicted, x.correct) for name, x in found.lengths.items()} == {
            "1": (1, 0, 0),
            "2": (1, 1, 1),
            "3": (1, 1, 1),
            "4": (2, 2, 2),
            "≥5": (3, 3, 3),
        }

    def test_an_example_is_cut(self):
        text = " ".join(["x/O/O"] * 7 + ["Bo/B-A/O"] + ["y/O/O"] * 5 + ["z/O/O"])
        (error,) = analyze(*corpus(text)).frequent
        assert (error.example.before, error.example.words) == ("… x x x x x", "Bo")
        assert error.example.after == "y y y y y …"
        assert error.example.line == 8

    def test_calibration_of_entities_and_labels(self):
        gold = [Sentence(["a", "b", "c"], ["b-A", "O", "B-A"])]
        guess = Guess(["B-A", "B-A", "O"], [Entity("A", 0, 1, 0.9), Entity("A", 1, 2, 0.3)])
        found = analyze(gold, [guess])
        assert found.entity_calibration.count == 2 and found.label_calibration is None
        assert found.entity_calibration.error == pytest.approx(0.5 * 0.1 + 0.5 * 0.3)
        guess.marginals = [0.8, 0.6, 0.55]
        labels = analyze(gold, [guess]).label_calibration
        # b-A and B-A say the same, as in the score.
        assert labels.right == pytest.approx(1 / 3) == found.score.accuracy
        assert labels.mean == pytest.approx(0.65)

    def test_ill_formed_entities_are_left_out_by_the_strict_policy(self):
        gold = [Sentence(["a", "b"], ["B-A", "O"])]
        guess = Guess(["I-A", "O"], [Entity("A", 0, 1, 0.5)])
        loose = analyze(gold, [guess], scheme="IOB2")
        strict = analyze(gold, [guess], scheme="IOB2", policy="strict")
        assert loose.score.correct == loose.entity_calibration.count == 1
        assert strict.score.correct == 0 and strict.entity_calibration is None
        assert strict.errors.of_kind("missed") == 1

    def test_nothing_to_find(self):
        found = analyze(*corpus("a/O/O"))
        assert found.errors.types == [] and found.lengths == {} and found.frequent == []


class TestLabels:
    @given(random_corpora())
    def test_plain_labels(self, both):
        gold, guesses = both
        found = analyze(gold, guesses, scheme="plain", words=CLASSES)
        score = score_accuracy([s.labels for s in gold], [g.labels for g in guesses])
        assert (found.task, found.score, found.errors) == ("labels", score, None)
        rows = [
            row
            for s, g in zip(gold, guesses, strict=True)
            for row in zip(s.words, s.labels, g.labels, strict=True)
        ]
        assert found.confusion.counts == Counter((g, p) for _, g, p in rows)
        names = {"a": "IV", "b": "OOEV", "c": "OOTV", "d": "OOBV"}
        right, whole = Counter(), Counter()
        for word, wanted, predicted in rows:
            whole[names[word]] += 1
            right[names[word]] += wanted == predicted
        assert found.classes == {n: TypeScore(k, k, right[n]) for n, k in whole.items()}
        wrong = Counter(row for row in rows if row[1] != row[2])
        kept = {
            (x.key.gold.text, x.key.gold.label, x.key.predicted.label): x.count
            for x in found.frequent
        }
        assert found.distinct_errors == len(wrong)
        assert all(wrong[key] == count for key, count in kept.items())
        assert sorted(kept.values()) == sorted(wrong.values())[-20:]

    def test_by_hand(self):
        gold, guesses = corpus("to/TO/IN to/IN/IN", "that/DT/IN to/TO/IN")
        guesses[0].marginals, guesses[1].marginals = [0.5, 0.75], [0.5, 0.5]
        found = analyze(gold, guesses, scheme="plain")
        assert found.score.accuracy == 0.25 and found.classes == {}
        assert found.confusion.mistakes() == [
            (Confused("TO", "IN"), 2),
            (Confused("DT", "IN"), 1),
        ]
        assert [(x.key.gold.text, x.count, x.example.line) for x in found.frequent] == [
            ("to", 2, 1),
            ("that", 1, 4),
        ]
        assert found.label_calibration.error == pytest.approx(0.75 * 0.5 + 0.25 * 0.25)

    def test_sentences(self):
        gold = [
            Sentence(["it", "was", "good"], ["pos"], file="f", line=3),
            Sentence(["bad"], ["neg"], file="f", line=4),
        ]
        found = analyze(gold, [Guess(["neg"]), Guess(["neg"])], classification=True, words=CLASSES)
        assert found.task == "sentences" and found.classes == {}
        assert found.score.accuracy == 0.5
        (error,) = found.frequent
        assert error.key.gold == ("it was good", "pos") and error.example.place == "f:3"


class TestMistakes:
    def test_no_gold_labels(self):
        with pytest.raises(InputError, match=r"^f:3: no labels to score"):
            analyze([Sentence(["a"], file="f", line=3)], [Guess(["O"])])

    def test_another_number_of_sentences_or_labels(self):
        gold, guesses = corpus("a/O/O", "b/O/O")
        with pytest.raises(InputError, match="1 predicted sentences"):
            analyze(gold, guesses[:1])
        with pytest.raises(InputError, match="2 gold labels and 1 predicted"):
            analyze([Sentence(["a", "b"], ["O", "O"])], [Guess(["O"])])

    def test_labels_that_the_model_does_not_have(self):
        gold, guesses = corpus("a/B-X/O b/O/O c/B-X/O d/B-Y/O")
        found = analyze(gold, guesses, known_labels=["O", "B-A"])
        assert found.unknown_labels == {"B-X": 2, "B-Y": 1}
        assert found.score.gold == 3
        with pytest.raises(InputError, match=r"^test.txt: not one of its labels .*B-X.*model's"):
            analyze(gold, guesses, known_labels=["NN", "VB"])
