"""What is said of corpora, against counts made by hand."""

import io

import pytest

from ncrf.config import load_config
from ncrf.data.inspection import Inspector, vector_coverage
from ncrf.data.inspection_report import coverage_lines, report_lines
from ncrf.errors import InputError
from tests.conftest import SAMPLE

TRAIN = """-DOCSTART- O

Anna B-PER
met O
Bo B-PER
Lee I-PER

in O
1996 O

met O
in O
Oslo B-LOC

in O
1996 O

"""
DEV = """in O
1996 O

Anna I-PER
flew O
to O
Oslo B-LOC
City B-ORG

in O
1996 O

1997 O
Internationalization I-LOC

"""


@pytest.fixture
def inspect(tmp_path):
    """Write files and inspect them one after another; returns their reports."""

    def run(*texts, keep=5, labelled=True, **keys):
        inspector = Inspector(load_config(keys, check_files=False), keep=keep)
        reports = []
        for number, text in enumerate(texts):
            path = tmp_path / f"file{number}"
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            reports.append(inspector.inspect(str(path), labelled=labelled or not number))
        return reports

    return run


class TestOneFile:
    def test_counts(self, inspect):
        (report,) = inspect(TRAIN)
        assert (report.sentences, report.tokens, report.boundaries) == (4, 11, 1)
        assert report.format.columns == ("word", "label")
        assert (report.scheme, report.scheme_source) == ("IOB2", "detected")
        assert report.entities == {"PER": 2, "LOC": 1}
        assert report.labels == {"B-PER": 2, "I-PER": 1, "O": 7, "B-LOC": 1}
        assert (report.ill_formed.sentences, report.ill_formed.places.count) == (0, 0)

    def test_longest(self, inspect):
        (report,) = inspect(TRAIN + "\nInternationalization O\n")
        sentence, word = report.longest_sentence, report.longest_word
        assert (sentence.length, sentence.line) == (4, 3)
        assert (word.length, word.line, word.text) == (20, 19, "Internationalization")
        (report,) = inspect("a O\n\nb O\n")  # of equals the first
        assert (report.longest_sentence.line, report.longest_word.line) == (1, 1)

    def test_repeated_sentences(self, inspect):
        (report,) = inspect(TRAIN + "in O\n1996 O\n")
        assert report.repeated.count == 2
        assert report.repeated.first == [(15, "as line 8"), (18, "as line 8")]

    def test_sentences_that_only_look_alike(self, inspect):
        (report,) = inspect("a b\tO\n\na\tO\nb\tO\n\nab\tO\n\nb\tO\na\tO\n")
        assert (report.sentences, report.repeated.count) == (4, 0)

    def test_ill_formed_labels(self, inspect):
        (report,) = inspect("a B-X\n\nb O\nc I-X\nd I-Y\n\ne I-X\n\nf B-X\n\ng B-Y\n", keep=2)
        assert (report.ill_formed.sentences, report.ill_formed.places.count) == (2, 3)
        assert report.ill_formed.places.first == [(4, "I-X after O"), (5, "I-Y after I-X")]
        assert report.entities == {"X": 4, "Y": 2}
        (report,) = inspect("a B-X\n\nb O\nc I-X\nd I-Y\n\ne I-X\n\nf B-X\n\ng B-Y\n", keep=None)
        assert len(report.ill_formed.places.first) == 3

    def test_lines_where_comments_stand_between_words(self, inspect):
        (report,) = inspect("a B-X\n# note\nb I-Y\n\nc B-X\n", comment_prefix="#")
        assert report.ill_formed.places.first == [(3, "I-Y after B-X")]

    def test_plain_labels(self, inspect):
        (report,) = inspect("Oslo NNP\nis VBZ\nBergen NNP\n")
        assert (report.scheme, report.ill_formed) == ("plain", None)
        assert report.labels == {"NNP": 2, "VBZ": 1}

    def test_segmentation(self, inspect):
        (report,) = inspect("我 B\n爱 E\n你 S\n")
        assert (report.scheme, report.entities) == ("BMES", {"": 2})

    def test_a_declared_scheme(self, inspect):
        (report,) = inspect("Oslo B-LOC\n", input_scheme="BIOES")
        assert (report.scheme, report.scheme_source) == ("BIOES", "declared")
        assert report.ill_formed.places.first == [(1, "B-LOC at the end of a sentence")]

    def test_a_scheme_that_cannot_be_told(self, inspect):
        (report,) = inspect("a B-X\n\nb L-X\nc E-X\n")
        assert report.scheme is None and report.ill_formed is None
        assert "no label scheme has the prefixes" in str(report.scheme_error)
        assert report.scheme_error.file.endswith("file0")
        assert report.labels == {"B-X": 1, "L-X": 1, "E-X": 1}

    def test_sentence_classification(self, inspect):
        (report,) = inspect("a fine day ||| good\nno ||| bad\n", sentence_classification=True)
        assert (report.sentences, report.tokens, report.scheme) == (2, 4, "plain")
        assert report.labels == {"good": 1, "bad": 1}

    def test_labels_known_in_part(self, inspect):
        # Without lines 2 and 4 nothing but BIOES is left; next to a ? nothing is ill-formed.
        text = "a S-X\nb ?\nc I-X\nd ?\ne I-X\nf O\n\ng B-X\nh E-X\n\ni ?\n\nj B-X|O\nk O\n"
        (report,) = inspect(text, partial_labels="sets")
        assert (report.scheme, report.sentences) == ("BIOES", 4)
        assert (report.partial, report.partial_sentences) == (4, 3)
        assert report.labels == {"S-X": 1, "I-X": 2, "O": 2, "B-X": 1, "E-X": 1}
        assert report.entities == {"X": 4}
        assert report.ill_formed.places.first == [(6, "O after I-X")]
        (report,) = inspect(text)  # B-X|O is then the begin of a type X|O
        assert (report.partial, report.partial_sentences) == (3, 2)
        assert report.entities == {"X": 4, "X|O": 1}
        (report,) = inspect(text, partial_labels="none")
        assert report.partial == 0 and report.labels["?"] == 3
        assert "label '?', in this sentence, has no prefix" in str(report.scheme_error)

    def test_sample_data_has_its_sizes(self):
        report = Inspector(load_config({}, check_files=False)).inspect(str(SAMPLE / "train.bioes"))
        text = (SAMPLE / "train.bioes").read_text()
        assert report.sentences == 600 == text.count("\n\n")
        assert report.tokens == len([line for line in text.splitlines() if line])
        assert report.entities.total() == text.count(" B-") + text.count(" S-")

    def test_standard_input(self, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TRAIN.encode())))
        report = Inspector(load_config({}, check_files=False)).inspect("-")
        assert (report.file, report.sentences, report.scheme) == ("<stdin>", 4, "IOB2")


class TestSeveralFiles:
    def test_sentences_that_an_earlier_file_has(self, inspect):
        _, dev, third = inspect(TRAIN, DEV, "in O\n1996 O\n\n1997 O\n")
        assert dev.repeated.first == [(10, "as line 1")]
        (shared,) = dev.shared.values()
        assert (shared.count, shared.first) == (2, [(1, "there line 8"), (10, "there line 8")])
        assert [found.count for found in third.shared.values()] == [1, 1]

    def test_new_labels(self, inspect):
        first, dev = inspect(TRAIN, DEV)
        assert not first.new_labels
        assert {k: (v.count, v.first[0][0]) for k, v in dev.new_labels.items()} == {
            "B-ORG": (1, 8),
            "I-LOC": (1, 14),
        }

    def test_new_labels_are_those_that_training_would_not_know(self, inspect):
        # Training turns IOB1 into BIO: then B-LOC, which only dev spells out, is known.
        _, dev = inspect("Oslo I-LOC\nand O\n\nBo I-PER\n", "Oslo I-LOC\nBergen B-LOC\n")
        assert dev.scheme == "IOB1" and not dev.new_labels
        _, dev = inspect("a B-X\nb I-X\n", "a B-X\n", tag_scheme="BIOES")
        assert list(dev.new_labels) == ["S-X"]

    def test_a_label_known_in_part_is_no_label_of_the_model(self, inspect):
        first, second = inspect("a B-X\n\nb ?\n", "c ?\nd B-X\n")
        assert first.new_labels == {} and second.partial == 1
        assert {label: f.count for label, f in second.new_labels.items()} == {"?": 1}

    def test_new_words(self, inspect):
        _, dev = inspect(TRAIN, DEV)
        # flew, to, City, 1997, Internationalization; 1997 is 0000 as 1996 is.
        assert dev.new_words == (5, 5)
        assert dev.new_normalized == (4, 4)
        _, dev = inspect(TRAIN, DEV * 2, number_normalized=False)
        assert (dev.new_words, dev.new_normalized) == ((5, 10), None)

    def test_another_scheme_than_the_first_file_has(self, inspect):
        _, dev = inspect(TRAIN, "Oslo B-LOC\nCity E-LOC\n\nBo S-PER\n")
        assert (dev.scheme, dev.scheme_source) == ("BIOES", "detected")
        assert dev.ill_formed.sentences == 0
        assert set(dev.new_labels) == {"E-LOC", "S-PER"}

    def test_a_part_of_the_first_files_scheme_is_that_scheme(self, inspect):
        bilou = "a B-X\nb I-X\nc L-X\nd U-X\n"
        _, dev = inspect(bilou, "a O\n")
        assert (dev.scheme, dev.scheme_source) == ("BILOU", "as in the first file")
        _, dev = inspect("a I-X\n\nb I-X\n", "a O\n")
        assert (dev.scheme, dev.scheme_source) == ("IOB1", "as in the first file")
        _, dev = inspect("a B\nb M\nc E\nd S\n", "a B\nb E\n\nc S\n")
        assert dev.scheme == "BMES"

    def test_a_later_file_may_lack_labels(self, inspect):
        _, raw = inspect(TRAIN, "Oslo\n\nflew\n", labelled=False)
        assert (raw.scheme, raw.scheme_source) == (None, "no labels")
        assert raw.new_words == (1, 1) and not raw.labels
        with pytest.raises(InputError, match="1 column found"):
            inspect(TRAIN, "Oslo\n\nflew\n")

    def test_nothing_is_compared_with_a_first_file_that_cannot_be_read(self, tmp_path):
        inspector = Inspector(load_config({}, check_files=False))
        with pytest.raises(InputError, match="no such file"):
            inspector.inspect(str(tmp_path / "nothing"))
        (tmp_path / "dev").write_text(DEV)
        report = inspector.inspect(str(tmp_path / "dev"))
        assert inspector.first is None and not report.new_labels and report.sentences == 4


@pytest.mark.parametrize("text", ["", "-DOCSTART- O\n\n", "\n \n"])
def test_a_file_without_a_sentence_is_an_error(text, inspect):
    with pytest.raises(InputError, match="file0: holds no sentence"):
        inspect(text)


def test_a_file_that_cannot_be_read_is_an_error(inspect):
    with pytest.raises(InputError, match="file0:2: byte 0xff"):
        inspect(b"Oslo B-LOC\n\xff O\n")


class TestCoverage:
    VECTORS = "anna 1 0\n1996 1 0\nin 0 1\nmet 1 1\nOslo 0 0\n"

    def covered(self, inspect, tmp_path, **keys):
        (tmp_path / "vectors").write_text(self.VECTORS)
        reports = inspect(TRAIN, DEV, **keys)
        config = load_config(keys, check_files=False)
        return vector_coverage(config, str(tmp_path / "vectors"), reports)

    def test_each_file(self, inspect, tmp_path):
        (_, train), (_, dev) = self.covered(inspect, tmp_path)
        # in 3, 1996 2 (as the form that 0000 stands for), met 2, Oslo 1; Anna; Bo, Lee
        assert (train.exact, train.lower, train.missing) == ((4, 8), (1, 1), (2, 2))
        # in 2, Oslo 1, 0000 3 times; Anna; flew, to, City, Internationalization
        assert (dev.exact, dev.lower, dev.missing) == ((3, 6), (1, 1), (4, 4))

    def test_words_as_they_stand(self, inspect, tmp_path):
        _, (_, dev) = self.covered(inspect, tmp_path, number_normalized=False)
        # in 2, 1996 2, Oslo 1; Anna; 1997 too is not found
        assert (dev.exact, dev.lower, dev.missing) == ((3, 5), (1, 1), (5, 5))

    def test_report(self, inspect, tmp_path):
        found = self.covered(inspect, tmp_path)[:1]
        found[0][0].file = "train"
        assert coverage_lines("vectors", found) == [
            "vectors vectors",
            "  train",
            "    found exactly: 4 (57.1 %) types, 8 (72.7 %) tokens",
            "    found lower-cased: 1 (14.3 %) types, 1 (9.1 %) tokens",
            "    not found: 2 (28.6 %) types, 2 (18.2 %) tokens",
        ]
        (tmp_path / "vectors").write_text("nothing 1 0\n")
        reports = [report for report, _ in found]
        coverage = vector_coverage(
            load_config({}, check_files=False), str(tmp_path / "vectors"), reports
        )
        assert "warning: only 0.0 % of the tokens" in coverage_lines("vectors", coverage)[-1]


class TestReport:
    def lines(self, inspect, *texts, everything=False, **keys):
        reports = inspect(*texts, keep=None if everything else 1, **keys)
        reports[0].file = "train"
        reports[-1].shared = dict(zip(["train"], reports[-1].shared.values(), strict=False))
        reports[-1].file = "dev" if len(reports) > 1 else "train"
        first = reports[0] if len(reports) > 1 else None
        return report_lines(reports[-1], first, everything=everything)

    def test_the_first_file(self, inspect):
        assert self.lines(inspect, TRAIN) == [
            "train",
            "  sentences   4 + 1 -DOCSTART-, tokens 11",
            "  columns     word,label (spaces)",
            "  scheme      IOB2 (detected)",
            "  entities    3: PER 2, LOC 1",
            "  ill-formed  none",
            "  duplicates  1 (25.0 %) stand in this file before: line 15 (as line 8)",
            "  longest     sentence 4 words (line 3), word 4 characters (line 3): Anna",
        ]

    def test_labels_known_in_part(self, inspect):
        lines = self.lines(inspect, "a B-X\nb ?\n\nc O\n\n")
        assert lines[5] == "  partial     1 label known in part, in 1 sentence"
        lines = self.lines(inspect, "a ?\n\nb ?\n")
        assert lines[4] == "  partial     2 labels known in part, in 2 sentences"

    def test_a_later_file(self, inspect):
        assert self.lines(inspect, TRAIN, DEV) == [
            "dev",
            "  sentences   4, tokens 11",
            "  columns     word,label (spaces)",
            "  scheme      IOB2 (detected)",
            "  entities    4: LOC 2, PER 1, ORG 1",
            "  ill-formed  2 sentences, 2 places",
            "              dev:4: I-PER at the start of a sentence",
            "              ... and 1 more (--all)",
            "  duplicates  1 (25.0 %) stand in this file before: line 10 (as line 1)",
            "              2 (50.0 %) are in train: line 1 (there line 8) and 1 more",
            "  new labels  B-ORG 1 (line 8), I-LOC 1 (line 14)",
            "  new words   5 of 9 types (55.6 %), 5 of 11 tokens (45.5 %)",
            "              4 types, 4 tokens with digits turned to 0",
            "  longest     sentence 5 words (line 4), "
            "word 20 characters (line 14): Internationalization",
        ]

    def test_everything(self, inspect):
        lines = self.lines(inspect, TRAIN, DEV, everything=True)
        assert lines[6:12] == [
            "              dev:4: I-PER at the start of a sentence",
            "              dev:14: I-LOC after O",
            "  duplicates  1 (25.0 %) stand in this file before",
            "              dev:10: as line 1",
            "              2 (50.0 %) are in train",
            "              dev:1: there line 8",
        ]

    def test_many_labels_are_cut_short(self, inspect):
        text = "".join(f"word TAG{i}\n" for i in range(25))
        (line,) = (x for x in self.lines(inspect, text) if "  labels" in x)
        assert "labels      25: TAG0 1," in line and line.endswith("TAG19 1 and 5 more")
        (line,) = (x for x in self.lines(inspect, text, everything=True) if "  labels" in x)
        assert line.endswith("TAG24 1")

    def test_bare_labels_and_long_words(self, inspect):
        lines = self.lines(inspect, f"{'x' * 70} B\ny E\nz S\nu S\n")
        assert "  entities    3" in lines
        assert lines[-1].endswith(f"word 70 characters (line 1): {'x' * 57}...")

    def test_what_differs_from_the_first_file(self, inspect):
        lines = self.lines(inspect, "a [POS]X B-Y\n", "a B-Y\nb E-Y\n")
        assert "  columns     word,label (spaces); the first file has word,[POS],label" in lines
        assert "  scheme      BIOES (detected); the first file is IOB2" in lines
        (line,) = (x for x in self.lines(inspect, "a B-X\n\nb L-X\nc E-X\n") if "scheme" in x)
        assert "cannot be told: " in line
