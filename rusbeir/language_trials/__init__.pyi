from . import every_language as every_language
from . import proposal as proposal
from . import recipes as recipes
from . import term_changes as term_changes
from .every_language import Trials as Trials
