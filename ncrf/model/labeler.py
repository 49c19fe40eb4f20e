"""The whole network: representation, word layer, projection to labels, inference layer."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ncrf.config import Config, choices_of
from ncrf.data.batch import AttributeBatch, Batch
from ncrf.data.label_tables import legal_transitions
from ncrf.data.vocabulary import Vocabulary
from ncrf.errors import ConfigError
from ncrf.model.document_memory import DocumentMemory
from ncrf.model.inference_layers import INFERENCE_LAYERS, ChainInference
from ncrf.model.representation import InputDropout, InputSizes, WordRepresentation
from ncrf.model.template_scores import TemplateScores
from ncrf.model.word_layers import (
    WORD_LAYERS,
    RecurrentWordLayer,
    WordLayer,
    masked_maximum,
)

_NUMBER = 4  # bytes of a weight


class Labeler(nn.Module):
    """A sequence labeler: a batch of sentences to emissions, loss and labelings.

    The scores of a network and those of feature ``templates`` are added where there are both; the
    classical CRF has templates alone, and its representation is of width 0. With ``classify`` a
    sentence has one label: the word layer is pooled, and the label is decided by a chain of one
    position. With ``documents`` a word's scores depend on the document too, outside of ``forward``,
    which sees single sentences: in ``loss`` and in decoding.
    """

    def __init__(
        self,
        representation: WordRepresentation,
        word_layer: WordLayer | None,
        inference: ChainInference,
        num_labels: int,
        *,
        classify: bool = False,
        templates: TemplateScores | None = None,
        documents: DocumentMemory | None = None,
    ) -> None:
        super().__init__()
        self.classify = classify
        self.representation = representation
        self.word_layer = word_layer
        width = representation.output_size if word_layer is None else word_layer.output_size
        if not width and templates is None:
            raise ConfigError(
                "the network has no input",
                remedy="use_word_emb=True, use_char=True, at least one feature, or template_file=",
            )
        self.projection = nn.Linear(width, num_labels) if width else None
        self.inference = inference
        self.templates = templates
        self.documents = documents

    def forward(self, batch: Batch) -> Tensor:
        """Emissions ``[B,L,Y]`` (``[B,1,Y]``); what stands at padding has no meaning."""
        if self.projection is None:
            return self.with_templates(None, batch.attributes)
        emissions = self.emissions(self.representation(batch), batch.mask, batch.lengths)
        return self.with_templates(emissions, batch.attributes)

    def with_templates(self, emissions: Tensor | None, attributes: AttributeBatch | None) -> Tensor:
        """Emissions ``[B,L,Y]`` of the network (None: there is none) and of templates, added."""
        if self.templates is None:
            assert emissions is not None
            return emissions
        assert attributes is not None
        found: Tensor = self.templates(attributes.unigram, attributes.unigram_values)
        return found if emissions is None else emissions + found

    def pair_scores(self, attributes: AttributeBatch | None) -> Tensor | None:
        """Scores ``[B,L-1,Y,Y]`` of label pairs by templates; None where there are none."""
        if self.templates is None or attributes is None:
            return None
        return self.templates.pair_scores(attributes.bigram, attributes.bigram_values)

    def emissions(self, words: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        """The network's emissions of words that are represented by ``[B,L,D]``."""
        assert self.projection is not None
        states = words
        if self.classify:
            states = self._pooled(words, mask, lengths).unsqueeze(1)
        elif self.word_layer is not None:
            states = self.word_layer(words, mask, lengths)
        emissions: Tensor = self.projection(states)
        return emissions

    def _pooled(self, words: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        if self.word_layer is None:
            return masked_maximum(words, mask)
        return self.word_layer.pool(words, mask, lengths)

    def label_mask(self, batch: Batch) -> Tensor:
        """The positions that have a label, ``[B,L]`` (``[B,1]``)."""
        return batch.mask[:, :1] if self.classify else batch.mask

    def loss(self, batch: Batch, recall: Callable[[Batch, Tensor], Tensor] | None = None) -> Tensor:
        """Negative log-likelihood of the batch's labels, summed over its sentences.

        ``recall`` gives the opinions of a document's other words ``[B,L,Y]`` for the own scores
        ``[B,L,Y]`` of a batch.
        """
        assert batch.labels is not None
        emissions = self(batch)
        if recall is not None and self.documents is not None:
            emissions = self.documents(emissions, recall(batch, emissions))
        pairs = self.pair_scores(batch.attributes)
        return self.inference.loss(emissions, batch.labels, self.label_mask(batch), pairs)

    def rowwise_gradients(self) -> list[nn.Parameter]:
        """Let large tables have a sparse gradient, of what a batch uses; which they are.

        For optimizers that can take one.
        """
        tables = self.representation.rowwise_gradients()
        return tables if self.templates is None else tables + self.templates.rowwise_gradients()

    @property
    def runs_side_by_side(self) -> bool:
        """Whether most of the work is in layers whose parts threads can share."""
        return self.word_layer is None or isinstance(self.word_layer, RecurrentWordLayer)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.inference.crf.transitions.device


def choose_device(config: Config) -> torch.device:
    """The device that the ``gpu`` key chooses; ConfigError for a GPU that is not there."""
    available = torch.cuda.is_available()
    if config.run.gpu and not available:
        raise ConfigError("gpu=True, but there is no usable GPU", remedy="gpu=False")
    return torch.device("cuda" if available and config.run.gpu is not False else "cpu")


def input_sizes(config: Config, vocabulary: Vocabulary) -> InputSizes:
    """The sizes of the embedding tables; the config names every feature column.

    The classical CRF knows feature columns by its templates alone.
    """
    features = () if config.classical else config.corpus.feature
    return InputSizes(
        words=(len(vocabulary.words), config.words.word_emb_dim),
        characters=(len(vocabulary.characters), config.chars.char_emb_dim),
        features=tuple((len(vocabulary.features[spec.name]), spec.emb_size) for spec in features),
    )


def own_keys(config: Config, key: str) -> tuple[Any, ...]:
    """The key group that the chosen layer has for itself (``add_choice``), if it has one."""
    group = choices_of(key).get(config.value(key))
    return () if group is None else (config.group(group),)


def build_labeler(config: Config, vocabulary: Vocabulary) -> Labeler:
    """The network that a config describes, freshly initialized from torch's random state.

    Raises ConfigError for one that this machine's memory cannot hold.
    """
    _refuse_giant(config, vocabulary)
    return _built(config, vocabulary)


def _refuse_giant(config: Config, vocabulary: Vocabulary) -> None:
    """ConfigError for a network whose weights alone are larger than the memory of this machine.

    The system would grant it and kill the program later. Told by a network without numbers.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    labels = len(vocabulary.labels)
    if labels * labels * _NUMBER > memory:
        raise ConfigError(
            f"{labels:,} different labels have too many transitions for the memory of this machine",
            remedy="columns=, if another column is the label",
        )
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            network = _built(config, vocabulary)
            size = _NUMBER * sum(p.numel() for p in network.parameters())
    except RuntimeError as error:
        if "overflow" not in str(error).lower():
            return  # a layer that cannot be built so; it may be built all the same
        size = 1 << 63
    if size > memory:
        raise ConfigError(
            f"the weights of this network need {size / 2**30:,.0f} GiB, "
            f"this machine has {memory / 2**30:,.0f} GiB of memory",
            remedy="smaller widths (hidden_dim, word_emb_dim, char_hidden_dim, emb_size)",
        )


def _built(config: Config, vocabulary: Vocabulary) -> Labeler:
    scheme = vocabulary.scheme
    legal = legal_transitions(vocabulary.labels.strings, scheme.target, scheme.delimiter)
    representation = WordRepresentation(
        config.words,
        config.chars,
        input_sizes(config, vocabulary),
        _input_dropout(config),
        own_keys(config, "char_seq_feature"),
    )
    word_layer = None
    if config.word_layer.use_word_seq:
        word_layer = WORD_LAYERS.get(config.word_layer.word_seq_feature)(
            config.word_layer,
            representation.output_size,
            _rate(config.network.dropout_output, config),
            *own_keys(config, "word_seq_feature"),
        )
    classify = config.corpus.sentence_classification
    chain = "CRF" if config.inference.use_crf and not classify else "softmax"
    inference = INFERENCE_LAYERS.get(chain)(
        len(vocabulary.labels), config.inference.constraints, legal
    )
    templates = None
    if vocabulary.templates is not None:
        index = vocabulary.templates.index
        templates = TemplateScores(index)
        if config.classical:
            inference.learn_pairs(torch.from_numpy(index.transition_pairs))
    documents = None
    if reads_documents(config):
        documents = DocumentMemory(len(vocabulary.labels), config.network.dropout_memory)
    return Labeler(
        representation,
        word_layer,
        inference,
        len(vocabulary.labels),
        classify=classify,
        templates=templates,
        documents=documents,
    )


def reads_documents(config: Config) -> bool:
    """Whether the model of a config looks beyond the sentence."""
    return config.inference.document_memory and not config.corpus.sentence_classification


def _input_dropout(config: Config) -> InputDropout:
    keys = config.network
    return InputDropout(
        characters=_rate(keys.dropout_char, config),
        vectors=_rate(keys.dropout_input, config),
        words=keys.word_dropout,
        locked=config.word_layer.locked_dropout,
    )


def _rate(own: float | None, config: Config) -> float:
    """The dropout of one place: its own, or that of all places."""
    return config.network.dropout if own is None else own
