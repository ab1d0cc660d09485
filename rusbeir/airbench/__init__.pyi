from .leaderboards import rank_systems as rank_systems
from .leaderboards import read_scores as read_scores
from .result_files import Written as Written
from .result_files import list_tasks as list_tasks
from .result_files import pack_results as pack_results
from .result_files import write_results as write_results
