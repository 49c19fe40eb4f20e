"""Pair scores by position, in every quantity, against enumeration."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ncrf import crf as functions
from ncrf.crf import LinearChainCRF, RowError, SpanMasks
from tests.crf.oracle import Case, Row, by_row, close, make_case

MANY = settings(max_examples=60)
LEGAL = ([True, True, False], [[True, True, False], [True] * 3, [True] * 3], [True] * 3)


@dataclass(frozen=True)
class Paired:
    """A case with pair scores, and the same scores as one matrix a position, for the oracle."""

    case: Case
    pairs: Tensor
    labels: Tensor

    @property
    def whole(self) -> Case:
        case = self.case
        transitions = case.transitions + self.pairs
        return Case(case.emissions, transitions, case.start, case.end, case.mask)

    @property
    def leaves(self) -> tuple[Tensor, ...]:
        return (*self.case.scores, self.pairs)

    def changed(self, function: Any) -> "Paired":
        return Paired(self.case.changed(function), function(self.pairs), self.labels)


def make(seed: int, batch: int = 3, width: int = 5, labels: int = 3, **options: Any) -> Paired:
    """Both the transitions and the pair scores have all that make_case has, -inf too."""
    whole = make_case(seed, batch, width, labels, by_position=True, **options)
    generator = torch.Generator().manual_seed(seed + 1)
    shared = torch.randn(labels, labels, generator=generator, dtype=torch.float64)
    gold = whole.random_labels(seed)
    case = Case(whole.emissions, shared, whole.start, whole.end, whole.mask)
    pairs = whole.transitions - shared
    if options.get("forbidden") and labels > 1:  # one pair that no position allows
        for i, j in ((i, j) for i in range(labels) for j in range(labels)):
            shared_too = shared.clone()
            shared_too[i, j] = -math.inf
            closed = Case(case.emissions, shared_too + pairs, case.start, case.end, case.mask)
            if all(bool((row.scores() > -math.inf).any()) for row in closed.rows()):
                case = Case(case.emissions, shared_too, case.start, case.end, case.mask)
                gold = closed.random_labels(seed)
                break
    return Paired(case, pairs, gold)


def paired(**fixed: Any) -> st.SearchStrategy[Paired]:
    choices = {
        "seed": st.integers(0, 2**31),
        "batch": st.sampled_from([3, 2, 1]),
        "width": st.sampled_from([4, 5, 3, 2, 1, 0]),
        "labels": st.sampled_from([3, 4, 2, 1]),
        "scale": st.sampled_from([1.0, 5.0, 60.0]),
        "forbidden": st.sampled_from([0.0, 0.3, 0.6]),
        "mask": st.sampled_from(["full", "ragged", "holes"]),
    }
    choices.update({key: st.just(value) for key, value in fixed.items()})
    return st.builds(make, **choices)


@MANY
@given(paired())
def test_likelihoods(chain: Paired) -> None:
    emissions, *others = chain.case.inputs
    rows = chain.whole.rows()
    log_z = by_row(chain.whole, Row.log_z)
    scores = torch.stack([r.scores()[r.place(chain.labels[b])] for b, r in enumerate(rows)])
    pairs = chain.pairs
    assert close(functions.log_partition(emissions, *others, pair_scores=pairs), log_z)
    found = functions.path_score(emissions, chain.labels, *others, pair_scores=pairs)
    assert close(found, scores)
    found = functions.log_prob(emissions, chain.labels, *others, pair_scores=pairs)
    assert close(found, scores - log_z)
    vectors = functions.forward_backward(emissions, *others, pair_scores=pairs)
    assert close(vectors.log_partition, log_z)
    totals = torch.logsumexp(vectors.alpha + vectors.beta, 2)
    expected = log_z.unsqueeze(1).expand_as(totals)
    assert close(totals[chain.case.mask], expected[chain.case.mask])


@MANY
@given(paired())
def test_marginals_and_expected_counts(chain: Paired) -> None:
    inputs: Any = (*chain.case.inputs,)
    options = {"pair_scores": chain.pairs}
    words = functions.marginals(*inputs, **options)
    pairs = functions.pairwise_marginals(*inputs, **options)
    counts = functions.expected_counts(*inputs, **options)
    for b, row in enumerate(chain.whole.rows()):
        assert close(words[b, row.positions], row.marginals())
        assert close(pairs[b, row.positions[1:] - 1], row.pairwise_marginals())
        assert close(pairs[b].sum(), max(row.length - 1, 0))
        assert close(counts.states[b], row.marginals().sum(0))
        assert close(counts.transitions[b], row.pairwise_marginals().sum(0))


@MANY
@given(paired())
def test_best_labelings(chain: Paired) -> None:
    inputs: Any = (*chain.case.inputs,)
    best = functions.viterbi(*inputs, pair_scores=chain.pairs)
    several = functions.nbest(*inputs, n=6, pair_scores=chain.pairs)
    for b, row in enumerate(chain.whole.rows()):
        scores = row.scores()
        assert close(best.scores[b], scores.max())
        assert close(scores[row.place(best.labels[b])], scores.max())
        log_probs = (scores - row.log_z()).sort(descending=True).values
        count = int(several.counts[b])
        assert count == min(6, int((scores > -torch.inf).sum()))
        assert close(several.log_probabilities[b, :count], log_probs[:count])
        places = [row.place(y) for y in several.labels[b, :count]]
        assert len(set(places)) == count
        assert close((scores - row.log_z())[places], log_probs[:count])


@MANY
@given(paired(), st.integers(0, 1000))
def test_entropy_divergence_and_partial_labels(chain: Paired, seed: int) -> None:
    emissions, *others = chain.case.inputs
    options = {"pair_scores": chain.pairs}

    def entropy(row: Row) -> Tensor:
        p = row.probabilities()
        return -torch.xlogy(p, p).sum()

    found = functions.entropy(emissions, *others, **options)  # type: ignore[arg-type]
    assert close(found, by_row(chain.whole, entropy), 1e-8)
    divergence = functions.kl_divergence(chain.leaves, chain.whole.scores, chain.case.mask)
    assert close(divergence, torch.zeros(len(divergence)), 1e-8)
    generator = torch.Generator().manual_seed(seed)
    possible = torch.rand(emissions.shape, generator=generator) < 0.5
    possible |= torch.nn.functional.one_hot(chain.labels.clamp_min(0), chain.case.num_labels).bool()
    total = functions.partial_log_prob(emissions, possible, *others, pair_scores=chain.pairs)
    for b, row in enumerate(chain.whole.rows()):
        assert close(total[b].exp(), row.probabilities()[row.agreeing(possible[b])].sum())


def test_divergence_from_a_chain_without_pair_scores() -> None:
    chain = make(3, mask="full")
    found = functions.kl_divergence(chain.leaves, chain.case.scores, chain.case.mask)
    for b, (p, q) in enumerate(zip(chain.whole.rows(), chain.case.rows(), strict=True)):
        log_ratio = (p.scores() - p.log_z()) - (q.scores() - q.log_z())
        assert close(found[b], (p.probabilities() * log_ratio).sum())


def test_samples_come_as_often_as_they_are_probable() -> None:
    chain = make(4, batch=2, width=4, forbidden=0.3, mask="holes")
    n = 20_000
    generator = torch.Generator().manual_seed(0)
    found = functions.sample(*chain.case.inputs, n=n, generator=generator, pair_scores=chain.pairs)
    for b, row in enumerate(chain.whole.rows()):
        p = row.probabilities()
        places = torch.zeros(n, dtype=torch.long)
        for position in row.positions:
            places = places * chain.case.num_labels + found[b, :, position]
        seen = torch.bincount(places, minlength=len(p)) / n
        assert ((seen - p).abs() <= 4.5 * (p * (1 - p) / n).sqrt() + 1e-12).all()


def test_spans() -> None:
    """Label 1 begins a span, label 2 goes on with it, label 0 is outside."""
    into_b = [[[False, True, False]] * 3]
    begun = [[[False] * 3, [False, False, True], [False, False, True]]]
    over = [[[False] * 3, [True, True, False], [True, True, False]]]
    masks = SpanMasks(into_b, [[False, True, False]], begun, over, [[False, True, True]])
    chain = make(5, batch=2, width=4, mask="full")
    places = {"rows": [0, 1, 1], "starts": [0, 1, 2], "ends": [2, 4, 3], "types": [0] * 3}
    found = functions.span_probability(
        *chain.case.inputs, **places, masks=masks, pair_scores=chain.pairs
    )
    rows = chain.whole.rows()
    for k, p in enumerate(found):
        row, start, end = rows[places["rows"][k]], places["starts"][k], places["ends"][k]
        inside = (row.paths[:, start + 1 : end] == 2).all(1)
        ends = (
            torch.tensor(True) if end == row.length else row.paths[:, min(end, row.length - 1)] != 2
        )
        assert close(p, row.probabilities()[(row.paths[:, start] == 1) & inside & ends].sum())


@MANY
@given(paired())
def test_gradient_is_observed_minus_expected(chain: Paired) -> None:
    ours, oracle = (chain.changed(lambda x: x.clone().requires_grad_()) for _ in range(2))
    weights = torch.randn(
        len(chain.labels), generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    emissions, *others = ours.case.inputs
    value = functions.log_prob(emissions, ours.labels, *others, pair_scores=ours.pairs)
    found = torch.autograd.grad(
        (value * weights).sum(), ours.leaves, allow_unused=True, materialize_grads=True
    )
    rows = enumerate(oracle.whole.rows())
    exact = torch.stack([r.scores()[r.place(chain.labels[b])] - r.log_z() for b, r in rows])
    expected = torch.autograd.grad(
        (exact * weights).sum(), oracle.leaves, allow_unused=True, materialize_grads=True
    )
    for f, e in zip(found, expected, strict=True):
        assert not f.isnan().any()
        assert close(f, e)


def test_gradient_by_hand() -> None:
    """The observed pair less its probability, which enumeration gives; row by row."""
    chain = make(6, batch=2, width=4, mask="full")
    pairs = chain.pairs.clone().requires_grad_()
    emissions, *others = chain.case.inputs
    functions.log_prob(emissions, chain.labels, *others, pair_scores=pairs).sum().backward()  # type: ignore[no-untyped-call]
    for b, row in enumerate(chain.whole.rows()):
        seen = torch.zeros(3, 3, 3, dtype=torch.float64)
        for t in range(3):
            seen[t, chain.labels[b, t], chain.labels[b, t + 1]] = 1
        assert pairs.grad is not None
        assert close(pairs.grad[b], seen - row.pairwise_marginals())


@pytest.mark.parametrize("mask", ["ragged", "holes"])
def test_derivatives_of_first_and_second_order(mask: str) -> None:
    chain = make(7, batch=2, width=3, labels=2, mask=mask)
    chain = chain.changed(lambda x: x.clone().requires_grad_())

    def likelihoods(emissions: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        scores = (*others[:3], chain.case.mask)
        return (
            functions.log_prob(emissions, chain.labels, *scores, pair_scores=others[3]),
            functions.log_partition(emissions, *scores, pair_scores=others[3]),
            functions.marginals(emissions, *scores, pair_scores=others[3]),
        )

    assert torch.autograd.gradcheck(likelihoods, chain.leaves)
    assert torch.autograd.gradgradcheck(
        lambda *x: likelihoods(*x)[0], chain.leaves, raise_exception=True
    )


def test_backward_twice_with_the_same_graph() -> None:
    chain = make(8, mask="holes").changed(lambda x: x.clone().requires_grad_())
    emissions, *others = chain.case.inputs
    value = functions.log_prob(emissions, chain.labels, *others, pair_scores=chain.pairs).sum()
    first = torch.autograd.grad(value, chain.leaves, retain_graph=True)
    second = torch.autograd.grad(value, chain.leaves)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@MANY
@given(paired(), st.sampled_from([1.0, 100.0]))
def test_float32_with_large_scores(chain: Paired, factor: float) -> None:
    """Differences of thousands between neighbours: scaled space would lose them."""
    low = chain.changed(lambda x: (x * factor).float().requires_grad_())
    high = low.changed(lambda x: x.detach().double())
    emissions, *others = low.case.inputs
    value = functions.log_prob(emissions, chain.labels, *others, pair_scores=low.pairs)
    assert value.dtype == torch.float32
    # What a float32 sum of transitions and pair scores may be wrong by.
    finite = [x[x.isfinite()].abs().max().item() for x in high.leaves if x.isfinite().any()]
    tolerance = max(1e-4, 3e-6 * max([*finite, 0.0]) * max(1, emissions.shape[1]))
    rows = enumerate(high.whole.rows())
    exact = torch.stack([r.scores()[r.place(chain.labels[b])] - r.log_z() for b, r in rows])
    assert torch.allclose(value.detach().double(), exact, rtol=1e-4, atol=tolerance)
    found = torch.autograd.grad(value.sum(), low.leaves, allow_unused=True, materialize_grads=True)
    assert all(torch.isfinite(x).all() for x in found)


@pytest.mark.parametrize("scale", [1.0, 30.0, 100.0])
def test_float32_is_within_a_thousandth(scale: float) -> None:
    """Of float64, on 200 words of 9 labels."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return ((torch.rand(shape, generator=generator) * 2 - 1) * scale).requires_grad_()

    labels = torch.randint(9, (4, 200), generator=generator)
    emissions, transitions, pairs = draw(4, 200, 9), draw(9, 9), draw(4, 199, 9, 9)
    found = functions.log_prob(emissions, labels, transitions, pair_scores=pairs)
    assert found.dtype == torch.float32
    exact = functions.log_prob(
        emissions.double(), labels, transitions.double(), pair_scores=pairs.double()
    )
    rounding = exact.abs() * torch.finfo(torch.float32).eps
    assert ((found.double() - exact).abs() <= 1e-3 + rounding).all()


@pytest.mark.parametrize("gradient", [False, True])
def test_pair_scores_that_dive(gradient: bool) -> None:
    """One of two separate paths falls far behind, gets far ahead and falls back."""
    apart = torch.tensor([[0.0, -math.inf], [-math.inf, 0.0]])
    pairs = torch.zeros(1, 12, 2, 2)
    pairs[0, 1:4, 0, 0], pairs[0, 4:10, 0, 0], pairs[0, 10:, 0, 0] = -300.0, 250.0, -300.0
    pairs.requires_grad_(gradient)
    found = functions.log_partition(torch.zeros(1, 13, 2), apart, pair_scores=pairs)
    assert close(found, math.log(2), 1e-5)
    if gradient:
        (by_pair,) = torch.autograd.grad(found.sum(), pairs)
        assert close(by_pair, (torch.eye(2) / 2).expand(1, 12, 2, 2), 1e-5)


@pytest.mark.parametrize("filler", [math.nan, math.inf, -math.inf, 1e30])
@pytest.mark.parametrize("mask", ["ragged", "holes"])
def test_entries_that_lead_to_no_word_do_not_matter(filler: float, mask: str) -> None:
    chain = make(9, batch=6, mask=mask)
    chain.case.mask[2] = False
    chain.case.mask[3] = torch.tensor([True, False, False, False, False])
    used = torch.zeros(chain.pairs.shape[:2], dtype=torch.bool)
    for b, row in enumerate(chain.case.rows()):
        used[b, row.positions[1:] - 1] = True
    assert used.any()
    assert not used.all()
    results = []
    for value in (0.0, filler):
        pairs = torch.where(used[..., None, None], chain.pairs, value).requires_grad_()
        emissions, *others = chain.changed(lambda x: x.clone().requires_grad_()).case.inputs
        labels = chain.labels.masked_fill(~chain.case.mask, -100)
        likelihood = functions.log_prob(emissions, labels, *others, pair_scores=pairs)
        results.append(
            [
                likelihood.detach(),
                *torch.autograd.grad(likelihood.sum(), (pairs, emissions, others[0])),
                functions.viterbi(*chain.case.inputs, pair_scores=pairs).labels,
                functions.marginals(*chain.case.inputs, pair_scores=pairs).detach(),
                functions.pairwise_marginals(*chain.case.inputs, pair_scores=pairs).detach(),
                functions.nbest(*chain.case.inputs, n=3, pair_scores=pairs).log_probabilities,
            ]
        )
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


def test_what_stood_in_padding_of_transitions_by_position_does_not_matter_either() -> None:
    case = make_case(10, batch=4, by_position=True).to(torch.float32)
    padding = ~case.mask[:, 1:, None, None]
    labels = case.random_labels(0)
    results = []
    for value in (0.0, math.nan):
        transitions = case.transitions.masked_fill(padding, value).requires_grad_()
        emissions = case.emissions.clone().requires_grad_()
        others = (transitions, case.start, case.end, case.mask)
        likelihood = functions.log_prob(emissions, labels, *others)
        gradients = torch.autograd.grad(likelihood.sum(), (emissions, transitions))
        results.append([likelihood.detach(), *gradients])
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


def test_the_layer_has_them_in_every_method() -> None:
    chain = make(11, mask="ragged", forbidden=0.3)
    crf = LinearChainCRF(3).double()
    with torch.no_grad():
        crf.transitions.copy_(chain.case.transitions)
        crf.start_transitions.copy_(chain.case.start)
        crf.end_transitions.copy_(chain.case.end)
    emissions, mask, labels, pairs = (
        *(chain.case.emissions, chain.case.mask, chain.labels),
        chain.pairs,
    )
    whole = chain.whole.inputs
    for name in (
        *("log_partition", "marginals", "forward_backward", "pairwise_marginals"),
        *("expected_counts", "posterior_decode", "entropy"),
    ):
        found = getattr(crf, name)(emissions, mask, pair_scores=pairs)
        expected = getattr(functions, name)(*whole)
        found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
        assert all(close(a, b) for a, b in zip(found, expected, strict=True)), name
    for name in ("log_prob", "path_score"):
        found = getattr(crf, name)(emissions, labels, mask, pair_scores=pairs)
        assert close(found, getattr(functions, name)(whole[0], labels, *whole[1:])), name
    assert close(
        crf(emissions, labels, mask, pair_scores=pairs),
        functions.log_prob(whole[0], labels, *whole[1:]).sum(),
    )
    decoded = crf.decode(emissions, mask, pair_scores=pairs)
    assert torch.equal(decoded, functions.viterbi(*whole).labels)
    several = crf.nbest(emissions, mask, 4, pair_scores=pairs)
    assert torch.equal(several.labels, functions.nbest(*whole, n=4).labels)
    draws = [torch.Generator().manual_seed(5) for _ in range(2)]
    assert torch.equal(
        crf.sample(emissions, mask, n=2, generator=draws[0], pair_scores=pairs),
        functions.sample(*whole, n=2, generator=draws[1]),
    )


def test_constraints_hold_for_pair_scores_too() -> None:
    chain = make(12, mask="full")
    crf = LinearChainCRF(3, LEGAL).double()
    pairs = chain.pairs.clone()
    pairs[:, :, 0, 2] += 1000.0
    best = crf.decode(chain.case.emissions, pair_scores=pairs)
    found = crf.marginals(chain.case.emissions, pair_scores=pairs)
    legal = torch.tensor(LEGAL[1])
    banned = torch.zeros(3, 3, dtype=torch.float64).masked_fill(~legal, -math.inf)
    start = torch.tensor([0.0, 0.0, -math.inf], dtype=torch.float64)
    zeros = torch.zeros(3, dtype=torch.float64)
    limited = Case(chain.case.emissions, banned + pairs, start, zeros, chain.case.mask)
    for b, row in enumerate(limited.rows()):
        assert close(row.scores()[row.place(best[b])], row.scores().max())
        assert close(found[b], row.marginals())


def test_allowed_labels_hold_too() -> None:
    chain = make(13, mask="full")
    allowed = torch.rand(chain.case.emissions.shape, generator=torch.Generator().manual_seed(1))
    kept = (allowed < 0.6) | torch.nn.functional.one_hot(chain.labels, 3).bool()
    found = functions.marginals(*chain.case.inputs, allowed=kept, pair_scores=chain.pairs)
    for b, row in enumerate(chain.whole.rows()):
        agrees = row.agreeing(kept[b])
        given = row.probabilities() * agrees / row.probabilities()[agrees].sum()
        one = torch.nn.functional.one_hot(row.paths, 3).double()
        assert close(found[b], torch.tensordot(given, one, 1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype: torch.dtype) -> None:
    chain = make(14, mask="ragged").changed(lambda x: x.to(torch.float32))
    low = chain.pairs.to(dtype).requires_grad_()
    emissions, *others = chain.case.inputs
    value = functions.log_prob(emissions, chain.labels, *others, pair_scores=low)
    expected = functions.log_prob(emissions, chain.labels, *others, pair_scores=low.double())
    assert value.dtype == torch.float32
    assert close(value, expected, 1e-5)
    (gradient,) = torch.autograd.grad(value.sum(), low)
    assert gradient.dtype == dtype


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("gradient", [False, True])
def test_pair_scores_that_are_not_numbers(value: float, gradient: bool) -> None:
    pairs = torch.zeros(3, 3, 2, 2)
    pairs[2, 2, 1, 0] = value
    pairs.requires_grad_(gradient)
    mask = torch.ones(3, 4)
    mask[2, 1] = 0
    crf, emissions = LinearChainCRF(2), torch.zeros(3, 4, 2)
    for call in (crf.log_partition, crf.marginals, crf.decode, crf.nbest, crf.entropy):
        with pytest.raises(RowError, match="row 2, position 3: score of label 0 after label 1 is"):
            call(emissions, mask, pair_scores=pairs)


def test_a_labeling_that_pair_scores_forbid() -> None:
    pairs = torch.zeros(2, 3, 2, 2)
    pairs[1, 1, 0, 1] = -math.inf
    labels = torch.tensor([[0, 0, 1, 0], [0, 0, 1, 0]])
    with pytest.raises(RowError, match="row 1, position 2: label 1 is impossible here"):
        LinearChainCRF(2)(torch.zeros(2, 4, 2), labels, pair_scores=pairs)


@pytest.mark.parametrize("shape", [(2, 4, 3, 3), (2, 3, 3), (3, 3), (1, 3, 3, 3), (2, 3, 3, 2)])
def test_shapes_that_do_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"pair_scores: shape .*, expected \[2, 3, 3, 3\]"):
        LinearChainCRF(3).decode(torch.zeros(2, 4, 3), pair_scores=torch.zeros(shape))


def test_pair_scores_that_are_integers() -> None:
    with pytest.raises(TypeError, match=r"pair_scores are torch\.int64"):
        LinearChainCRF(3).decode(
            torch.zeros(2, 4, 3), pair_scores=torch.zeros(2, 3, 3, 3, dtype=torch.long)
        )


def test_pair_scores_are_not_written_to() -> None:
    chain = make(15, mask="ragged")
    kept = chain.pairs.clone()
    emissions, *others = chain.case.inputs
    for pairs in (chain.pairs, chain.pairs.float()):
        functions.log_prob(emissions, chain.labels, *others, pair_scores=pairs)
        functions.viterbi(emissions, *others, pair_scores=pairs)
        functions.nbest(emissions, *others, n=2, pair_scores=pairs)
        assert torch.equal(pairs, kept.to(pairs.dtype))


def test_pair_scores_laid_out_in_any_way() -> None:
    chain = make(16, mask="full")
    turned = chain.pairs.transpose(2, 3).contiguous().transpose(2, 3)
    one = chain.pairs[:, :1].expand(-1, 4, -1, -1)
    for pairs in (turned, one):
        found = functions.marginals(*chain.case.inputs, pair_scores=pairs)
        expected = functions.marginals(*chain.case.inputs, pair_scores=pairs.contiguous())
        assert close(found, expected)
    crf = LinearChainCRF(3).double()
    crf.transitions.data.copy_(chain.case.transitions)
    value = crf(chain.case.emissions, chain.labels, pair_scores=one.float())
    torch.autograd.backward(value)
    assert crf.transitions.grad is not None


@pytest.mark.parametrize("labels", [4, 70])
def test_many_labels_and_rows_take_several_blocks(labels: int) -> None:
    generator = torch.Generator().manual_seed(3)
    emissions = torch.randn(70, 4, labels, generator=generator)
    pairs = torch.randn(70, 3, labels, labels, generator=generator)
    zeros = torch.zeros(labels, labels)
    found = functions.viterbi(emissions, zeros, pair_scores=pairs)
    value = functions.path_score(emissions, found.labels, zeros, pair_scores=pairs)
    assert close(found.scores, value, 1e-5)
    alone = [
        functions.viterbi(emissions[b : b + 1], zeros, pair_scores=pairs[b : b + 1])
        for b in range(70)
    ]
    assert torch.equal(found.labels, torch.cat([x.labels for x in alone]))


def test_the_scan_of_a_gpu_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = make_case(17, 4, 30, 5, by_position=True, forbidden=0.2)
    zeros = torch.zeros(5, 5, dtype=torch.float64)
    scores = (chain.emissions, zeros, chain.start, chain.end, chain.mask)
    expected = functions.marginals(*scores, pair_scores=chain.transitions)
    monkeypatch.setattr("ncrf.crf.scaled.pays", lambda likely: True)
    assert close(functions.marginals(*scores, pair_scores=chain.transitions), expected)
