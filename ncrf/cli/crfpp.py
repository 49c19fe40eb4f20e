"""``ncrf learn`` and ``ncrf test``: CRF++'s crf_learn and crf_test on the same files."""

from __future__ import annotations

import argparse
from typing import Any

from ncrf.cli.run import wait_asleep

_LEARN = """\
The files are those of crf_learn: any number of columns, the label last, a blank line after each
sentence. MODEL is a folder and is replaced. As in CRF++ every attribute has a weight with every
label, and labels are taken as they stand. -e stops when the objective fell by less than this
fraction of itself in ten iterations. Needed and no more: ncrf train has all other keys."""


def learn(arguments: list[str]) -> int:
    """Train a classical CRF on a file of CRF++, with its template file."""
    parser = argparse.ArgumentParser(prog="ncrf learn", description=learn.__doc__, epilog=_LEARN)
    parser.add_argument("template", metavar="TEMPLATE")
    parser.add_argument("train", metavar="TRAIN")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument(
        "-f", "--freq", type=int, default=1, help="leave out attributes seen less often (1)"
    )
    parser.add_argument("-m", "--maxiter", type=int, default=10000, help="iterations (10000)")
    parser.add_argument("-c", "--cost", type=float, default=1.0, help="the larger, the closer (1)")
    parser.add_argument("-e", "--eta", type=float, default=1e-4, help="when to stop (0.0001)")
    parser.add_argument(
        "-a",
        "--algorithm",
        choices=("CRF", "CRF-L2", "CRF-L1", "MIRA"),
        default="CRF-L2",
        help="L2 or L1 penalty; MIRA is optimizer=PA (CRF-L2)",
    )
    parser.add_argument("-p", "--thread", type=int, help="processor threads (all there are)")
    options = parser.parse_args(arguments)
    if not options.cost > 0:
        parser.error(f"-c {options.cost:g}: expected above 0")
    from ncrf.config import load_config
    from ncrf.data.crfpp_files import crfpp_columns

    keys = {
        "status": "train",
        "template_file": options.template,
        "train_dir": options.train,
        "model_dir": options.model,
        "overwrite": True,
        "columns": ",".join(crfpp_columns(options.train)),
        "input_scheme": "plain",
        "word_seq_feature": "none",
        "all_possible_states": True,
        "all_possible_transitions": True,
        "feature_cutoff": options.freq,
        "iteration": options.maxiter,
        "tolerance": options.eta,
        "threads": options.thread,
        **_penalty(options.algorithm, options.cost),
    }
    config = load_config(keys)
    wait_asleep()
    from ncrf.train.training import train_model

    train_model(config)
    return 0


def _penalty(algorithm: str, cost: float) -> dict[str, Any]:
    """The keys for crf_learn's ``-a`` and ``-c``."""
    if algorithm == "MIRA":
        return {"optimizer": "PA", "aggressiveness": cost}
    if algorithm == "CRF-L1":
        return {"optimizer": "LBFGS", "c2": 0.0, "l1": 1 / cost}
    return {"optimizer": "LBFGS", "c2": 1 / (2 * cost)}


_TEST = """\
All cells of the input, then the label, with tabs between them. Labels in the input may be missing.
-v 1 writes "# P" before a sentence and label/P at each word, -v 2 also P of every label. -n writes
the N best labelings, each under "# rank P"."""


def test(arguments: list[str]) -> int:
    """Label files as CRF++'s crf_test does."""
    parser = argparse.ArgumentParser(prog="ncrf test", description=test.__doc__, epilog=_TEST)
    parser.add_argument("-m", "--model", required=True, metavar="MODEL", help="a model folder")
    parser.add_argument("-n", "--nbest", type=int, default=0, metavar="N", help="best labelings")
    parser.add_argument("-v", "--verbose", type=int, default=0, choices=(0, 1, 2))
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="instead of stdout")
    parser.add_argument("files", nargs="+", metavar="FILE", help="- is standard input")
    options = parser.parse_args(arguments)
    if options.nbest < 0:
        parser.error(f"-n {options.nbest}: expected 0 or more")
    wait_asleep()
    from ncrf.config import load_config, model_folder
    from ncrf.decode.crfpp import crfpp_text
    from ncrf.decode.load import load_predictor
    from ncrf.decode.writers import check_output, open_output

    folder = model_folder(options.model)
    for path in options.files:
        check_output(path, options.output, folder)
    decode = load_config({"status": "decode"}, check_files=False)
    predictor = load_predictor(folder, decode)
    with open_output(options.output) as file:
        for path in options.files:
            file.writelines(crfpp_text(predictor, path, options.nbest or None, options.verbose))
    return 0
