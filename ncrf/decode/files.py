"""Decoding a file into a file, with memory that does not grow with it."""

from __future__ import annotations

import logging
import os
import time

from ncrf.config import Config, log_idle_keys
from ncrf.data.corpora import open_corpus
from ncrf.data.documents import log_no_document
from ncrf.data.sentence import Sentence
from ncrf.decode.load import load_predictor
from ncrf.decode.pipeline import in_order, sharing_cores
from ncrf.decode.predict import Predictor
from ncrf.decode.prediction import Wanted
from ncrf.decode.writers import check_output, classified_line, json_line, open_output, text_block
from ncrf.errors import ConfigError
from ncrf.model.labeler import reads_documents

logger = logging.getLogger(__name__)


def decode_file(decode: Config) -> None:
    """Label ``raw_dir`` with the model in ``load_model_dir`` and write ``decode_dir``."""
    raw, output = decode.files.raw_dir, decode.files.decode_dir or "-"
    if raw is None or decode.files.load_model_dir is None:
        raise ConfigError("decoding needs raw_dir and load_model_dir")
    check_output(raw, output, decode.files.load_model_dir)
    predictor = load_predictor(decode.files.load_model_dir, decode)
    config = predictor.config
    log_idle_keys(config)
    as_json = config.decoding.decode_format == "json"
    nbest = config.decoding.nbest or None
    wanted = Wanted(
        nbest=nbest,
        marginals=config.decoding.marginals,
        probability=as_json or nbest is not None,
        spans=as_json,
    )
    reader = open_corpus(config, raw, raw=True, features=tuple(predictor.vocabulary.features))

    def decoded(window: list[Sentence]) -> str:
        predictions = predictor.predict(window, wanted)
        if as_json:
            return "".join(map(json_line, predictions))
        if config.corpus.sentence_classification:
            return "".join(map(classified_line, predictions))
        return "".join([text_block(prediction, reader.separator) for prediction in predictions])

    start = time.perf_counter()
    threads = _threads(predictor)
    with open_output(output) as file, sharing_cores(threads):
        for text in in_order(decoded, predictor.windows(reader, wanted), threads):
            file.write(text)
    seconds = time.perf_counter() - start
    if reads_documents(config) and not reader.boundaries:
        log_no_document(raw)
    if predictor.lacks_vectors:
        logger.warning(
            "%s is not at hand: %s words that training did not see were unknown "
            "(give the file as word_emb_dir, or train with vectors_in_model=True)",
            config.words.word_emb_dir,
            f"{predictor.unknown_words:,}",
        )
    logger.info(
        "decoded %s, %s in %.1f s (%.0f sentences/s) to %s",
        _counted(reader.sentences, "sentence"),
        _counted(reader.tokens, "token"),
        seconds,
        reader.sentences / max(seconds, 1e-9),
        "standard output" if output == "-" else output,
    )


def _threads(predictor: Predictor) -> int:
    """How many windows are decoded side by side: one on a GPU, on a CPU one for each core."""
    if predictor.labeler.device.type != "cpu":
        return 1
    return predictor.config.run.threads or len(os.sched_getaffinity(0))


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
