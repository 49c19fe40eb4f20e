"""The contract of every registered layer, so that a new one is tested as soon as it is there."""

import pytest
import torch

from ncrf.config.schema import Chars, WordLayer
from ncrf.model.char_layers import CHAR_LAYERS
from ncrf.model.word_layers import WORD_LAYERS

WIDTH = 6
LENGTHS = torch.tensor([1, 5, 3, 4])


def char_layer(name):
    torch.manual_seed(0)
    return CHAR_LAYERS.get(name)(Chars(char_seq_feature=name, char_hidden_dim=8), WIDTH)


def word_layer(name, hidden=10, **keys):
    torch.manual_seed(0)
    chosen = WordLayer(word_seq_feature=name, hidden_dim=hidden, cnn_layer=2, **keys)
    return WORD_LAYERS.get(name)(chosen, WIDTH, dropout=0.0)


def padded(lengths, filler=0.0):
    """Random rows ``[B,L,WIDTH]``, ``filler`` beyond each length; the rows do not depend on it."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(len(lengths), int(lengths.max()), WIDTH, generator=generator)
    mask = torch.arange(rows.shape[1]) < lengths[:, None]
    return rows.masked_fill(~mask.unsqueeze(2), filler), mask


def assert_gradient_reaches_all(layer, output):
    output.square().sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def assert_round_trip(make, run):
    first, second = make(), make()
    for parameter in second.parameters():
        torch.nn.init.normal_(parameter)
    assert not torch.equal(run(first), run(second))
    second.load_state_dict(first.state_dict())
    assert torch.equal(run(first), run(second))


@pytest.mark.parametrize("name", list(CHAR_LAYERS))
class TestCharLayers:
    def test_shape_and_gradient(self, name):
        layer = char_layer(name)
        output = layer(padded(LENGTHS)[0], LENGTHS)
        assert output.shape == (4, layer.output_size)
        assert_gradient_reaches_all(layer, output)

    def test_state_round_trip(self, name):
        rows, _ = padded(LENGTHS)
        assert_round_trip(lambda: char_layer(name).eval(), lambda layer: layer(rows, LENGTHS))

    def test_padding_and_order_change_nothing(self, name):
        layer = char_layer(name).eval()
        rows, _ = padded(LENGTHS)
        together = layer(rows, LENGTHS)
        for row, length in enumerate(LENGTHS.tolist()):
            alone = layer(rows[row : row + 1, :length], LENGTHS[row : row + 1])
            torch.testing.assert_close(alone[0], together[row], atol=1e-6, rtol=0)
        order = torch.tensor([2, 0, 3, 1])
        moved = layer(rows[order], LENGTHS[order])
        torch.testing.assert_close(moved, together[order], atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", list(WORD_LAYERS))
class TestWordLayers:
    def test_shape_and_gradient(self, name):
        layer = word_layer(name)
        rows, mask = padded(LENGTHS)
        output = layer(rows, mask, LENGTHS)
        assert output.shape == (*mask.shape, layer.output_size)
        assert_gradient_reaches_all(layer, output[mask])

    def test_state_round_trip(self, name):
        rows, mask = padded(LENGTHS)
        assert_round_trip(
            lambda: word_layer(name).eval(), lambda layer: layer(rows, mask, LENGTHS)[mask]
        )

    @pytest.mark.parametrize("training", [False, True])
    def test_padding_and_order_change_nothing(self, name, training):
        """In training too (without dropout): statistics come from real positions only."""
        if training and name == "CNN":
            self.check_statistics_over_real_positions()
            return
        layer = word_layer(name).train(training)
        rows, mask = padded(LENGTHS, filler=7.0)
        together = layer(rows, mask, LENGTHS)
        for row, length in enumerate(LENGTHS.tolist()):
            one = slice(row, row + 1)
            alone = layer(rows[one, :length], mask[one, :length], LENGTHS[one])
            torch.testing.assert_close(alone[0], together[row, :length], atol=1e-6, rtol=0)
        order = torch.tensor([2, 0, 3, 1])
        moved = layer(rows[order], mask[order], LENGTHS[order])
        torch.testing.assert_close(moved[mask[order]], together[order][mask[order]])

    def check_statistics_over_real_positions(self):
        """More padding, filled with other numbers, leaves outputs and statistics alone."""
        rows, mask = padded(LENGTHS)
        wider = torch.cat([rows.masked_fill(~mask.unsqueeze(2), 9.0), rows + 5], dim=1)
        wider_mask = torch.cat([mask, torch.zeros_like(mask)], dim=1)
        for padding in (0, 3):
            narrow, wide = (word_layer("CNN", cnn_padding=padding) for _ in range(2))
            expected = narrow(rows, mask, LENGTHS)[mask]
            torch.testing.assert_close(wide(wider, wider_mask, LENGTHS)[wider_mask], expected)
            for one, other in zip(narrow.buffers(), wide.buffers(), strict=True):
                torch.testing.assert_close(one, other)


def behind(sentence, count):
    """``sentence [1,N,D]`` with ``count`` words of zeros behind it."""
    return torch.nn.functional.pad(sentence, (0, 0, 0, count))


@pytest.mark.parametrize("padding", [0, 1, 2, 5])
def test_word_cnn_normalizes_by_words_and_the_padding_behind_them(padding):
    ours, theirs = (word_layer("CNN", cnn_padding=padding).double() for _ in range(2))
    rows, mask = padded(LENGTHS)
    rows = rows.double()
    found = ours.train()(rows, mask, LENGTHS)
    sentences = [
        torch.tanh(theirs.input_projection(behind(rows[row : row + 1, :length], padding)))
        for row, length in enumerate(LENGTHS.tolist())
    ]
    for convolution, norm in zip(theirs.convolutions, theirs.norms, strict=True):
        seen = [torch.relu(convolution(s.transpose(1, 2))).transpose(1, 2) for s in sentences]
        flat = norm.train()(torch.cat(seen, dim=1)[0])
        sentences = [s.unsqueeze(0) for s in flat.split([s.shape[1] for s in seen])]
    for row, length in enumerate(LENGTHS.tolist()):
        torch.testing.assert_close(found[row, :length], sentences[row][0, :length])
    for one, other in zip(ours.buffers(), theirs.buffers(), strict=True):
        torch.testing.assert_close(one, other)


def test_as_many_padding_words_as_layers_act_as_endless_ones():
    rows, mask = padded(LENGTHS)
    few, many, one = (word_layer("CNN", cnn_padding=n).eval() for n in (2, 9, 1))
    expected = many(rows, mask, LENGTHS)
    torch.testing.assert_close(few(rows, mask, LENGTHS), expected)
    assert not torch.allclose(one(rows, mask, LENGTHS), expected)


def test_scales_of_batch_normalization_begin_uniform_where_padding_is_normalized():
    assert all(norm.weight.eq(1).all() for norm in word_layer("CNN").norms)
    layer = word_layer("CNN", hidden=400, cnn_padding=4)
    scales = torch.cat([norm.weight.detach() for norm in layer.norms])
    assert 0 <= scales.min() < 0.02 and 0.98 < scales.max() <= 1
    assert abs(float(scales.mean()) - 0.5) < 0.05  # five standard errors of 800


@pytest.mark.parametrize("padding", [0, 1, 3])
def test_word_cnn_equals_torch_sentence_by_sentence(padding):
    layer = word_layer("CNN", cnn_padding=padding).double()
    for norm in layer.norms:
        torch.nn.init.normal_(norm.weight)
        torch.nn.init.normal_(norm.bias)
    rows, mask = padded(LENGTHS)
    rows = rows.double().requires_grad_()
    layer.train()(rows, mask, LENGTHS)  # so that statistics are not those of the start
    layer.eval()
    weights = torch.randn(*mask.shape, layer.output_size, dtype=torch.double)
    total = torch.zeros((), dtype=torch.double)
    for row, length in enumerate(LENGTHS.tolist()):
        words = behind(rows[row : row + 1, :length], padding)
        states = torch.tanh(layer.input_projection(words)).transpose(1, 2)
        for convolution, norm in zip(layer.convolutions, layer.norms, strict=True):
            states = norm(torch.relu(convolution(states)))
        total = total + (states[0, :, :length].t() * weights[row, :length]).sum()
    inputs = [rows, *layer.parameters()]
    expected = torch.autograd.grad(total, inputs)
    ours = (layer(rows, mask, LENGTHS) * weights * mask.unsqueeze(2)).sum()
    torch.testing.assert_close(ours, total)
    torch.testing.assert_close(torch.autograd.grad(ours, inputs), expected)


@pytest.mark.parametrize("padding", [0, 2])
def test_locked_dropout_of_a_word_cnn_drops_the_same_at_all_words_of_a_sentence(padding):
    torch.manual_seed(0)
    keys = WordLayer(
        word_seq_feature="CNN",
        hidden_dim=10,
        cnn_layer=1,
        cnn_padding=padding,
        locked_dropout=True,
    )
    layer = WORD_LAYERS.get("CNN")(keys, WIDTH, dropout=0.5)
    torch.nn.init.ones_(layer.convolutions[0].bias)  # so that what is zero was dropped
    torch.nn.init.zeros_(layer.convolutions[0].weight)
    layer.norms[0] = torch.nn.Identity()
    rows, mask = padded(LENGTHS)
    states = layer.train()(rows, mask, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        assert states[row, :length].eq(states[row, 0]).all()
    assert {0.0, 2.0} == set(states[mask].unique().tolist())
    assert not states[1, 0].eq(states[3, 0]).all()


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
@pytest.mark.parametrize(("layers", "both_ways"), [(1, True), (2, True), (2, False)])
def test_recurrent_layers_equal_torch_on_packed_rows(name, layers, both_ways):
    """The two one-way networks on padded rows give what torch gives on packed ones."""
    layer = word_layer(name, lstm_layer=layers, bilstm=both_ways)
    rows, mask = padded(LENGTHS)
    ours, our_last = layer.recurrent(rows, LENGTHS), layer.recurrent.last(rows, LENGTHS)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        rows, LENGTHS, batch_first=True, enforce_sorted=False
    )
    theirs, final = layer.recurrent.rnn(packed)
    theirs, _ = torch.nn.utils.rnn.pad_packed_sequence(theirs, batch_first=True)
    torch.testing.assert_close(ours[mask], theirs[mask], atol=1e-6, rtol=1e-5)
    hidden = final[0] if name == "LSTM" else final
    their_last = torch.cat(list(hidden[-2:] if both_ways else hidden[-1:]), dim=1)
    torch.testing.assert_close(our_last, their_last, atol=1e-6, rtol=1e-5)


def test_char_cnn_sees_no_padding():
    """A word of one character: its convolution meets zeros on both sides, as torch pads."""
    layer = char_layer("CNN").eval()
    character = torch.randn(1, 1, WIDTH)
    expected = layer.convolution.weight[:, :, 1] @ character[0, 0] + layer.convolution.bias
    padded_word = torch.cat([character, torch.zeros(1, 4, WIDTH)], dim=1)
    torch.testing.assert_close(layer(padded_word, torch.tensor([1]))[0], expected)
