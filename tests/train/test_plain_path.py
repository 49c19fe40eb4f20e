"""Speed changes no result: batch by batch, training equals a network of torch's plain layers."""

from itertools import islice

import pytest
import torch
from torch import nn

from ncrf import Tagger
from ncrf.train.minibatch import Trainer
from tests.conftest import SAMPLE, small_keys

BATCHES = 40


class Plain(nn.Module):
    """Packed LSTM, convolution and a CRF in log space, with the weights of a labeler."""

    def __init__(self, labeler):
        super().__init__()
        state = labeler.state_dict()
        self.words, self.characters = (
            nn.Embedding.from_pretrained(
                state[f"representation.{name}_embedding.weight"].clone(), False, padding_idx=0
            )
            for name in ("word", "char")
        )
        shape = state["representation.char_layer.convolution.weight"].shape
        self.convolution = nn.Conv1d(shape[1], shape[0], 3, padding=1)
        rnn = labeler.word_layer.recurrent.rnn
        self.lstm = nn.LSTM(rnn.input_size, rnn.hidden_size, batch_first=True, bidirectional=True)
        self.projection = nn.Linear(2 * rnn.hidden_size, labeler.projection.out_features)
        self.double()
        self._load(self.convolution, state, "representation.char_layer.convolution.")
        self._load(self.lstm, state, "word_layer.recurrent.rnn.")
        self._load(self.projection, state, "projection.")
        crf = "inference.crf."
        self.transitions, self.start, self.end = (
            nn.Parameter(state[f"{crf}{name}"].clone())
            for name in ("transitions", "start_transitions", "end_transitions")
        )

    def _load(self, module, state, prefix):
        names = [name for name in state if name.startswith(prefix)]
        module.load_state_dict({name.removeprefix(prefix): state[name] for name in names})

    def emissions(self, batch):
        convolved = self.convolution(self.characters(batch.characters).transpose(1, 2))
        padding = torch.arange(convolved.shape[2]) >= batch.character_lengths[:, None]
        vectors = convolved.masked_fill(padding[:, None], -1e9).amax(2)
        words = torch.cat([self.words(batch.words), vectors], 1)[batch.word_index]
        packed = nn.utils.rnn.pack_padded_sequence(
            words, batch.lengths, batch_first=True, enforce_sorted=False
        )
        return self.projection(nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], True)[0])

    def loss(self, batch):
        emissions, labels, mask = self.emissions(batch), batch.labels, batch.mask
        score = self.start[labels[:, 0]] + emissions[:, 0].gather(1, labels[:, :1])[:, 0]
        total = self.start + emissions[:, 0]
        for t in range(1, emissions.shape[1]):
            step = torch.logsumexp(total.unsqueeze(2) + self.transitions, 1) + emissions[:, t]
            total = torch.where(mask[:, t, None], step, total)
            here = emissions[:, t].gather(1, labels[:, t : t + 1])[:, 0]
            score += (self.transitions[labels[:, t - 1], labels[:, t]] + here) * mask[:, t]
        last = labels.gather(1, batch.lengths[:, None] - 1)[:, 0]
        return (torch.logsumexp(total + self.end, 1) - score - self.end[last]).sum()


@pytest.mark.parametrize(("batch_size", "threads"), [(10, 1), (40, 2), (40, 5)])
def test_the_losses_of_the_first_batches(tmp_path, monkeypatch, batch_size, threads):
    """In float64, and at a rate at which it learns: rounding does not grow into a difference."""
    found = []
    rate = 0.15 / batch_size

    def run(trainer):
        trainer.labeler.double().train()
        plain = Plain(trainer.labeler)
        optimizer = torch.optim.SGD(plain.parameters(), lr=rate)
        steps = (
            s for epoch in range(9) for s in trainer._feed.steps(epoch, 0, torch.device("cpu"))
        )
        for number, step in enumerate(islice(steps, BATCHES), 1):
            before = trainer.progress.loss
            trainer._step(step, number, rate)
            optimizer.zero_grad()
            loss = sum(plain.loss(batch) for batch in step.batches)
            loss.backward()
            optimizer.step()
            found.append((trainer.progress.loss - before, loss.item()))
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "run", run)
    monkeypatch.setattr("ncrf.model.representation._ROWWISE_ROWS", 10)
    monkeypatch.setattr("ncrf.model.recurrent._FEWEST", 8)
    monkeypatch.setattr("ncrf.model.representation._MAX_CHARACTERS", 256)
    monkeypatch.setattr("ncrf.train.minibatch._SPARED", 128)
    keys = {"dropout": 0, "bucket": False, "l2": 0, "unk_singleton": 0.1}
    sizes = {"train_dir": str(SAMPLE / "train.bioes"), "batch_size": batch_size, "threads": threads}
    with pytest.raises(KeyboardInterrupt):
        Tagger.train(small_keys(tmp_path / "model", **keys, **sizes))
    assert len(found) == BATCHES
    for ours, plain in found:
        assert ours == pytest.approx(plain, rel=1e-9)
    assert found[-1][0] < found[0][0]
