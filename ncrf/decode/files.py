"""Decoding a file into a file, with memory that does not grow with it."""

from __future__ import annotations

import logging
import time

from ncrf.config import Config, log_idle_keys
from ncrf.data.corpora import open_corpus
from ncrf.decode.load import load_predictor
from ncrf.decode.prediction import Wanted
from ncrf.decode.writers import check_output, classified_line, json_line, open_output, text_block
from ncrf.errors import ConfigError

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
    start = time.perf_counter()
    with open_output(output) as file:
        for prediction in predictor.stream(reader, wanted):
            if as_json:
                file.write(json_line(prediction))
            elif config.corpus.sentence_classification:
                file.write(classified_line(prediction))
            else:
                file.write(text_block(prediction, reader.separator))
    seconds = time.perf_counter() - start
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


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
