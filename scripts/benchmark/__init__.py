"""The parts of scripts/bench.py: corpus, the two programs that are run, clock, and report."""
