"""A standard output that cannot be written: one line, status 1, no traceback."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT, SAMPLE

TEST = str(SAMPLE / "test.bioes")
COMMANDS = [["evaluate", TEST, TEST], ["keys"], ["convert", "--to", "BIO", TEST, "-"]]
# Buffered, as for everybody: the error then comes when all is done.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def run(command, stdout):
    return subprocess.run(
        [sys.executable, "-W", "error", "main.py", *command],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk(command):
    with open("/dev/full", "w") as full:
        done = run(command, full)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if "label scheme" not in line]
    assert len(lines) == 1 and lines[0].startswith("ncrf: standard output cannot be written: No ")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_pipe(command):
    reader, writer = os.pipe()
    os.close(reader)
    done = run(command, writer)
    os.close(writer)
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if "label scheme" not in line] == []


def test_no_standard_output_at_all():
    command = f"{sys.executable} main.py {{}} >&-"
    for arguments, status in (("keys", 1), ("evaluate x x", 2)):
        done = subprocess.run(
            ["bash", "-c", command.format(arguments)],
            cwd=ROOT,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status and len(done.stderr.splitlines()) == 1


def test_a_mistake_and_an_interruption_keep_their_status(monkeypatch, capsys):
    import ncrf.cli

    class Full:
        def flush(self):
            raise OSError(28, "No space left on device")

        def fileno(self):
            return spare

    def interrupt(arguments):
        raise KeyboardInterrupt

    spare = os.open(os.devnull, os.O_WRONLY)
    monkeypatch.setattr("sys.stdout", Full())
    assert ncrf.cli.main(["no_such_command"]) == 2
    monkeypatch.setattr("ncrf.cli._dispatch", interrupt)
    assert ncrf.cli.main(["keys"]) == 130
    os.close(spare)
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 4 and "interrupted" in err[2]
