from .make import HELD_OUT as HELD_OUT
from .make import POOL as POOL
from .make import make_nano as make_nano
