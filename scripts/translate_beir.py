"""Translate a BEIR dataset into another language: `rusbeir port` under the name that one looks for here.

python scripts/translate_beir.py xquad/en --to ru --translator memory --memory pairs.tsv --out xquad-ru
"""

import sys

from rusbeir.cli.main import main

if __name__ == "__main__":
    sys.argv.insert(1, "port")
    main()
