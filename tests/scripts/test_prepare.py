"""scripts/prepare_*.py on tiny corpora of our own: the files they make, the counts they compare."""

import gzip
import zipfile
from dataclasses import replace

import prepare_cws
import prepare_glove
import prepare_ud
import prepare_wnut17
import pytest
from preparation.counts import Counts
from preparation.segmentation import labels_of
from prepare_conll2000 import CORPUS as CONLL2000
from prepare_conll2000 import main as conll2000
from prepare_conll2003 import CORPUS as CONLL2003
from prepare_conll2003 import main as conll2003

NER = """-DOCSTART- -X- O O

Anna NNP I-NP I-PER
left VBD I-VP O
Oslo NNP I-NP I-LOC

Bo NNP I-NP I-PER
Li NNP I-NP B-PER

"""
NER_COUNTS = Counts(2, 5, 4)
CHUNKS = "".join(f"word{i} NN B-NP\nmore NN I-NP\n. . O\n\n" for i in range(5))
CONLLU = """# sent_id = 1
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_
2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_

1\tNow\tnow\tADV\tRB\t_\t0\troot\t_\t_

"""
STATS = "<{0}><sentences>{1}</sentences><tokens>2</tokens><words>{2}</words></{0}>"


def text_of(path):
    return path.read_text(encoding="utf-8")


def write(folder, files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return str(folder)


@pytest.fixture
def source(tmp_path):
    return tmp_path / "source"


@pytest.fixture
def target(tmp_path):
    return tmp_path / "data" / "corpus"


def ner(counts=NER_COUNTS):
    return replace(CONLL2003, published=dict.fromkeys(CONLL2003.published, counts))


NER_FILES = dict.fromkeys(("eng.train", "eng.testa", "eng.testb"), NER)


def test_conll2003_keeps_the_four_columns(source, target, capfd):
    assert conll2003([write(source, NER_FILES), str(target)], ner()) == 0
    assert sorted(path.name for path in target.iterdir()) == ["dev.txt", "test.txt", "train.txt"]
    assert {text_of(path) for path in target.iterdir()} == {NER}
    said = capfd.readouterr().err
    assert "eng.testb: 2 sentences, 5 tokens, 4 spans" in said


def test_it_reads_gzip_zip_crlf_and_other_encodings(source, target):
    source.mkdir()
    text = NER.replace("Oslo", "Århus")
    with zipfile.ZipFile(source / "corpus.zip", "w") as packed:
        for name in NER_FILES:
            packed.writestr(f"ner/{name}", text.replace("\n", "\r\n").encode("latin-1"))
    given = [str(source / "corpus.zip"), str(target), "--encoding", "latin-1"]
    assert conll2003(given, ner()) == 0
    assert text_of(target / "test.txt") == text
    given[0] = str(source)  # the folder with the archive
    assert conll2003(given, ner()) == 0
    assert text_of(target / "dev.txt") == text
    for name in NER_FILES:  # its own files go before those of the archive
        (source / f"{name}.gz").write_bytes(gzip.compress(NER.encode()))
    assert conll2003([str(source), str(target)], ner()) == 0
    assert text_of(target / "dev.txt") == NER


def test_other_counts_than_the_published_ones_write_nothing(source, target, capfd):
    given = [write(source, NER_FILES), str(target)]
    assert conll2003(given, ner(Counts(2, 6, 3))) == 2
    assert capfd.readouterr().err.splitlines()[-1] == (
        f"prepare: {source}/eng.train: 5 tokens, 4 spans found, 6, 3 expected in CoNLL-2003 "
        "(the files as distributed, or --any-version)"
    )
    assert not target.exists() and not target.parent.exists()
    assert conll2003([*given, "--any-version"], ner(Counts(2, 6, 3))) == 0
    assert "6, 3 expected" in capfd.readouterr().err
    assert (target / "train.txt").exists()


@pytest.mark.parametrize(
    ("files", "options", "said"),
    [
        ({}, [], "no such file or folder"),
        ({"eng.train": NER, "eng.testa": NER}, [], "there is no eng.testb in it (SOURCE holds"),
        ({**NER_FILES, "eng.testa": "Anna NNP I-NP\n\n"}, [], "eng.testa:1:"),
        (NER_FILES, ["--encoding", "latin-99"], "--encoding latin-99: no such encoding"),
    ],
)
def test_errors_are_one_line_with_the_distributed_file(source, target, files, options, said, capfd):
    given = write(source, files) if files else str(source)
    assert conll2003([given, str(target), *options], ner()) == 2
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.startswith("prepare: ") and said in last
    assert not target.exists()


def test_bytes_of_another_encoding_are_told_with_their_line(source, target, capfd):
    write(source, NER_FILES)
    (source / "eng.train").write_bytes(NER.replace("Oslo", "Århus").encode("latin-1"))
    assert conll2003([str(source), str(target)], ner()) == 2
    assert "eng.train:5: byte 0xc5 is not utf-8" in capfd.readouterr().err


def test_conll2000_takes_its_dev_part_off_the_end(source, target):
    counts = {"train": Counts(5, 15, 5), "test": Counts(5, 15, 5)}
    corpus = replace(CONLL2000, published=counts)
    given = [write(source, {"train.txt": CHUNKS, "test.txt": CHUNKS}), str(target), "--dev", "2"]
    assert conll2000(given, corpus) == 0
    parts = {path.stem: text_of(path) for path in target.iterdir()}
    assert parts.keys() == {"train", "dev", "all", "test"}
    assert parts["all"] == parts["test"] == CHUNKS == parts["train"] + parts["dev"]
    assert parts["dev"].count("\n\n") == 2 and parts["dev"].startswith("word3 ")


@pytest.mark.parametrize("wanted", ["0", "5", "-1"])
def test_a_dev_part_of_no_or_all_sentences_is_refused(source, target, wanted, capfd):
    given = [write(source, {"train.txt": CHUNKS, "test.txt": CHUNKS}), str(target)]
    assert conll2000([*given, "--any-version", f"--dev={wanted}"]) == 2
    assert f"--dev {wanted} (1 to 4 sentences)" in capfd.readouterr().err
    assert not target.exists()


def test_what_was_prepared_otherwise_does_not_stay(source, target):
    write(target.parent, {})
    write(target, {"all.txt": "old", "mine.txt": "mine"})
    assert conll2003([write(source, NER_FILES), str(target)], ner()) == 0
    names = sorted(path.name for path in target.iterdir())
    assert names == ["dev.txt", "mine.txt", "test.txt", "train.txt"]


def test_wnut17_reads_breaks_that_hold_a_tab(source, target):
    text = "Anna\tB-person\nLi\tI-person\n\t\nleft\tO\n\n"
    names = prepare_wnut17.CORPUS.files
    corpus = replace(prepare_wnut17.CORPUS, published=dict.fromkeys(names, Counts(2, 3, 1)))
    given = [write(source, dict.fromkeys(names.values(), text)), str(target)]
    assert prepare_wnut17.main(given, corpus) == 0
    assert text_of(target / "train.txt") == text


def ud_files(conllu=CONLLU, words=3):
    parts = ("train", "dev", "test")
    stats = "".join(STATS.format(part, 2, words) for part in parts)
    return {**{f"xx_tiny-ud-{part}.conllu": conllu for part in parts}, "stats.xml": stats}


def test_ud_gives_syntactic_words_with_upos_and_xpos(source, target):
    assert prepare_ud.main([write(source, ud_files()), str(target)]) == 0
    expected = "do\tAUX\tVBP\nn't\tPART\tRB\n\nNow\tADV\tRB\n\n"
    assert {text_of(path) for path in target.iterdir()} == {expected}
    tables = {f"en_x-{part}.pos.tsv": expected for part in ("train", "dev", "test")}
    assert prepare_ud.main([write(source.parent / "tables", tables), str(target)]) == 0
    assert text_of(target / "dev.txt") == expected


def test_ud_is_compared_with_the_treebank_s_own_statistics(source, target, capfd):
    assert prepare_ud.main([write(source, ud_files(words=4)), str(target)]) == 2
    assert "3 tokens found, 4 expected in" in capfd.readouterr().err
    for path in source.glob("xx_tiny*"):
        path.rename(source / path.name.replace("xx_tiny", "en_ewt"))
    (source / "stats.xml").unlink()
    assert prepare_ud.main([str(source), str(target)]) == 2
    assert "12,544, 204,577 expected in en_ewt of UD 2.15" in capfd.readouterr().err


def test_characters_of_words_are_labelled():
    assert labels_of(["看似", "，", "图书馆员"]) == list("BESBMME")


CHARACTERS = "看\t看似\tB\n似\t似，\tE\n，\t，</s>\tS\n\n"


@pytest.mark.parametrize(
    "files",
    [
        {f"zh_x-ud-{p}.conllu": "1\t看似" + "\t_" * 8 + "\n2\t，" + "\t_" * 8 + "\n\n" for p in
         ("train", "dev", "test")},
        {f"{part}.bmes": "看\tB\n似\tE\n，\tS\n\n" for part in ("train", "dev", "test")},
        {f"{part}.txt": "看似\u3000，\n\n" for part in ("train", "dev", "test")},
    ],
    ids=["conllu", "bmes", "lines"],
)  # fmt: skip
def test_cws_is_a_character_a_line(source, target, files):
    assert prepare_cws.main([write(source, files), str(target)]) == 0
    assert {text_of(path) for path in target.iterdir()} == {CHARACTERS}


def test_cws_takes_a_dev_part_off_where_there_is_none(source, target, capfd):
    lines = {"x_training.utf8": "看 似\n看似\n似看\n", "x_test_gold.utf8": "看似\n"}
    given = [write(source, lines), str(target)]
    assert prepare_cws.main(given) == 2
    assert "there is no dev part in it (--dev N makes one)" in capfd.readouterr().err
    assert prepare_cws.main([*given, "--dev", "1"]) == 0
    assert text_of(target / "dev.txt") == "似\t似看\tB\n看\t看</s>\tE\n\n"
    assert text_of(target / "train.txt").count("\n\n") == 2


def test_cws_refuses_labels_that_are_no_segmentation(source, target, capfd):
    files = {f"{part}.bmes": "看\tB\n似\tS\n\n" for part in ("train", "dev", "test")}
    assert prepare_cws.main([write(source, files), str(target)]) == 2
    assert "sentence 1 is not labelled with B, M, E and S throughout" in capfd.readouterr().err


def vectors(width=50, rows=3):
    return "".join(f"w{row} {' '.join(['0.5'] * width)}\n" for row in range(rows))


def test_glove_takes_one_width_of_the_archive(source, target, capfd):
    source.mkdir()
    with zipfile.ZipFile(source / "glove.6B.zip", "w") as packed:
        for width in (50, 100):
            packed.writestr(f"glove.6B.{width}d.txt", vectors(width))
    given = [str(source / "glove.6B.zip"), str(target), "--width", "50"]
    assert prepare_glove.main(given, rows=3) == 0
    assert [path.name for path in target.iterdir()] == ["glove.6B.50d.txt"]
    assert text_of(target / "glove.6B.50d.txt") == vectors(50)
    assert prepare_glove.main(given, rows=4) == 2
    assert "3 rows found, 4 expected in GloVe 6B" in capfd.readouterr().err


def test_glove_refuses_faulty_rows_and_other_widths(source, target, capfd):
    path = write(source, {"some.txt": vectors(50).replace("0.5\nw2", "nan\nw2")}) + "/some.txt"
    assert prepare_glove.main([path, str(target), "--width", "50"], rows=3) == 2
    assert "some.txt:2:" in capfd.readouterr().err
    write(source, {"some.txt": vectors(50)})
    assert prepare_glove.main([path, str(target)], rows=3) == 2
    assert "50 numbers in a row, not 100 (another --width)" in capfd.readouterr().err
    assert not target.exists()
