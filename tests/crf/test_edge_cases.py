"""Inputs at the edge, and shortcuts seen in teaching code, each shown wrong."""

import math
import warnings
from typing import Any

import pytest
import torch
from hypothesis import given, settings

from ncrf.crf import (
    LinearChainCRF,
    RowError,
    forward_backward,
    log_partition,
    log_prob,
    marginals,
    nbest,
    path_score,
    viterbi,
)
from tests.crf.oracle import Case, Row, by_row, cases, close, make_case

MANY = settings(max_examples=60)


def likelihood(case: Case, labels: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    emissions, transitions, start, end = case.scores
    return log_prob(emissions, labels, transitions, start, end, case.mask if mask is None else mask)


@MANY
@given(cases(mask="holes", by_position=False))
def test_masked_positions_are_as_if_not_there(case: Case) -> None:
    labels = case.random_labels(0)
    for b, row in enumerate(case.rows()):
        alone = (row.emissions[None], *case.scores[1:])
        words = labels[b, row.positions][None]
        whole = [x[b] for x in nbest(*case.inputs, n=3)]
        assert close(likelihood(case, labels)[b], log_prob(alone[0], words, *alone[1:])[0], 1e-9)
        assert torch.equal(
            viterbi(*case.inputs).labels[b, row.positions], viterbi(*alone).labels[0]
        )
        count = int(whole[2])
        assert torch.equal(whole[1][:count][:, row.positions], nbest(*alone, n=3).labels[0, :count])
        assert close(marginals(*case.inputs)[b, row.positions], marginals(*alone)[0], 1e-9)


def test_empty_rows() -> None:
    case = make_case(1, batch=3, mask="full").leaves()
    case.mask[1] = False
    labels = case.random_labels(0)
    found = likelihood(case, labels)
    assert found[1] == 0
    (gradient,) = torch.autograd.grad(found.sum(), case.emissions)
    assert not gradient[1].any()
    neighbours = torch.tensor([0, 2])
    emissions, *others = case.scores
    others.append(case.mask[neighbours])
    alone = log_prob(emissions[neighbours], labels[neighbours], *others)
    assert torch.equal(found[neighbours], alone)
    assert torch.equal(
        viterbi(*case.inputs).labels[neighbours], viterbi(emissions[neighbours], *others).labels
    )
    assert not viterbi(*case.inputs).labels[1].any()


@pytest.mark.parametrize("filler", [math.nan, math.inf, -math.inf, 1e30])
@pytest.mark.parametrize("gradient", [False, True])
def test_what_stands_in_padding_does_not_matter(filler: float, gradient: bool) -> None:
    for mask in ("ragged", "holes"):
        case = make_case(2, batch=6, labels=3, mask=mask).to(torch.float32)
        case.mask[3] = False
        labels = case.random_labels(0)
        filled = case.with_emissions(case.emissions.masked_fill(~case.mask.unsqueeze(2), filler))
        clean = case.with_emissions(case.emissions.masked_fill(~case.mask.unsqueeze(2), 0.0))
        if gradient:
            filled, clean = filled.leaves(), clean.leaves()
            gradients = [
                torch.autograd.grad(likelihood(x, labels).sum(), x.scores) for x in (filled, clean)
            ]
            assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
        assert torch.equal(likelihood(filled, labels), likelihood(clean, labels))
        for quantity in (marginals, log_partition, forward_backward, viterbi):
            for a, b in zip(quantity(*filled.inputs), quantity(*clean.inputs), strict=True):
                assert torch.equal(a, b)
        for a, b in zip(nbest(*filled.inputs, n=5), nbest(*clean.inputs, n=5), strict=True):
            assert torch.equal(a, b)


def test_one_word_sentences() -> None:
    case = make_case(3, batch=2, width=1, labels=4, mask="full")
    total = (case.start + case.emissions[:, 0] + case.end).log_softmax(1)
    labels = torch.tensor([[2], [3]])
    assert close(likelihood(case, labels), total.gather(1, labels).squeeze(1))
    assert close(marginals(*case.inputs)[:, 0], total.exp())


def test_labels_under_the_mask_are_ignored() -> None:
    case = make_case(4, batch=4)
    labels = case.random_labels(0)
    for filler in (-100, 7, -(2**40)):
        other = labels.masked_fill(~case.mask, filler)
        assert torch.equal(likelihood(case, other), likelihood(case, labels))


@pytest.mark.parametrize("label", [-100, -1, 3])
def test_labels_that_are_none(label: int) -> None:
    labels = torch.zeros(2, 4, dtype=torch.long)
    labels[1, 2] = label
    with pytest.raises(RowError, match=f"row 1, position 2: label {label}, expected 0 to 2"):
        log_prob(torch.zeros(2, 4, 3), labels, torch.zeros(3, 3))
    holes = torch.tensor([[True] * 4, [False, True, True, True]])
    with pytest.raises(RowError, match="row 1, position 2") as raised:
        log_prob(torch.zeros(2, 4, 3), labels, torch.zeros(3, 3), mask=holes)
    assert (raised.value.row, raised.value.position) == (1, 2)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float32, torch.int8])
def test_masks_of_numbers(dtype: torch.dtype) -> None:
    case = make_case(5, batch=4, mask="holes")
    labels = case.random_labels(0)
    mask = case.mask.to(dtype)
    assert torch.equal(likelihood(case, labels, mask), likelihood(case, labels))
    assert torch.equal(viterbi(*case.scores, mask=mask).labels, viterbi(*case.inputs).labels)
    crf = LinearChainCRF(3).double()
    for reduction in ("mean", "token_mean"):
        numbers = crf(case.emissions, labels, mask, reduction)
        assert close(numbers, crf(case.emissions, labels, case.mask, reduction))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
def test_lengths_do_not_overflow(dtype: torch.dtype) -> None:
    mask = torch.ones(1, 300, dtype=dtype)
    assert close(
        log_partition(torch.zeros(1, 300, 2), torch.zeros(2, 2), mask=mask), 300 * math.log(2), 1e-6
    )


@pytest.mark.parametrize("gradient", [False, True])
def test_a_label_that_nothing_leads_to(gradient: bool) -> None:
    case = make_case(6, labels=3, mask="full")
    transitions = case.transitions.clone()
    transitions[:, 1] = -math.inf
    start = case.start.clone()
    start[1] = -math.inf
    case = Case(case.emissions, transitions, start, case.end, case.mask)
    case = case.leaves() if gradient else case
    found = log_partition(*case.inputs)
    assert close(found, by_row(case, Row.log_z))
    assert not marginals(*case.inputs)[..., 1].any()
    if gradient:
        for derivative in torch.autograd.grad(found.sum(), case.scores):
            assert torch.isfinite(derivative).all()


@pytest.mark.parametrize("gradient", [False, True])
def test_a_row_without_a_labeling(gradient: bool) -> None:
    case = make_case(7, batch=3, mask="full")
    emissions = case.emissions.clone()
    emissions[1, 3] = -math.inf
    case = case.with_emissions(emissions)
    case = case.leaves() if gradient else case
    found = log_partition(*case.inputs)
    assert found[1] == -math.inf
    assert torch.isfinite(found[[0, 2]]).all()
    if gradient:
        for derivative in torch.autograd.grad(found[[0, 2]].sum(), case.scores, retain_graph=True):
            assert torch.isfinite(derivative).all()
        (derivative,) = torch.autograd.grad(found[1], case.emissions)
        assert not derivative.any()
    labels = torch.zeros(3, 5, dtype=torch.long)
    for quantity in (marginals, forward_backward, viterbi):
        with pytest.raises(RowError, match="row 1: no labeling is possible"):
            quantity(*case.inputs)
    with pytest.raises(RowError, match="row 1: no labeling is possible"):
        likelihood(case, labels)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize(
    ("what", "position"), [("start", 1), ("end", 4), ("transitions", 3), ("emissions", 2)]
)
def test_a_labeling_that_is_forbidden(what: str, position: int, gradient: bool) -> None:
    scores: Any = {
        "emissions": torch.zeros(2, 5, 3),
        "transitions": torch.zeros(3, 3),
        "start": torch.zeros(3),
        "end": torch.zeros(3),
    }
    labels = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 1, 2, 2]])
    mask = torch.tensor([[True] * 5, [False, True, True, True, True]])
    banned = {"start": (0,), "end": (2,), "transitions": (1, 2), "emissions": (1, 2, 1)}
    # The other row stays possible.
    labels[0] = 1 if what == "start" else 0
    scores[what][banned[what]] = -math.inf
    if gradient:
        scores["emissions"].requires_grad_()
    with pytest.raises(RowError, match=f"row 1, position {position}: label") as raised:
        log_prob(labels=labels, mask=mask, **scores)
    assert (raised.value.row, raised.value.position) == (1, position)
    assert path_score(labels=labels, mask=mask, **scores)[1] == -math.inf


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_emissions_that_are_not_numbers(value: float, gradient: bool) -> None:
    emissions = torch.zeros(3, 4, 2)
    emissions[2, 3, 1] = value
    emissions.requires_grad_(gradient)
    mask = torch.ones(3, 4)
    mask[2, 1] = 0
    labels = torch.zeros(3, 4, dtype=torch.long)
    crf = LinearChainCRF(2)
    for call in (crf.log_partition, crf.marginals, crf.decode, crf.nbest, crf.entropy, crf.sample):
        with pytest.raises(RowError, match="row 2, position 3: emission of label 1 is") as raised:
            call(emissions, mask)
        assert (raised.value.row, raised.value.position) == (2, 3)
    with pytest.raises(RowError, match="row 2, position 3"):
        crf(emissions, labels, mask)
    mask[2, 3] = 0
    assert torch.isfinite(crf(emissions, labels, mask))


@pytest.mark.parametrize("name", ["transitions", "start", "end"])
def test_parameters_that_are_not_numbers(name: str) -> None:
    scores: Any = {"transitions": torch.zeros(2, 2), "start": torch.zeros(2), "end": torch.zeros(2)}
    scores[name].view(-1)[1] = math.nan
    for quantity in (log_partition, viterbi, marginals):
        with pytest.raises(ValueError, match=f"{name} hold NaN"):
            quantity(torch.zeros(1, 3, 2), **scores)


def test_wrong_shapes_and_types() -> None:
    emissions, transitions = torch.zeros(2, 4, 3), torch.zeros(3, 3)
    labels = torch.zeros(2, 4, dtype=torch.long)
    wrong_shapes: list[Any] = [
        (emissions[0], transitions, {}),
        (emissions, torch.zeros(2, 2), {}),
        (emissions, torch.zeros(2, 4, 3, 3), {}),
        (emissions, transitions, {"start": torch.zeros(2)}),
        (emissions, transitions, {"end": torch.zeros(1, 3)}),
        (emissions, transitions, {"mask": torch.ones(2, 3)}),
        (emissions, transitions, {"allowed": torch.ones(2, 4)}),
        (torch.zeros(2, 4, 0), torch.zeros(0, 0), {}),
    ]
    for first, second, others in wrong_shapes:
        with pytest.raises(ValueError, match="expected"):
            log_partition(first, second, **others)
    with pytest.raises(ValueError, match="labels: shape"):
        log_prob(emissions, labels[:, :3], transitions)
    with pytest.raises(TypeError, match="floating"):
        log_partition(emissions.long(), transitions)
    for wrong in (labels.float(), labels.bool()):
        with pytest.raises(TypeError, match="integers"):
            log_prob(emissions, wrong, transitions)
    assert close(
        log_prob(emissions, labels.int(), transitions), torch.full((2,), -4 * math.log(3)), 1e-6
    )


def test_read_only_arrays_are_taken_without_a_warning() -> None:
    numpy = pytest.importorskip("numpy")
    legal = [numpy.ones(2, dtype=bool), numpy.ones((2, 2), dtype=bool), numpy.ones(2, dtype=bool)]
    for array in legal:
        array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = LinearChainCRF(2, legal).decode(torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]))
    assert labels.tolist() == [[1, 0]]


@pytest.mark.parametrize("gradient", [False, True])
def test_inputs_laid_out_in_any_way(gradient: bool) -> None:
    case = make_case(8, batch=3, width=4, labels=3, mask="holes")
    emissions = torch.stack([case.emissions.permute(2, 1, 0)] * 2, -1)[..., 1].permute(2, 1, 0)
    assert not emissions.is_contiguous()
    strange = Case(
        emissions.requires_grad_(gradient),
        case.transitions.t().contiguous().t(),
        torch.stack([case.start] * 2, 1)[:, 0],
        case.end.flip(0).flip(0),
        case.mask.t().contiguous().t(),
    )
    labels = case.random_labels(0).t().contiguous().t()
    assert torch.equal(likelihood(strange, labels), likelihood(case, labels))
    for quantity in (marginals, log_partition, forward_backward, viterbi):
        for found, expected in zip(quantity(*strange.inputs), quantity(*case.inputs), strict=True):
            assert close(found, expected)
    assert torch.equal(nbest(*strange.inputs, n=4).labels, nbest(*case.inputs, n=4).labels)


def test_inference_mode() -> None:
    crf = LinearChainCRF(3)
    emissions = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        inside = (crf.decode(emissions), crf.marginals(emissions), *crf.nbest(emissions, None, 3))
    outside = (crf.decode(emissions), crf.marginals(emissions), *crf.nbest(emissions, None, 3))
    assert all(close(a, b, 1e-6) for a, b in zip(inside, outside, strict=True))


def test_decoded_labels_can_be_trained_on() -> None:
    crf = LinearChainCRF(3)
    emissions = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(1))
    labels, best = crf.decode(emissions), crf.nbest(emissions, None, 2)
    value = crf(emissions, labels) + crf(emissions, best.labels[:, 1])
    torch.autograd.backward(value * best.log_probabilities.sum())
    assert crf.transitions.grad is not None


class TestShortcuts:
    """What teaching code does, and why it is wrong."""

    case = make_case(11, batch=3, width=5, labels=3, mask="full")
    case.mask[0, 4:] = False
    case.mask[1, 2:] = False
    labels = case.random_labels(3)

    def exact_scores(self) -> torch.Tensor:
        rows = enumerate(self.case.rows())
        return torch.stack([row.scores()[row.place(self.labels[b])] for b, row in rows])

    def ours(self) -> torch.Tensor:
        emissions, *others = self.case.inputs
        return path_score(emissions, self.labels, *others)

    def inner_scores(self) -> torch.Tensor:
        """Scores without the end."""
        emissions, transitions, start, end, mask = self.case.inputs
        return path_score(emissions, self.labels, transitions, start, torch.zeros_like(end), mask)

    def test_end_gathered_without_the_batch_index(self) -> None:
        last = self.case.mask.sum(1) - 1
        shortcut = self.inner_scores() + self.case.end[self.labels[:, last].clamp_min(0)][0]
        assert close(self.ours(), self.exact_scores())
        assert not close(shortcut, self.exact_scores(), 1e-3)

    def test_length_of_the_first_row_taken_for_all(self) -> None:
        length = int(self.case.mask[0].sum())
        final = self.labels[:, length - 1].clamp_min(0)
        shortcut = self.inner_scores() + self.case.end[final]
        assert not close(shortcut, self.exact_scores(), 1e-3)
        assert close(self.ours(), self.exact_scores())

    def test_a_float_mask_that_mixes_old_and_new(self) -> None:
        """Weighing by 0 and 1 in place of choosing makes NaN of minus infinity."""
        emissions = self.case.emissions.clone()
        emissions[0, 4] = -math.inf
        case = self.case.with_emissions(emissions)
        mask = case.mask.double().unsqueeze(2)
        alpha = case.start + emissions[:, 0]
        for t in range(1, 5):
            new = torch.logsumexp(alpha.unsqueeze(2) + case.transitions, 1) + emissions[:, t]
            alpha = mask[:, t] * new + (1 - mask[:, t]) * alpha
        shortcut = torch.logsumexp(alpha + case.end, 1)
        assert shortcut.isnan().any()
        assert close(log_partition(*case.scores, mask=case.mask.float()), by_row(case, Row.log_z))

    def test_a_greedy_walk_that_calls_itself_viterbi(self) -> None:
        """The best label so far is kept, not one score for each label."""
        emissions = torch.tensor([[[1.0, 0.9], [0.0, 0.0], [0.0, 0.0]]])
        transitions = torch.tensor([[0.0, 0.0], [-1.0, 5.0]])
        label = int(emissions[0, 0].argmax())
        greedy = [label]
        for t in range(1, 3):
            label = int((transitions[label] + emissions[0, t]).argmax())
            greedy.append(label)
        zeros = torch.zeros(2)
        case = Case(emissions, transitions, zeros, zeros, torch.ones(1, 3, dtype=torch.bool))
        row = case.rows()[0]
        best = row.paths[row.scores().argmax()].tolist()
        assert viterbi(emissions, transitions).labels[0].tolist() == best
        assert greedy != best

    def test_probability_less_one_as_the_gradient(self) -> None:
        """(P - 1) times the observed features, and not observed minus expected counts."""
        case = self.case.leaves()
        found = likelihood(case, self.labels)
        (gradient,) = torch.autograd.grad(found.sum(), case.transitions)
        expected = torch.zeros(3, 3, dtype=torch.float64)
        shortcut = torch.zeros(3, 3, dtype=torch.float64)
        for b, row in enumerate(self.case.rows()):
            observed = torch.zeros(3, 3, dtype=torch.float64)
            words = self.labels[b, row.positions]
            observed.index_put_((words[:-1], words[1:]), torch.tensor(1.0).double(), True)
            expected += observed - row.pairwise_marginals().sum(0)
            shortcut += (1 - row.probabilities()[row.place(self.labels[b])]) * observed
        assert close(gradient, expected)
        assert not close(shortcut, expected, 1e-3)
