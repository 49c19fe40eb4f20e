"""Linear-chain conditional random fields, exact and batched; usable without the rest of ncrf."""

from ncrf.crf.constraints import Constraints
from ncrf.crf.drop_in import CRF
from ncrf.crf.errors import NoLabelingError, RowError
from ncrf.crf.expectations import (
    ExpectedCounts,
    entropy,
    expected_counts,
    kl_divergence,
    pairwise_marginals,
)
from ncrf.crf.forward_backward import (
    ForwardBackward,
    forward_backward,
    log_partition,
    log_prob,
    marginals,
    partial_log_prob,
    path_score,
)
from ncrf.crf.hmm import HiddenMarkovCRF, ObservationScores, from_hmm
from ncrf.crf.layer import LinearChainCRF
from ncrf.crf.posterior import Posterior
from ncrf.crf.sampling import posterior_decode, sample
from ncrf.crf.spans import SpanMasks, span_probability
from ncrf.crf.viterbi import NBest, Viterbi, nbest, viterbi

__all__ = [
    "CRF",
    "Constraints",
    "ExpectedCounts",
    "ForwardBackward",
    "HiddenMarkovCRF",
    "LinearChainCRF",
    "NBest",
    "NoLabelingError",
    "ObservationScores",
    "Posterior",
    "RowError",
    "SpanMasks",
    "Viterbi",
    "entropy",
    "expected_counts",
    "forward_backward",
    "from_hmm",
    "kl_divergence",
    "log_partition",
    "log_prob",
    "marginals",
    "nbest",
    "pairwise_marginals",
    "partial_log_prob",
    "path_score",
    "posterior_decode",
    "sample",
    "span_probability",
    "viterbi",
]
