"""What the model thinks of a word elsewhere in its document, as a further score of its labels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ncrf.model.dropout import WordDropout


class DocumentMemory(nn.Module):
    """Adds to a word's scores a linear function of what the same word is elsewhere.

    A name that one sentence leaves open is often plain in another. The opinion of a word is the
    softmax of its own scores; the mean opinion of the other words of its group gives, by a learned
    matrix, scores that are added to its own. The chain over them is exact as ever: a probability is
    the true P of the labels of a sentence, given the sentence and these opinions.
    """

    def __init__(self, num_labels: int, dropout: float = 0.0) -> None:
        """The matrix is zero at first: the model begins as one without memory.

        ``dropout`` is the probability with which training hides the others from a word.
        """
        super().__init__()
        self.dropout = WordDropout(dropout)
        self.influence = nn.Linear(num_labels, num_labels, bias=False)
        nn.init.zeros_(self.influence.weight)

    def forward(self, scores: Tensor, others: Tensor) -> Tensor:
        """``scores [...,Y]`` with the influence of the mean opinions ``others [...,Y]``."""
        influence: Tensor = self.influence(self.dropout(others))
        return scores + influence


def opinions(scores: Tensor) -> Tensor:
    """What words are by their own scores ``[...,Y]`` alone, one at a time."""
    return scores.detach().float().softmax(-1)


def mean_of_others(opinions: Tensor, groups: Tensor) -> Tensor:
    """For each of n words the mean of ``opinions [n,Y]`` over the others of its group.

    ``groups [n]`` numbers them from 0 on; a word that is alone in its group gets zeros.
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    sums = opinions.new_zeros(count, opinions.shape[-1]).index_add_(0, groups, opinions)
    sizes = torch.bincount(groups, minlength=count)
    return (sums[groups] - opinions) / (sizes[groups] - 1).clamp_min(1).unsqueeze(-1)
