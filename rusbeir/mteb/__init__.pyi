from .model import MtebModel as MtebModel
from .model import model as model
from .task_languages import find_task_language as find_task_language
from .task_runs import TaskScore as TaskScore
from .task_runs import find_tasks as find_tasks
from .task_runs import run_tasks as run_tasks
