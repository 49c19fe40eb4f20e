"""A model that looks at documents, from training to the probabilities that it prints."""

import json
import random

import pytest
import torch

from ncrf import Tagger, load_config
from ncrf.cli import main
from ncrf.data import documents
from ncrf.data.sentence import BOUNDARY
from ncrf.decode import window
from ncrf.errors import ConfigError, InputError
from ncrf.model.folder import read_tensors
from tests.conftest import SAMPLE, small_keys, stopping_at

BORDER = [BOUNDARY]


def made_up(count, seed):
    """Documents that say of a new name in one sentence what it is, and in another nothing."""
    chance = random.Random(seed)
    for _ in range(count):
        name = "".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(3))
        kind = chance.choice(("PER", "LOC"))
        told = "mr {} said so ." if kind == "PER" else "they live in {} ."
        sentences = [
            [(w.format(name.title()), f"S-{kind}" if w == "{}" else "O") for w in told.split()],
            [(name.upper(), f"S-{kind}"), (".", "O")],
        ]
        yield chance.sample(sentences, 2)


def text_of(made):
    lines = []
    for document in made:
        lines += ["-DOCSTART- O", ""]
        for sentence in document:
            lines += [f"{word} {label}" for word, label in sentence] + [""]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Files train, dev and test."""
    folder = tmp_path_factory.mktemp("documents")
    for seed, (name, count) in enumerate({"train": 250, "dev": 40, "test": 40}.items()):
        (folder / name).write_text(text_of(made_up(count, seed)), encoding="utf-8")
    return folder


def keys_of(corpus, model, **keys):
    return small_keys(
        model,
        train_dir=str(corpus / "train"),
        dev_dir=str(corpus / "dev"),
        test_dir=str(corpus / "test"),
        **{"iteration": 8, "optimizer": "Adam", "learning_rate": 0.01, "dropout": 0.2, **keys},
    )


@pytest.fixture(scope="module")
def model(corpus, tmp_path_factory):
    """The folder of a model with a memory."""
    folder = tmp_path_factory.mktemp("model") / "memory"
    Tagger.train(keys_of(corpus, folder, document_memory=True))
    return folder


@pytest.fixture(scope="module")
def tagger(model):
    return Tagger.load(model)


def test_it_tells_what_the_sentence_alone_does_not(corpus, tagger, tmp_path):
    """Without it, of the names that stand alone only every other one can be right."""
    plain = Tagger.train(keys_of(corpus, tmp_path / "plain"))
    assert plain.evaluate(corpus / "test").f1 < 0.9
    assert tagger.evaluate(corpus / "test").f1 > 0.97


def sentences_of(corpus, count=20):
    given = []
    for document in list(made_up(40, 2))[:count]:
        given += [BORDER, *([word for word, _ in sentence] for sentence in document)]
    return given


def by_definition(tagger, sentences):
    """The emissions of each sentence of one document: every word asks the equal ones elsewhere."""
    from ncrf.data.batch import make_batch
    from ncrf.data.columns import Sentence
    from ncrf.data.dataset import intern_corpus

    labeler = tagger.predictor.labeler.eval()
    own = []
    with torch.no_grad():
        for words in sentences:
            corpus = intern_corpus([Sentence(words)], "made up", ())
            dataset = tagger.vocabulary.encode(corpus)
            own.append(labeler(make_batch(dataset, torch.tensor([0]).numpy()))[0])
    places = [(s, w) for s, words in enumerate(sentences) for w in range(len(words))]
    found = [scores.clone() for scores in own]
    for s, w in places:
        word = sentences[s][w]
        others = [
            own[t][v].softmax(0)
            for t, v in places
            if (t, v) != (s, w) and sentences[t][v].lower() == word.lower()
            if sentences[t][v][0].isupper()
        ]
        if others and word[0].isupper():
            mean = torch.stack(others).mean(0)
            found[s][w] += labeler.documents.influence.weight.detach() @ mean
    return found


def test_every_probability_is_that_of_the_chain_over_those_scores(tagger):
    crf = tagger.predictor.labeler.inference.crf
    limits = tagger.predictor.labeler.inference._legal()
    labels = list(tagger.vocabulary.labels.strings)
    given = [BORDER, ["Bo", "met", "Al"], ["BO", "BO", "and", "bo"], ["al", ".", "AL", "."]]
    predictions = tagger.predict(given, nbest=3, marginals=True)[1:]
    for scores, prediction in zip(by_definition(tagger, given[1:]), predictions, strict=True):
        mask = torch.ones(1, len(scores), dtype=torch.bool)
        for labeling in prediction.nbest:
            path = torch.tensor([[labels.index(label) for label in labeling.labels]])
            log = crf.log_prob(scores.unsqueeze(0), path, mask, constraints=limits)
            assert labeling.probability == pytest.approx(log.exp().item(), abs=1e-5)
        marginals = crf.marginals(scores.unsqueeze(0), mask, constraints=limits)[0]
        wanted = [marginals[i, labels.index(x)].item() for i, x in enumerate(prediction.labels)]
        assert prediction.marginals == pytest.approx(wanted, abs=1e-5)


def test_a_document_says_the_same_wherever_it_stands(tagger, monkeypatch):
    given = sentences_of(None)
    whole = tagger.predict(given, marginals=True)
    alone = []
    for start in range(0, len(given), 3):
        alone += tagger.predict(given[start : start + 3], marginals=True)
    monkeypatch.setattr(window, "_WINDOW_TOKENS", 5)
    monkeypatch.setattr(tagger.predictor, "batch_size", 1)
    streamed = list(tagger.stream(iter(given), marginals=True))
    for first, second, third in zip(whole, alone, streamed, strict=True):
        assert first.labels == second.labels == third.labels
        assert first.marginals == pytest.approx(second.marginals, abs=1e-5)
        assert first.marginals == pytest.approx(third.marginals, abs=1e-5)


def test_without_a_border_a_sentence_stands_for_itself(tagger):
    given = [words for words in sentences_of(None) if words != BORDER]
    together = tagger.predict(given, marginals=True)
    for words, prediction in zip(given, together, strict=True):
        (alone,) = tagger.predict([words], marginals=True)
        assert prediction.marginals == pytest.approx(alone.marginals, abs=1e-5)


@pytest.mark.parametrize("longest", [1, 4, 7])
def test_what_is_too_far_from_the_beginning_stands_for_itself(tagger, monkeypatch, longest):
    monkeypatch.setattr(documents, "LONGEST", longest)
    monkeypatch.setattr(window, "LONGEST", longest)
    monkeypatch.setattr(window, "_WINDOW_TOKENS", 3)
    given = [["mr", "Bo", "said", "so", "."], ["BO", "."], ["Bo", "."]]
    near = sum(sum(map(len, given[:i])) < longest for i in range(3))
    found = tagger.predict([BORDER, *given], marginals=True)[1:]
    for scores, prediction in zip(
        by_definition(tagger, given[:near]) + by_definition_alone(tagger, given[near:]),
        found,
        strict=True,
    ):
        inference = tagger.predictor.labeler.inference
        mask = torch.ones(1, len(scores), dtype=torch.bool)
        best = inference.crf.marginals(scores[None], mask, constraints=inference._legal())[0]
        labels = list(tagger.vocabulary.labels.strings)
        wanted = [best[i, labels.index(label)].item() for i, label in enumerate(prediction.labels)]
        assert prediction.marginals == pytest.approx(wanted, abs=1e-5)


def by_definition_alone(tagger, sentences):
    return [scores for words in sentences for scores in by_definition(tagger, [words])]


def test_scoring_decoding_and_the_report_agree(
    corpus, model, tagger, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(window, "_WINDOW_TOKENS", 50)
    monkeypatch.setattr(window, "_DATA_SET_TOKENS", 90)
    score = tagger.evaluate(corpus / "test")
    out = tmp_path / "out"
    line = ["--load_model_dir", str(model), "--raw_dir", str(corpus / "test")]
    assert main(["decode", *line, "--decode_dir", str(out)]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(corpus / "test"), str(out)]) == 0
    assert f"FB1: {100 * score.f1:6.2f}" in capsys.readouterr().out
    report = tagger.analyze(corpus / "test")
    assert report.score.f1 == pytest.approx(score.f1)
    last = json.loads((model / "history.jsonl").read_text().splitlines()[-1])
    kept = [json.loads(x) for x in (model / "history.jsonl").read_text().splitlines()]
    tested = [epoch["test"] for epoch in kept if "test" in epoch]
    assert last["epoch"] == 8 and tested[0]["f1"] == pytest.approx(score.f1)


def test_a_resumed_training_equals_an_unbroken_one(corpus, tmp_path):
    keys = {"iteration": 3, "document_memory": True}
    Tagger.train(keys_of(corpus, tmp_path / "whole", **keys))
    with stopping_at(epoch=2, step=5):
        Tagger.train(keys_of(corpus, tmp_path / "broken", **keys))
    Tagger.train(keys_of(corpus, tmp_path / "broken", resume=True, **keys))
    whole, broken = (
        read_tensors(tmp_path / name / "model.safetensors") for name in ("whole", "broken")
    )
    for name, values in whole.items():
        assert torch.equal(values, broken[name]), name


def test_the_pieces_of_a_batch_do_not_show(corpus, tmp_path):
    keys = {"iteration": 2, "document_memory": True, "dropout": 0.0, "dropout_memory": 0.0}
    keys["unk_singleton"] = 0
    losses = []
    for tokens in (16384, 20):
        folder = tmp_path / str(tokens)
        Tagger.train(keys_of(corpus, folder, max_batch_tokens=tokens, **keys))
        lines = (folder / "history.jsonl").read_text().splitlines()
        losses.append([json.loads(line)["loss"] for line in lines])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_its_dropout_is_that_of_the_key(corpus, tmp_path):
    keys = {"document_memory": True, "dropout_memory": 0.4, "iteration": 1}
    labeler = Tagger.train(keys_of(corpus, tmp_path / "model", **keys)).predictor.labeler
    assert labeler.documents.dropout.probability == 0.4


def test_a_corpus_without_documents_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"dev\.bioes: document_memory=True, but no line says"):
        Tagger.train(small_keys(tmp_path / "model", document_memory=True))
    assert not (tmp_path / "model").exists()


def test_a_file_without_documents_is_pointed_out(tagger, model, tmp_path, caplog):
    raw = SAMPLE / "test.bioes"
    line = ["--load_model_dir", str(model), "--raw_dir", str(raw)]
    assert main(["decode", *line, "--decode_dir", str(tmp_path / "out")]) == 0
    assert f"{raw}: no -DOCSTART- line says where a document begins" in caplog.text


def test_so_is_a_dev_corpus_without_documents(corpus, tmp_path, caplog):
    keys = keys_of(corpus, tmp_path / "model", document_memory=True, iteration=1)
    Tagger.train(keys | {"dev_dir": str(SAMPLE / "test.bioes")})
    assert "test.bioes: no -DOCSTART- line says where a document begins" in caplog.text


def test_templates_alone_have_no_memory():
    keys = {"template_file": "t", "word_seq_feature": "none", "document_memory": True}
    with pytest.raises(ConfigError, match="document_memory=True is for models with a network"):
        load_config(
            {**keys, "use_char": False, "use_word_emb": False, "train_dir": "x"}, check_files=False
        )


def test_training_goes_on_from_a_model_with_one(corpus, model, tmp_path):
    keys = keys_of(corpus, tmp_path / "more", document_memory=True, iteration=1)
    more = Tagger.train(keys | {"init_from": str(model), "learning_rate": 1e-9})
    before = read_tensors(model / "model.safetensors")["documents.influence.weight"]
    after = more.predictor.labeler.documents.influence.weight
    torch.testing.assert_close(after.detach(), before, atol=1e-4, rtol=1e-4)
    with pytest.raises(InputError, match="the layers differ"):
        Tagger.train(keys_of(corpus, tmp_path / "less", init_from=str(model)))
