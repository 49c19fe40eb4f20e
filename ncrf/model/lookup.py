"""A labeler for decoding: what depends on a word alone is looked up in a table."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ncrf.data.batch import RowBatch, WordTypes
from ncrf.model.char_layers import CharCNN
from ncrf.model.folded import FoldedRecurrent
from ncrf.model.folded_characters import FoldedCharacters
from ncrf.model.labeler import Labeler
from ncrf.model.word_layers import RecurrentWordLayer


class Lookup:
    """Emissions of sentences whose words are rows of a table that ``rows`` fills.

    A row holds a word's vector with that of its characters or, where a recurrent layer reads it on
    a CPU, what that comes to at the gates. For evaluation only; the weights are those of the
    labeler when this is made. The numbers equal the labeler's up to rounding.
    """

    def __init__(self, labeler: Labeler) -> None:
        self._labeler = labeler
        representation, layer = labeler.representation, labeler.word_layer
        tables = [
            table.weight.detach()
            for table in representation.feature_embeddings
            if isinstance(table, nn.Embedding)
        ]
        type_width = representation.output_size - sum(table.shape[1] for table in tables)
        self._folded: FoldedRecurrent | None = None
        if isinstance(layer, RecurrentWordLayer) and labeler.device.type == "cpu":
            self._folded = FoldedRecurrent(layer.recurrent, type_width, tables)
        self._characters: FoldedCharacters | None = None
        chars, table = representation.char_layer, representation.char_embedding
        if type(chars) is CharCNN and table is not None and labeler.device.type == "cpu":
            self._characters = FoldedCharacters(table, chars)
        self.width = type_width if self._folded is None else self._folded.width

    @property
    def device(self) -> torch.device:
        """Where the tables are."""
        return self._labeler.device

    def rows(self, types: WordTypes) -> Tensor:
        """The rows ``[U,width]`` of U words."""
        vectors = self._labeler.representation.type_vectors(types, self._characters)
        if vectors is None:
            vectors = torch.zeros(len(types.words), 0, device=self.device)
        return vectors if self._folded is None else self._folded.rows(vectors)

    def emissions(self, table: Tensor, batch: RowBatch) -> Tensor:
        """Emissions ``[B,L,Y]`` (``[B,1,Y]``) as Labeler.forward gives; ``table [K,width]``."""
        network = None if self._labeler.projection is None else self._network(table, batch)
        return self._labeler.with_templates(network, batch.attributes)

    def _network(self, table: Tensor, batch: RowBatch) -> Tensor:
        """The emissions of the network alone."""
        labeler = self._labeler
        assert labeler.projection is not None
        if self._folded is not None:
            words = (table, batch.rows, batch.features, batch.lengths)
            if not labeler.classify:
                return self._folded.emissions(*words, labeler.projection)
            emissions: Tensor = labeler.projection(self._folded.last(*words).unsqueeze(1))
            return emissions
        vectors = labeler.representation.with_features(table[batch.rows], batch.features)
        return labeler.emissions(vectors, batch.mask, batch.lengths)

    def label_mask(self, batch: RowBatch) -> Tensor:
        """The positions that have a label, ``[B,L]`` (``[B,1]``)."""
        return batch.mask[:, :1] if self._labeler.classify else batch.mask
