"""Row-by-row updates of large tables give the weights that dense ones give."""

import pytest
import torch
from torch import nn

from ncrf import load_config
from ncrf.train.optimizers import Updates

ROWS, WIDTH, STEPS = 12, 3, 6


def training_keys(**keys):
    return load_config(keys, check_files=False).training


class Tiny(nn.Module):
    """A table and a projection, with what Updates wants to know of a labeler."""

    def __init__(self, rowwise):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(ROWS, WIDTH, padding_idx=0, sparse=rowwise)
        self.projection = nn.Linear(WIDTH, 2)
        self.device = torch.device("cpu")
        tables = [self.table.weight] if rowwise else []
        self.rowwise_gradients = lambda: tables

    def loss(self, rows):
        return self.projection(self.table(rows)).square().sum()


def rows_of(step):
    generator = torch.Generator().manual_seed(step)
    return torch.randint(0, ROWS // 2 + step, (5,), generator=generator)


def run(model, updates, steps, rate=0.05):
    norms = []
    for step in steps:
        updates.zero_grad()
        model.loss(rows_of(step)).backward()
        model.loss(rows_of(step).flip(0)[:2]).backward()  # a batch in two pieces
        norms.append(updates.step(rate / (1 + step)).item())
    return norms


@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("clip", [None, 0.5])
def test_sgd_by_rows_equals_dense_sgd(l2, clip):
    """The table after settling; between steps only rows in use are read, so all losses agree."""
    keys = training_keys(optimizer="SGD", l2=l2, clip=clip)
    by_row, dense = Tiny(True), Tiny(False)
    updates, plain = Updates(by_row, keys), torch.optim.SGD(dense.parameters(), weight_decay=l2)
    norms = run(by_row, updates, range(STEPS))
    updates.settle()
    for step in range(STEPS):
        plain.param_groups[0]["lr"] = 0.05 / (1 + step)
        plain.zero_grad()
        (dense.loss(rows_of(step)) + dense.loss(rows_of(step).flip(0)[:2])).backward()
        norm = nn.utils.clip_grad_norm_(dense.parameters(), clip or 1e9)
        if not l2:
            assert norms[step] == pytest.approx(norm.item(), rel=1e-5)
        plain.step()
    if l2:
        # A row takes what it has missed when it is next updated, not when it is read.
        unused = torch.tensor([True] * ROWS)
        for step in range(STEPS):
            unused[rows_of(step)] = False
        assert unused.any()
        torch.testing.assert_close(by_row.table.weight[unused], dense.table.weight[unused])
    else:
        torch.testing.assert_close(by_row.state_dict(), dense.state_dict())


@pytest.mark.parametrize("name", ["SGD", "Adagrad"])
def test_a_table_of_single_numbers(name):
    """Weights of templates ``[K]`` move as a table ``[K,1]`` does."""
    keys = training_keys(optimizer=name, l2=0.3, clip=0.5)
    start, found = torch.randn(ROWS, generator=torch.Generator().manual_seed(0)), []
    for shape in ((ROWS,), (ROWS, 1)):
        model = Tiny(False)
        model.table.weight = nn.Parameter(start.clone().view(shape))
        model.rowwise_gradients = lambda model=model: [model.table.weight]
        updates = Updates(model, keys)
        for step in range(STEPS):
            updates.zero_grad()
            rows = rows_of(step)
            values = torch.arange(1.0, 1 + len(rows)).view(-1, *shape[1:])
            if step % 2:  # what rises already is not sorted again
                rows, values = rows.unique(), values[: len(rows.unique())]
            table = model.table.weight
            table.grad = torch.sparse_coo_tensor(rows[None], values, shape, check_invariants=True)
            updates.step(0.05)
        updates.settle()
        found.append(model.table.weight.detach().view(-1))
    assert torch.equal(*found) and not torch.equal(found[0], start)


def test_the_decay_of_a_row_in_use_is_that_of_every_step():
    """With a gradient of zero only the decay moves the weights, whichever rows are in use."""
    keys = training_keys(optimizer="SGD", l2=0.5)
    model = Tiny(True)
    with torch.no_grad():
        model.projection.weight.zero_()
        model.projection.bias.zero_()
    before = model.table.weight.detach().clone()
    updates = Updates(model, keys)
    run(model, updates, range(STEPS))
    assert not torch.allclose(model.table.weight[1:], before[1:])
    updates.settle()
    factor = 1.0
    for step in range(STEPS):
        factor *= 1 - 0.5 * 0.05 / (1 + step)
    torch.testing.assert_close(model.table.weight.detach(), before * factor)


def test_adagrad_by_rows_equals_dense_adagrad():
    by_row, dense = Tiny(True), Tiny(False)
    run(by_row, Updates(by_row, training_keys(optimizer="Adagrad", l2=0)), range(STEPS))
    plain = torch.optim.Adagrad(dense.parameters())
    for step in range(STEPS):
        plain.param_groups[0]["lr"] = 0.05 / (1 + step)
        plain.zero_grad()
        (dense.loss(rows_of(step)) + dense.loss(rows_of(step).flip(0)[:2])).backward()
        plain.step()
    torch.testing.assert_close(by_row.state_dict(), dense.state_dict())


def test_adagrad_decays_the_rows_of_the_batch_alone():
    model = Tiny(True)
    before = model.table.weight.detach().clone()
    run(model, Updates(model, training_keys(optimizer="Adagrad", l2=0.5)), [0])
    used = torch.zeros(ROWS, dtype=torch.bool)
    used[rows_of(0)] = True
    used[0] = False
    moved = (model.table.weight.detach() != before).any(1)
    assert moved.equal(used)


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "Adam"])
def test_a_restored_state_goes_on_the_same_way(name):
    keys = training_keys(optimizer=name, l2=0.1)
    rowwise = name != "Adam"
    whole, broken = Tiny(rowwise), Tiny(rowwise)
    updates = Updates(whole, keys)
    run(whole, updates, range(STEPS))
    first = Updates(broken, keys)
    run(broken, first, range(3))
    again = Tiny(rowwise)
    again.load_state_dict(broken.state_dict())
    second = Updates(again, keys)
    second.restore(first.tensors())
    run(again, second, range(3, STEPS))
    for one in (updates, second):
        one.settle()
    for name_, values in whole.state_dict().items():
        assert torch.equal(values, again.state_dict()[name_]), name_


def test_a_gradient_that_is_not_finite_moves_nothing():
    model = Tiny(True)
    updates = Updates(model, training_keys(optimizer="SGD"))
    before = {name: values.clone() for name, values in model.state_dict().items()}
    (model.loss(rows_of(0)) * float("inf")).backward()
    assert not torch.isfinite(updates.step(0.1))
    for name, values in model.state_dict().items():
        assert torch.equal(values, before[name])


@pytest.mark.parametrize("name", ["sgd", "ADAM", "AdaGrad", "adadelta", "rmsprop", "AdamW"])
def test_optimizers_are_found_in_any_case_and_follow_the_gradient(name):
    model = Tiny(False)
    keys = training_keys(optimizer=name, l2=0.01, momentum=0 if "a" in name.lower() else 0.5)
    updates = Updates(model, keys)
    before = model.loss(rows_of(0)).item()
    run(model, updates, [0] * 5)
    assert model.loss(rows_of(0)).item() < before


def test_a_decay_that_no_row_survives_is_dense():
    """learning_rate · l2 of 1 or more leaves nothing to make up for later."""
    model = Tiny(True)
    keys = training_keys(optimizer="SGD", learning_rate=2.0, l2=0.5)
    assert not Updates(model, keys).tensors()
