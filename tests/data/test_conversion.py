"""Files in another label scheme: by hand, and there and back."""

import gzip
import io
import logging
import os
import threading

import pytest
from seqeval.metrics.sequence_labeling import get_entities

from ncrf.config import load_config
from ncrf.data import text_files
from ncrf.data.columns import read_columns
from ncrf.data.conversion import convert_file
from ncrf.data.schemes import detect_scheme
from ncrf.errors import InputError, NcrfError
from tests.conftest import SAMPLE

SCHEMES = ("BIO", "BIOES", "IOB1", "BMES", "BILOU")


def convert(tmp_path, text, to, name="in", out="out", **keys):
    """What a file of ``text`` (str or bytes) becomes, as bytes."""
    source = tmp_path / name
    source.write_bytes(text if isinstance(text, bytes) else text.encode())
    config = load_config(keys, check_files=False)
    done = convert_file(config, str(source), str(tmp_path / out), to)
    return (tmp_path / out).read_bytes(), done


# Two persons side by side, a place of three words, one of one word.
WORDS = ["Anna", "Bo", "Lee", "met", "in", "New", "York", "City", "or", "Oslo"]
GOLDEN = {
    "IOB1": "I-PER B-PER I-PER O O I-LOC I-LOC I-LOC O I-LOC",
    "BIO": "B-PER B-PER I-PER O O B-LOC I-LOC I-LOC O B-LOC",
    "BIOES": "S-PER B-PER E-PER O O B-LOC I-LOC E-LOC O S-LOC",
    "BMES": "S-PER B-PER E-PER O O B-LOC M-LOC E-LOC O S-LOC",
    "BILOU": "U-PER B-PER L-PER O O B-LOC I-LOC L-LOC O U-LOC",
}


def golden(scheme):
    rows = zip(WORDS, GOLDEN[scheme].split(), strict=True)
    return "".join(f"{word} {label}\n" for word, label in rows) + "\n"


class TestSchemes:
    @pytest.mark.parametrize("target", SCHEMES)
    @pytest.mark.parametrize("source", SCHEMES)
    def test_each_to_each(self, source, target, tmp_path):
        written, done = convert(tmp_path, golden(source), target, input_scheme=_key(source))
        assert written.decode() == golden(target)
        assert (done.sentences, done.tokens) == (1, 10)
        changes = sum(
            a != b for a, b in zip(GOLDEN[source].split(), GOLDEN[target].split(), strict=True)
        )
        assert done.changed == changes

    def test_the_source_is_detected(self, tmp_path):
        for source, name in (("BIO", "IOB2"), ("BIOES", "BIOES"), ("BILOU", "BILOU")):
            assert convert(tmp_path, golden(source), "IOB1")[1].source == name

    def test_segmentation(self, tmp_path):
        text = "我\tB\n爱\tM\n你\tE\n吗\tS\n\n"
        assert convert(tmp_path, text, "BIO")[0].decode() == "我\tB\n爱\tI\n你\tI\n吗\tB\n\n"
        assert convert(tmp_path, text, "BIOES")[0].decode() == "我\tB\n爱\tI\n你\tE\n吗\tS\n\n"

    def test_another_delimiter(self, tmp_path):
        text = "Oslo B_GOODS_X\nis B_LOC\nbig I_LOC\n\n"
        written, _ = convert(tmp_path, text, "BIOES", label_delimiter="_")
        assert written == b"Oslo S_GOODS_X\nis B_LOC\nbig E_LOC\n\n"

    def test_what_says_o_stays(self, tmp_path):
        text = "Oslo b-LOC\nis o\nbig _\n\n"
        assert convert(tmp_path, text, "BIO")[0] == b"Oslo B-LOC\nis o\nbig _\n\n"


class TestAllElseStays:
    def test_boundaries_comments_spaces_and_blank_lines(self, tmp_path):
        text = (
            "# a file\n-DOCSTART- -X- O O\n\n\n"
            "EU   NNP I-NP  I-ORG \n# a note\n rejects VBZ I-VP O\nGerman JJ I-NP I-MISC\n \t\n"
            "#\nBo NNP I-NP I-PER\nLee NNP I-NP I-PER"
        )
        keys = {"columns": "word,-,-,label", "comment_prefix": "#"}
        expected = (
            text.replace(" I-ORG ", " S-ORG ")
            .replace("I-MISC", "S-MISC")
            .replace(
                "Bo NNP I-NP I-PER\nLee NNP I-NP I-PER", "Bo NNP I-NP B-PER\nLee NNP I-NP E-PER"
            )
        )
        written, done = convert(tmp_path, text, "BIOES", **keys)
        assert written.decode() == expected
        assert (done.sentences, done.tokens, done.changed) == (2, 5, 4)

    def test_byte_order_mark_and_line_ends(self, tmp_path):
        text = b"\xef\xbb\xbfOslo\tB-LOC\r\nCity\tI-LOC\r\n\r\nBo\tB-PER\r\n"
        expected = b"\xef\xbb\xbfOslo\tB-LOC\r\nCity\tE-LOC\r\n\r\nBo\tS-PER\r\n"
        assert convert(tmp_path, text, "BIOES")[0] == expected

    def test_the_label_may_come_first(self, tmp_path):
        text = b"\xef\xbb\xbfB-LOC\tNew York\tB-LOC\nO\tB-LOC\tO\n"
        expected = b"\xef\xbb\xbfS-LOC\tNew York\tB-LOC\nO\tB-LOC\tO\n"
        assert convert(tmp_path, text, "BIOES", columns="label,word,-")[0] == expected
        text = b"\xef\xbb\xbfB-LOC  Oslo\n  O B-LOC\n"
        expected = b"\xef\xbb\xbfS-LOC  Oslo\n  O B-LOC\n"
        assert convert(tmp_path, text, "BIOES", columns="label,word")[0] == expected

    def test_odd_characters(self, tmp_path):
        # U+2028, U+0085, a form feed and a lone CR end no line; U+3000 and U+00A0 are no spaces.
        text = "a\u2028b\x0c\u0085\u3000\u00a0 B-X\nc\rd B-X\n"
        assert convert(tmp_path, text, "BIOES")[0].decode() == text.replace("B-X", "S-X")

    def test_conllu(self, tmp_path):
        rows = [
            "# text = in New York",
            "1\tin\tin\tADP\tIN\t_\t0\troot\t_\t_",
            "2-3\tNew York\t_\t_\t_\t_\t_\t_\t_\tEntity=B-LOC",
            "2\tNew\tNew\tPROPN\tNNP\t_\t1\tobj\t_\tLang=en|Entity=B-LOC|XEntity=B-LOC",
            "2.1\tx\tx\tX\tX\t_\t_\t_\t_\tEntity=B-LOC",
            "3\tYork\tYork\tPROPN\tNNP\t_\t2\tflat\t_\tXEntity=I-LOC|Entity=I-LOC",
            "",
        ]
        text = "\n".join(rows) + "\n"
        expected = text.replace("|Entity=I-LOC", "|Entity=E-LOC")
        keys = {"file_format": "conllu", "label_column": "misc:Entity"}
        assert convert(tmp_path, text, "BIOES", **keys)[0].decode() == expected
        text = text.replace("IN", "O").replace("PROPN\tNNP", "PROPN\tB-LOC")
        expected = text.replace("PROPN\tB-LOC", "PROPN\tS-LOC")
        keys = {"file_format": "conllu", "label_column": "xpos"}
        assert convert(tmp_path, text, "BIOES", **keys)[0].decode() == expected

    def test_blocks_of_a_few_bytes(self, tmp_path, monkeypatch):
        whole, _ = convert(tmp_path, golden("BIO") * 3, "BIOES")
        monkeypatch.setattr(text_files, "BLOCK_BYTES", 7)
        assert convert(tmp_path, golden("BIO") * 3, "BIOES")[0] == whole


# Those of the sample files whose labels mark spans.
FILES = sorted([*SAMPLE.glob("*.bioes"), *SAMPLE.glob("[dt]*.seg")])


class TestThereAndBack:
    @pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
    def test_sample_data(self, path, tmp_path):
        given = path.read_bytes()
        own = detect_scheme(s.labels for s in read_columns(path) if s.labels)
        config = load_config({}, check_files=False)
        for number, scheme in enumerate(SCHEMES):
            there, back = tmp_path / f"there{number}", tmp_path / f"back{number}"
            convert_file(config, str(path), str(there), scheme)
            convert_file(config, str(there), str(back), own)
            assert back.read_bytes() == given, scheme

    def test_the_spans_are_those_that_seqeval_reads(self, tmp_path):
        path = SAMPLE / "test.bioes"
        convert_file(load_config({}, check_files=False), str(path), str(tmp_path / "o"), "BIO")
        before = [get_entities(s.labels) for s in read_columns(path)]
        after = [get_entities(s.labels) for s in read_columns(tmp_path / "o")]
        assert after == before and any(before)


class TestPlaces:
    def test_packed_in_and_out(self, tmp_path):
        packed = gzip.compress(golden("BIO").encode())
        out, _ = convert(tmp_path, packed, "BIOES", name="in.gz", out="deep/out.gz")
        assert gzip.decompress(out).decode() == golden("BIOES")

    def test_standard_input_and_output(self, monkeypatch, capfdbinary):
        given = io.TextIOWrapper(io.BytesIO(golden("IOB1").encode()))
        monkeypatch.setattr("sys.stdin", given)
        config = load_config({"input_scheme": "auto"}, check_files=False)
        assert convert_file(config, "-", "-", "BILOU").source == "IOB1"
        assert capfdbinary.readouterr().out.decode() == golden("BILOU")

    def test_a_mistake_in_standard_input(self, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Oslo B-LOC\nis\n")))
        with pytest.raises(InputError, match=r"^<stdin>:2: 1 column found"):
            convert_file(load_config({}, check_files=False), "-", "-", "BIOES")

    def test_a_named_pipe_is_read_twice_too(self, tmp_path):
        pipe, out = tmp_path / "pipe", tmp_path / "out"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=(golden("BIO"),))
        writer.start()
        convert_file(load_config({}, check_files=False), str(pipe), str(out), "BIOES")
        writer.join()
        assert out.read_text() == golden("BIOES")

    def test_a_device_is_written_to_and_not_replaced(self, tmp_path):
        pipe, source, read = tmp_path / "pipe", tmp_path / "in", []
        os.mkfifo(pipe)
        source.write_text(golden("BIO"))
        reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
        reader.start()
        convert_file(load_config({}, check_files=False), str(source), str(pipe), "BIOES")
        reader.join()
        assert read == [golden("BIOES")] and pipe.is_fifo()

    @pytest.mark.parametrize("link", ["same", "symlink", "hard link"])
    def test_output_over_the_input_is_refused(self, link, tmp_path):
        source, out = tmp_path / "in", tmp_path / "out"
        source.write_text(golden("BIO"))
        if link == "same":
            out = tmp_path / "x" / ".." / "in"
        elif link == "symlink":
            out.symlink_to(source)
        else:
            out.hardlink_to(source)
        with pytest.raises(InputError, match="is the input itself"):
            convert_file(load_config({}, check_files=False), str(source), str(out), "BIOES")
        assert source.read_text() == golden("BIO")

    def test_a_folder_as_output_is_refused(self, tmp_path):
        with pytest.raises(InputError, match="is a folder"):
            convert(tmp_path, golden("BIO"), "BIOES", out=".")

    def test_a_place_that_cannot_be_written(self, tmp_path):
        with pytest.raises(NcrfError, match="cannot be written"):
            convert(tmp_path, golden("BIO"), "BIOES", out="in/out")

    def test_a_failure_leaves_the_old_output(self, tmp_path):
        (tmp_path / "out").write_text("kept")
        with pytest.raises(InputError, match="in:12: byte 0xff"):
            convert(tmp_path, golden("BIO").encode() + b"\xff B-X\n", "BIOES", input_scheme="IOB2")
        assert (tmp_path / "out").read_text() == "kept"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


class TestIllFormed:
    # In IOB2 no entity begins with I; conlleval reads one all the same.
    TEXT = "Bo I-PER\nis O\n\nOslo B-LOC\nCity I-LOC\nAnna I-PER\n\nin O\nRome B-LOC\n\n"

    def test_it_is_converted_as_conlleval_reads_it(self, tmp_path, caplog):
        caplog.set_level(logging.INFO)
        written, done = convert(tmp_path, self.TEXT, "BIOES")
        labels = [line.split()[-1] for line in written.decode().splitlines() if line]
        assert labels == ["S-PER", "O", "B-LOC", "E-LOC", "S-PER", "O", "S-LOC"]
        assert (done.ill_formed.sentences, done.ill_formed.places.count) == (2, 2)
        (warning,) = (r.getMessage() for r in caplog.records if r.levelname == "WARNING")
        assert "2 sentences, 2 places" in warning
        assert "line 1: I-PER at the start of a sentence" in warning
        assert "line 6: I-PER after I-LOC" in warning

    def test_only_the_first_are_named(self, tmp_path, caplog):
        convert(tmp_path, "Bo I-PER\n\n" * 7, "BIOES", input_scheme="IOB2")
        (warning,) = (r.getMessage() for r in caplog.records if r.levelname == "WARNING")
        assert "7 sentences" in warning and "line 9:" in warning and "line 11:" not in warning
        assert warning.endswith("; ...")

    def test_the_same_scheme_tidies_up(self, tmp_path):
        written, done = convert(tmp_path, self.TEXT, "BIO")
        assert b"I-PER" not in written and done.changed == 2


class TestKnownInPart:
    TEXT = (
        "Bo B-PER\nLee ?\nis O\n\nBo I-PER\nis O\nBo B-PER\nis O\n\n"
        "in O\nRome B-LOC|O\nor I-LOC\n\n"
    )

    def test_in_the_same_scheme_they_stay(self, tmp_path, caplog):
        caplog.set_level(logging.INFO)
        written, done = convert(tmp_path, self.TEXT, "BIO", partial_labels="sets")
        assert written.decode() == self.TEXT.replace("\nBo I-PER", "\nBo B-PER")
        assert (done.source, done.changed, done.partial) == ("IOB2", 1, 2)
        assert done.ill_formed.places.first == [(5, "I-PER at the start of a sentence")]
        assert "2 labels are known in part and stay" in caplog.text

    @pytest.mark.parametrize(
        ("mode", "place", "label"), [("unknown", 2, "?"), ("sets", 7, "B-LOC|O")]
    )
    def test_another_scheme_is_refused(self, mode, place, label, tmp_path):
        text = self.TEXT if mode == "unknown" else self.TEXT.split("\n\n", 1)[1]
        with pytest.raises(InputError) as caught:
            convert(tmp_path, text, "BIOES", partial_labels=mode, input_scheme="IOB2")
        assert caught.value.line == place
        assert f"label '{label}' is known in part and cannot be" in str(caught.value)
        assert "--to IOB2" in caught.value.remedy and "\n" not in str(caught.value)
        assert not (tmp_path / "out").exists()

    def test_none_takes_a_label_as_it_stands(self, tmp_path):
        with pytest.raises(InputError, match="label '\\?', in this sentence, has no prefix"):
            convert(tmp_path, self.TEXT, "BIO", partial_labels="none")


class TestRefused:
    def test_plain_labels(self, tmp_path):
        with pytest.raises(InputError, match="in: its labels are plain"):
            convert(tmp_path, "Oslo NNP\nis VBZ\n", "BIOES")
        assert not (tmp_path / "out").exists()

    def test_a_label_without_prefix(self, tmp_path):
        with pytest.raises(InputError, match="in:2: label 'NN' cannot be converted"):
            convert(tmp_path, "Oslo B-LOC\nis NN\n", "BIOES", input_scheme="IOB2")

    @pytest.mark.parametrize("to", ["plain", "IOE2", ""])
    def test_an_unknown_target(self, to, tmp_path):
        with pytest.raises(InputError, match="BIOES"):
            convert(tmp_path, golden("BIO"), to)

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(InputError, match="no such file"):
            convert_file(load_config({}, check_files=False), str(tmp_path / "x"), "-", "BIO")

    def test_a_file_that_changes_while_it_is_read(self, tmp_path, monkeypatch):
        monkeypatch.setattr("ncrf.data.conversion._raw_lines", lambda text: [b"Oslo O\n"])
        with pytest.raises(InputError, match="in:1: the file was changed"):
            convert(tmp_path, "Oslo B-LOC\n", "BIOES")
        monkeypatch.setattr("ncrf.data.conversion._raw_lines", lambda text: [])
        with pytest.raises(InputError, match="in:1: the file was changed"):
            convert(tmp_path, "Oslo B-LOC\n", "BIOES")


def test_an_empty_file_stays_one_with_a_warning(tmp_path, caplog):
    assert convert(tmp_path, "", "BIOES")[0] == b""
    assert "holds no sentence" in caplog.text


def _key(scheme):
    return "IOB2" if scheme == "BIO" else scheme
