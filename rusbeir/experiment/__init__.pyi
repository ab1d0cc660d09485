from .api import bench as bench
from .api import bench_all as bench_all
from .api import bench_run as bench_run
from .api import search as search
from .measuring import UNCUT_DEPTH as UNCUT_DEPTH
from .planning import Request as Request
from .planning import SystemLike as SystemLike
from .planning import resolve_on as resolve_on
