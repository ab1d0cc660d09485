"""Translate a BEIR dataset into another language: `rusbeir port` under the name that one looks for here.

python scripts/translate_beir.py xquad/en --to ru --translator memory --memory pairs.tsv --out xquad-ru
"""

import sys

try:
    from rusbeir.cli.main import main
except ModuleNotFoundError as error:
    sys.exit(
        f"rusbeir: {sys.executable} has no package {error.name}. Run `make install` once in the folder above scripts/, "
        "and then this with .venv/bin/python."
    )

if __name__ == "__main__":
    sys.argv.insert(1, "port")
    main()
