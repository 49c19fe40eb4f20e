"""What the scripts prepare_*.py share: finding distributed files, writing ours, checking counts."""
