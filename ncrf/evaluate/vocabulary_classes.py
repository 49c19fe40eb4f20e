"""In- and out-of-vocabulary words and entities, in the four classes of Ma and Hovy.

Ma and Hovy (2016, "End-to-end Sequence Labeling via Bi-directional LSTM-CNNs-CRF", section 4.6),
followed by Yang, Liang and Zhang (2018, "Design Challenges and Misconceptions in Neural Sequence
Labeling"), ask of a word whether the training corpus has it and whether the pretrained vectors do:

| class | training corpus | vectors |
|---|---|---|
| IV, in vocabulary | has it | have it |
| OOTV, out of training vocabulary | has not | have it |
| OOEV, out of embedding vocabulary | has it | have not |
| OOBV, out of both | has not | have not |

An entity is OOBV if at least one of its words is not in the training corpus and at least one, the
same or another, has no vector. It is OOTV if a word is not in the training corpus and all have
vectors, OOEV the other way round, and IV if all its words are in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from ncrf.data.dataset import InternedColumn
from ncrf.data.vectors import most_frequent_forms, spellings
from ncrf.data.vocabulary import NewWordVectors, Vocabulary

IV, OOTV, OOEV, OOBV = "IV", "OOTV", "OOEV", "OOBV"
#: What is known of a word where the vectors are not at hand.
TRAINED, UNTRAINED = f"{IV} or {OOEV}", f"{OOTV} or {OOBV}"
CLASSES = (IV, OOTV, OOEV, OOBV, TRAINED, UNTRAINED)


@dataclass(frozen=True)
class VocabularyClasses:
    """Which words of a file the training corpus has, and which the vectors have (None: unknown).

    Words are spelled as in the file. ``source`` says where both are known from, for the reader of
    a report.
    """

    trained: Collection[str]
    embedded: Collection[str] | None
    source: str = ""

    def of(self, words: Iterable[str]) -> str:
        """The class of a word, or of the words of an entity: one of `CLASSES`."""
        words = list(words)
        trained = all(word in self.trained for word in words)
        if self.embedded is None:
            return TRAINED if trained else UNTRAINED
        embedded = all(word in self.embedded for word in words)
        if trained:
            return IV if embedded else OOEV
        return OOTV if embedded else OOBV


def known_words(
    words: Iterable[str],
    vocabulary: Vocabulary,
    vectors: NewWordVectors | None,
    train: InternedColumn | None = None,
    *,
    ignore_case: bool = False,
) -> VocabularyClasses:
    """Which of ``words`` a model knows, by the rules by which it looks words up.

    A word is in the training corpus if the model's alphabet has it, digits turned to 0 under
    ``number_normalized``; case counts unless ``lowercase`` says otherwise. It has a vector if the
    file has its normalized form, that in lower case, or, where words were normalized, the original
    form or that in lower case.

    The alphabet keeps no original forms: that of a word of the training corpus is, without
    ``train``, the word itself; with the words of a training corpus, the most frequent one there,
    as in training. The words of ``train`` then also go before those of the alphabet.

    With ``ignore_case`` case does not count for the training corpus either. That is how the counts
    in table 8 of Ma and Hovy come about: with CoNLL-2003, GloVe and digits as they stand, these
    rules give all eight of them.
    """
    distinct = list(dict.fromkeys(words))
    keys = list(map(vocabulary.normalization.key, distinct))
    originals: dict[str, str] = {}
    known: Collection[str] = vocabulary.words.strings[len(vocabulary.words.special) :]
    if train is not None:
        known = map(vocabulary.normalization.key, train.strings)  # type: ignore[assignment]
        counts = dict(zip(train.strings, train.counts().tolist(), strict=True))
        originals = most_frequent_forms(Counter(counts), vocabulary.normalization)
    fold = str.lower if ignore_case else str
    known = set(map(fold, known))
    trained = {word for word, key in zip(distinct, keys, strict=True) if fold(key) in known}
    if vectors is None:
        return VocabularyClasses(trained, None)
    forms = [originals.get(key, word) for word, key in zip(distinct, keys, strict=True)]
    _, found = vectors.rows([spellings(*pair) for pair in zip(keys, forms, strict=True)])
    return VocabularyClasses(trained, {distinct[i] for i in np.flatnonzero(found).tolist()})
