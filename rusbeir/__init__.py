"""Port English retrieval benchmarks to other languages, and measure retrievers on them.

>>> import rusbeir
>>> rusbeir.Analyzer("ru").analyze("мамы мыли раму")
['мам', 'мыт', 'рам']
"""

import lazy_loader

__version__ = "0.1.0"
# Public names are imported when they are first asked for, so that `import rusbeir` stays instant.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
