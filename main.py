"""The launcher: ``python main.py --config FILE [--key value ...]`` is ``ncrf run FILE ...``."""

from ncrf.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
