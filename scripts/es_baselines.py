"""The RusBEIR paper's lexical baseline on Elasticsearch, over a list of datasets: `rusbeir bench` with its settings.

docker compose up -d --wait
python scripts/es_baselines.py xquad/ru xquad/ru/sentences
"""

import sys

try:
    from rusbeir.cli.main import main
except ModuleNotFoundError as error:
    sys.exit(
        f"rusbeir: {sys.executable} has no package {error.name}. Run `make install` once in the folder above scripts/, "
        "and then this with .venv/bin/python."
    )

PAPER = ["bench", "--engine", "elasticsearch", "--system", "bm25(profile=rusbeir-paper)"]

if __name__ == "__main__":
    if {"-h", "--help"} & set(sys.argv):
        print(__doc__, "\nIt sets: rusbeir", *PAPER, "\n")
    sys.argv[1:1] = PAPER
    main()
