"""The report of ``ncrf info`` as lines of text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from ncrf.config import FeatureSpec
from ncrf.data.schemes import PLAIN
from ncrf.model.description import ModelDescription

_NAME_WIDTH = 14
_LISTED = 40  # labels; more are counted

Row = tuple[str, str]


def description_lines(model: ModelDescription) -> list[str]:
    """All there is to say about a model, in lines."""
    state = "unfinished training" if model.unfinished else "model"
    rows = [
        *_corpus(model),
        *_labels(model),
        ("alphabets", _alphabets(model)),
        *_layers(model),
        *_parameters(model),
        *_scores(model),
        *_vectors(model),
        *_files(model),
    ]
    return [f"{state} {model.folder}", *(f"  {name:<{_NAME_WIDTH}}{text}" for name, text in rows)]


def _corpus(model: ModelDescription) -> list[Row]:
    counts = model.vocabulary.corpus
    said = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    return [
        ("trained on", str(model.config.files.train_dir or "not stored")),
        ("", said or "its size was not stored"),
    ]


def _labels(model: ModelDescription) -> list[Row]:
    scheme, labels = model.vocabulary.scheme, model.vocabulary.labels.strings
    text = scheme.source if scheme.source == scheme.target else f"{scheme.source} in the corpus"
    if scheme.source != scheme.target:
        text += f", {scheme.target} in the model"
    if scheme.target != PLAIN and scheme.delimiter != "-":
        text += f", delimiter {scheme.delimiter}"
    more = f" and {len(labels) - _LISTED:,} more" if len(labels) > _LISTED else ""
    return [("scheme", text), ("labels", f"{len(labels):,}: {' '.join(labels[:_LISTED])}{more}")]


def _alphabets(model: ModelDescription) -> str:
    known = model.vocabulary
    sizes = [("words", known.words), ("characters", known.characters)]
    sizes += [(f"[{name}]", alphabet) for name, alphabet in known.features.items()]
    how = ["digits as 0"] * known.normalization.digits + ["lower case"] * known.normalization.case
    first, *others = (f"{name} {len(a) - len(a.special):,}" for name, a in sizes)
    if how:
        first += f" ({', '.join(how)})"
    return ", ".join([first, *others]) + "; padding and unknown not counted"


def _layers(model: ModelDescription) -> list[Row]:
    config = model.config
    texts = []
    if config.words.use_word_emb:
        table = model.shape("representation.word_embedding.weight")
        texts.append(f"words: {_table(table)}")
    for number, spec in enumerate(() if config.classical else config.corpus.feature):
        table = model.shape(f"representation.feature_embeddings.{number}.weight")
        texts.append(f"feature [{spec.name}]: {_table(table)}{_source(spec)}")
    if config.chars.use_char:
        table = model.shape("representation.char_embedding.weight")
        kind, width = config.chars.char_seq_feature, model.char_width()
        texts.append(f"characters: {_table(table)}, then {kind}{_wide(width)}")
    templates = model.vocabulary.templates
    if templates is not None:
        lines, attributes = len(templates.templates.lines), templates.attributes
        counts = attributes.num_unigram + attributes.num_bigram, templates.index.num_features
        said = "templates: {} lines, {:,} attributes, {:,} features"
        texts.append(said.format(lines, *counts))
    texts.append(f"sentence: {_word_layer(model)}")
    texts.append(f"labels: {_inference(model)}")
    return _under("layers", texts)


def _table(shape: Sequence[int] | None) -> str:
    return "embedding " + (
        "of unknown size" if shape is None else " x ".join(f"{n:,}" for n in shape)
    )


def _wide(width: int | None) -> str:
    return "" if width is None else f", {width:,} wide"


def _source(spec: FeatureSpec) -> str:
    return f", computed from {spec.source}" if spec.source else ""


def _word_layer(model: ModelDescription) -> str:
    keys = model.config.word_layer
    if not keys.use_word_seq:
        return "none"
    kind = keys.word_seq_feature
    text = f"{kind}{_wide(model.width('projection.weight'))}"
    if kind == "CNN":
        behind = f", {keys.cnn_padding} padding words" if keys.cnn_padding else ""
        return f"{text}, {_layers_of(keys.cnn_layer)}{behind}"
    if kind in ("LSTM", "GRU"):
        directions = "both directions" if keys.bilstm else "one direction"
        return f"{text}, {_layers_of(keys.lstm_layer)}, {directions}"
    return text


def _layers_of(number: int) -> str:
    return f"{number} layer{'s' * (number != 1)}"


def _inference(model: ModelDescription) -> str:
    if model.config.corpus.sentence_classification:
        return "softmax, one for the sentence"
    kind = "CRF" if model.learns_transitions else "softmax"
    plain = model.vocabulary.scheme.target == PLAIN
    return kind if plain else f"{kind}, constraints={model.config.inference.constraints}"


def _parameters(model: ModelDescription) -> list[Row]:
    parts = model.parameters()
    texts = [
        f"{sum(parts.values()):,}",
        *(f"{count:>12,}  {part}" for part, count in parts.items()),
    ]
    return _under("parameters", texts)


def _scores(model: ModelDescription) -> list[Row]:
    best = model.best()
    if best is None:
        return [("scores", "there is no history.jsonl")]
    epochs, planned = len(model.history), model.config.training.iteration
    of = f"{epochs}" if epochs == planned else f"{epochs} (iteration={planned})"
    dev = best.get("dev")
    if not dev:
        texts = ["there was no dev corpus: the last epoch was kept"]
        texts += [f"{_rates(best['test'])} on test"] if best.get("test") else []
        return [("epochs", of), *_under("scores", texts)]
    texts = [f"best in epoch {best['epoch']}: {_rates(dev)} on dev"]
    if best.get("test"):
        texts.append(f"{_rates(best['test'])} on test")
    return [("epochs", of), *_under("scores", texts)]


def _rates(scores: dict[str, float]) -> str:
    accuracy = f"accuracy {_percent(scores['accuracy'])}"
    # Of plain labels precision, recall and F1 are all the accuracy.
    if scores["precision"] == scores["recall"] == scores["f1"] == scores["accuracy"]:
        return accuracy
    rates = ", ".join(f"{name} {_percent(scores[name])}" for name in ("precision", "recall"))
    return f"F1 {_percent(scores['f1'])} ({rates}), {accuracy}"


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"


def _vectors(model: ModelDescription) -> list[Row]:
    config = model.config
    named = [("", config.words.word_emb_dir if config.words.use_word_emb else None)]
    named.append((" (characters)", config.chars.char_emb_dir if config.chars.use_char else None))
    named += [(f" ([{spec.name}])", spec.emb_dir) for spec in config.corpus.feature]
    texts = [
        f"{path}{what}{'' if os.path.exists(path) else ', not there now'}"
        for what, path in named
        if path is not None
    ]
    return _under("vectors", texts or ["none"])


def _files(model: ModelDescription) -> list[Row]:
    return _under("files", [f"{_size(size):>10}  {name}" for name, size in model.files.items()])


def _size(size: float) -> str:
    if size < 1024:
        return f"{size:.0f} B"
    unit = "KiB"
    size /= 1024
    for larger in ("MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f} {unit}"


def _under(name: str, texts: Iterable[str]) -> list[Row]:
    """Rows of which only the first has the name."""
    return [(name if number == 0 else "", text) for number, text in enumerate(texts)]
