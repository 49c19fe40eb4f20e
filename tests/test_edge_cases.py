"""The cases to get right from the first day: where each of them is tested, and the rest of them.

``WHERE`` names for each case the tests that hold it; a test that is renamed or goes is missed here.
"""

import ast
import errno
import os
import threading
from pathlib import Path

import pytest

from ncrf import Tagger
from ncrf.cli import main
from ncrf.errors import InputError, NcrfError
from tests.conftest import ROOT, SAMPLE, small_keys

CRF, NUMERICS, COLUMNS = "crf/test_edge_cases", "crf/test_numerics", "data/test_columns"
TEXT, VECTORS, TRAINING = "data/test_text_files", "data/test_vector_files", "train/test_training"
CONTRACT, HERE = "test_contract_errors", "test_edge_cases"

WHERE = {
    # CRF
    "first position masked, holes": [f"{CRF}:test_masked_positions_are_as_if_not_there"],
    "an empty row": [f"{CRF}:test_empty_rows"],
    "one-word sentence": [
        f"{CRF}:test_one_word_sentences",
        "crf/test_viterbi:test_one_word_sentences_have_distinct_labelings",
    ],
    "n above the number of labelings": [
        "crf/test_viterbi:test_nbest",
        "crf/test_viterbi:test_constraints_leave_only_what_is_legal",
    ],
    "label -100": [
        f"{CRF}:test_labels_under_the_mask_are_ignored",
        f"{CRF}:test_labels_that_are_none",
    ],
    "masks of numbers": [f"{CRF}:test_masks_of_numbers", f"{CRF}:test_lengths_do_not_overflow"],
    "half precision": ["crf/test_gradient:test_half_precision_is_computed_in_float32"],
    "all forbidden": [
        f"{CRF}:test_a_label_that_nothing_leads_to",
        f"{CRF}:test_a_row_without_a_labeling",
        f"{CRF}:test_a_labeling_that_is_forbidden",
    ],
    "scores of ten thousand": [
        f"{NUMERICS}:test_enumeration_of_large_scores",
        f"{NUMERICS}:test_a_label_that_dives_is_not_lost",
    ],
    "shortcuts of teaching code": [
        f"{CRF}:test_end_gathered_without_the_batch_index",
        f"{CRF}:test_length_of_the_first_row_taken_for_all",
        f"{CRF}:test_a_float_mask_that_mixes_old_and_new",
        f"{CRF}:test_a_greedy_walk_that_calls_itself_viterbi",
        f"{CRF}:test_probability_less_one_as_the_gradient",
    ],
    "sums of probabilities": [
        f"{NUMERICS}:test_probabilities_of_the_best_sum_to_one_at_most",
        "crf/test_forward_backward:test_marginals",
    ],
    # files
    "BOM, CRLF, blank lines": [
        f"{TEXT}:test_line_ends_and_byte_order_mark",
        f"{COLUMNS}:test_byte_order_mark_and_crlf",
        f"{COLUMNS}:test_blank_lines_close_sentences",
    ],
    "invalid UTF-8": [
        f"{TEXT}:test_invalid_utf8_is_reported_with_its_line_after_the_lines_before_it"
    ],
    "separators": [
        f"{COLUMNS}:test_declared_separator_rules",
        f"{COLUMNS}:test_no_break_and_ideographic_spaces_belong_to_words",
    ],
    "-DOCSTART-": [
        f"{COLUMNS}:test_boundaries_of_any_width_settle_nothing",
        f"{HERE}:test_documents_are_counted_apart",
    ],
    "a token that starts with #": [f"{COLUMNS}:test_comments_only_where_they_are_asked_for"],
    "too few or too many columns": [f"{COLUMNS}:test_wrong_number_of_columns"],
    "an empty file": [
        f"{COLUMNS}:test_empty_files_have_no_sentence",
        f"{CONTRACT}:test_a_corpus",
        f"{HERE}:test_nothing_to_predict",
    ],
    "no entities": [
        f"{HERE}:test_a_corpus_without_entities",
        "evaluate/test_spans:test_a_corpus_without_spans_scores_zero_with_a_warning",
    ],
    "1,500 words, 3,000 characters": [f"{HERE}:test_a_long_sentence_and_a_long_word"],
    "one block a sentence, words as they stood": [f"{HERE}:test_words_come_out_as_they_stood"],
    # labels
    "schemes told apart": ["data/test_schemes:test_schemes_are_told_apart_by_their_prefixes"],
    "B-GOODS-X": [
        "data/test_labels:test_split_label",
        "data/test_labels:test_case_of_the_type_does",
    ],
    "bare labels": ["data/test_labels:test_bare_labels_are_spans_without_a_type"],
    "a label that training has not": [
        "data/test_batch:test_labels_unseen_in_training_get_ids_beyond_the_model",
        f"{HERE}:test_a_label_that_training_has_not",
    ],
    "ill-formed sequences": [
        "evaluate/test_spans:test_strict_scores_are_seqevals_strict_ones",
        "evaluate/test_spans:test_policies_have_names_and_strict_needs_a_scheme",
    ],
    # vectors
    "headers, spaces, width, doublets": [
        f"{VECTORS}:test_text_with_and_without_header",
        f"{VECTORS}:test_words_may_hold_spaces_and_numbers",
        f"{VECTORS}:test_rows_at_fault",
        f"{VECTORS}:test_of_duplicates_the_first_wins",
    ],
    "binary and packed": [
        f"{VECTORS}:test_word2vec_binary",
        f"{VECTORS}:test_fasttext_binary",
        f"{VECTORS}:test_pickles_are_refused_with_the_way_to_convert_them",
    ],
    "coverage": [
        "data/test_vectors:test_coverage_counts_types_and_tokens",
        "data/test_vectors:test_low_coverage_is_a_warning",
    ],
    "a word first seen at decode time": [
        "decode/test_new_words:test_new_words_have_their_rows_untrained_and_by_lower_case"
    ],
    # running
    "a wrong key": [f"{CONTRACT}:test_a_config"],
    "an idle key": ["config/test_config_checks:test_known_keys_that_the_chosen_layers_do_not_use"],
    "killed at any moment": [
        "train/test_crashes:test_over_an_old_model",
        "train/test_crashes:test_in_a_new_folder",
        f"{TRAINING}:test_a_resumed_training_equals_an_unbroken_one",
    ],
    "disk full, read-only folder": [
        "train/test_crashes:test_at_every_operation",
        "train/test_crashes:test_in_training",
        f"{HERE}:test_a_folder_that_may_not_be_written",
    ],
    "a loss that is not finite": [
        f"{TRAINING}:test_a_loss_that_is_not_finite_stops_with_the_place"
    ],
    "two trainings, several threads": [
        f"{TRAINING}:test_trainings_in_threads_give_what_one_alone_gives",
        f"{HERE}:test_threads_that_share_a_tagger",
    ],
}


@pytest.mark.parametrize("case", WHERE)
def test_every_case_has_its_test(case):
    for place in WHERE[case]:
        file, _, name = place.partition(":")
        tree = ast.parse((ROOT / "tests" / f"{file}.py").read_text(encoding="utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert name in names, place


def test_documents_are_counted_apart(tmp_path, caplog):
    (tmp_path / "train").write_text("-DOCSTART- O\n\nAnna B-PER\n\n-DOCSTART- O\n\nBo B-PER\n")
    keys = {"train_dir": str(tmp_path / "train"), "dev_dir": None, "iteration": 1}
    with caplog.at_level("INFO", "ncrf"):
        Tagger.train(small_keys(tmp_path / "model", **keys))
    assert "train: 2 sentences + 2 -DOCSTART-, 2 tokens" in caplog.text


def test_nothing_to_predict(trained, tagger, tmp_path):
    assert tagger.predict([]) == [] == list(tagger.stream([]))
    assert tagger.predict([[]])[0].labels == []
    empty, out = tmp_path / "empty", tmp_path / "out"
    empty.touch()
    with pytest.raises(InputError, match="empty: holds no sentence"):
        tagger.evaluate(empty)
    arguments = ["--raw", str(empty), "--loadmodel", str(trained), "--output", str(out)]
    assert main(["decode", *arguments, "--threads", "1"]) == 0
    assert out.read_bytes() == b""


def test_a_corpus_without_entities(tmp_path, caplog):
    (tmp_path / "train").write_text("Anna O\nleft O\n\nBo O\n")
    keys = {"train_dir": str(tmp_path / "train"), "dev_dir": str(tmp_path / "train")}
    with caplog.at_level("WARNING", "ncrf"):
        tagger = Tagger.train(small_keys(tmp_path / "model", iteration=1, **keys))
    assert "every word has the label O" in caplog.text
    assert tagger.predict([["Anna"]])[0].labels == ["O"]
    assert tagger.evaluate(tmp_path / "train").accuracy == 1


def test_a_long_sentence_and_a_long_word(tmp_path):
    """They are trained on and decoded among short ones, which do not become as long."""
    short = "".join(f"w{i} B-X\nv O\n\n" for i in range(20))
    long = "".join(f"w{i % 7} O\n" for i in range(1500))
    (tmp_path / "train").write_text(f"{short}{long}\n{'x' * 3000} B-X\n\n")
    keys = {"train_dir": str(tmp_path / "train"), "dev_dir": None, "iteration": 1}
    tagger = Tagger.train(small_keys(tmp_path / "model", **keys))
    words = [["x" * 3000, "v"], [f"w{i % 7}" for i in range(1500)], ["v"]]
    predictions = tagger.predict(words, nbest=2)
    assert [len(prediction.labels) for prediction in predictions] == [2, 1500, 1]
    (alone,) = tagger.predict([["v"]], nbest=2)
    assert predictions[2].labels == alone.labels
    assert predictions[2].probability == pytest.approx(alone.probability, abs=1e-5)


def test_words_come_out_as_they_stood(trained, tmp_path):
    raw, out = tmp_path / "raw", tmp_path / "out"
    sentences = [["Ａnna", "1996", "#x", "-DOCSTART-x"], ["\u3000"], ["é" * 40, "e\u0301", "\x85"]]
    raw.write_text("\n\n".join("\n".join(words) for words in sentences), encoding="utf-8")
    arguments = ["--raw", str(raw), "--loadmodel", str(trained), "--output", str(out)]
    assert main(["decode", *arguments, "--threads", "1"]) == 0
    blocks = out.read_text(encoding="utf-8").removesuffix("\n\n").split("\n\n")
    assert [[row.rpartition(" ")[0] for row in b.split("\n")] for b in blocks] == sentences


def test_a_label_that_training_has_not(tmp_path, caplog):
    (tmp_path / "train").write_text("Anna B-PER\nleft O\n\nBo B-PER\nleft O\n")
    (tmp_path / "dev").write_text("Anna B-NEW\nleft O\n\nBo B-NEW\n")
    keys = {"train_dir": str(tmp_path / "train"), "dev_dir": str(tmp_path / "dev")}
    with caplog.at_level("WARNING", "ncrf"):
        tagger = Tagger.train(small_keys(tmp_path / "model", iteration=2, **keys))
    assert caplog.text.count("labels that training has not: B-NEW") == 1
    assert tagger.vocabulary.labels.strings == ("B-PER", "O")
    assert tagger.evaluate(tmp_path / "dev").per_type["NEW"].recall == 0


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("what", ["mkdir", "open"])
def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch, code, what):
    """As on a read-only disk; root may write everywhere, so the system's answer is made up."""
    if what == "open":
        (tmp_path / "model").mkdir()

    def refuse(path, *arguments, **keys):
        raise OSError(code, os.strerror(code), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, what, refuse)
        with pytest.raises(NcrfError, match=rf"^{tmp_path / 'model'}.*: {os.strerror(code)}$"):
            Tagger.train(small_keys(tmp_path / "model", iteration=1))
    assert not (tmp_path / "model").exists() or list((tmp_path / "model").iterdir()) == []


def test_threads_that_share_a_tagger(tagger):
    lines = Path(SAMPLE / "raw.bioes").read_text(encoding="utf-8").strip().split("\n\n")
    sentences = [[row.split(" ")[0] for row in block.split("\n")] for block in lines[:60]]
    expected = [tagger.predict(sentences[i::4], nbest=3, marginals=True) for i in range(4)]
    wrong = []

    def predict(number):
        part = sentences[number::4]
        for _ in range(3):
            if tagger.predict(part, nbest=3, marginals=True) != expected[number]:
                wrong.append(number)

    threads = [threading.Thread(target=predict, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
