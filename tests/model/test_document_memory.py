"""The scores that a word gets from its document."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from ncrf.model.document_memory import DocumentMemory, mean_of_others, opinions


@given(st.lists(st.integers(0, 3), max_size=10))
def test_the_mean_of_the_others_by_hand(groups):
    values = torch.rand(len(groups), 5)
    found = mean_of_others(values, torch.tensor(groups, dtype=torch.int64))
    assert found.shape == values.shape
    for i, group in enumerate(groups):
        others = [values[j] for j, other in enumerate(groups) if other == group and j != i]
        wanted = torch.stack(others).mean(0) if others else torch.zeros(5)
        torch.testing.assert_close(found[i], wanted)


def test_it_begins_without_influence_and_learns():
    memory = DocumentMemory(4)
    scores, others = torch.randn(2, 3, 4), torch.rand(2, 3, 4)
    assert torch.equal(memory(scores, others), scores)
    memory(scores, others)[..., 1].sum().backward()
    wanted = torch.zeros(4, 4)
    wanted[1] = others.sum((0, 1))
    torch.testing.assert_close(memory.influence.weight.grad, wanted)


def test_dropout_hides_the_others_from_some_words_in_training_alone():
    torch.manual_seed(1)
    memory = DocumentMemory(4, dropout=0.3)
    torch.nn.init.ones_(memory.influence.weight)
    scores, others = torch.zeros(50, 40, 4), torch.full((50, 40, 4), 0.25)
    found = memory(scores, others)
    hidden = (found == 0).all(-1)
    assert torch.equal(found[~hidden], torch.ones_like(found[~hidden]))
    assert abs(hidden.float().mean() - 0.3) < 0.05
    assert torch.equal(memory.eval()(scores, others), torch.ones_like(scores))


def test_opinions_are_probabilities_without_a_gradient():
    scores = torch.randn(6, 4, requires_grad=True)
    found = opinions(scores)
    assert not found.requires_grad
    torch.testing.assert_close(found, scores.exp() / scores.exp().sum(1, keepdim=True))
    assert opinions(scores.bfloat16()).dtype == torch.float32
