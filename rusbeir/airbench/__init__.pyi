from .air_bench import list_tasks as list_tasks
from .air_bench import pack_results as pack_results
from .air_bench import write_results as write_results
from .leaderboards import rank_systems as rank_systems
from .leaderboards import read_scores as read_scores
