"""What the representation makes of characters, however it puts words together."""

import pytest
import torch

from ncrf.config.schema import Chars, Words
from ncrf.model import representation
from ncrf.model.char_layers import CHAR_LAYERS, CharCNN
from ncrf.model.representation import InputDropout, InputSizes, WordRepresentation

LENGTHS = torch.tensor([7, 5, 5, 2, 1])


def representation_of(name):
    torch.manual_seed(0)
    keys = Chars(char_seq_feature=name, char_hidden_dim=8)
    sizes = InputSizes(words=(2, 4), characters=(9, 6))
    made = WordRepresentation(Words(use_word_emb=False), keys, sizes, InputDropout())
    return made.eval()


def characters(lengths):
    ids = torch.randint(1, 9, (len(lengths), int(lengths.max())))
    return ids.masked_fill(torch.arange(ids.shape[1]) >= lengths[:, None], 0)


@pytest.mark.parametrize("most", [3, 8, 1 << 17])
@pytest.mark.parametrize("name", list(CHAR_LAYERS))
def test_every_word_as_if_it_were_alone(name, most, monkeypatch):
    monkeypatch.setattr(representation, "_MAX_CHARACTERS", most)
    made = representation_of(name)
    ids = characters(LENGTHS)
    for order in ([0, 1, 2, 3, 4], [3, 0, 4, 2, 1]):
        found = made._character_vectors(ids[order], LENGTHS[order])
        for row, word in zip(found, order, strict=True):
            length = LENGTHS[word : word + 1]
            embedded = made.char_embedding(ids[word : word + 1, : int(length)])
            torch.testing.assert_close(row, made.char_layer(embedded, length)[0])


def test_a_layer_that_changes_the_convolution_is_asked():
    class Doubled(CharCNN):
        def forward(self, embedded, lengths):
            return 2 * super().forward(embedded, lengths)

    made = representation_of("CNN")
    ids = characters(LENGTHS)
    plain = made._character_vectors(ids, LENGTHS)
    made.char_layer.__class__ = Doubled
    torch.testing.assert_close(made._character_vectors(ids, LENGTHS), 2 * plain)
