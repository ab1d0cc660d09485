from .workers import MODEL_CPUS as MODEL_CPUS
from .workers import Deployed as Deployed
from .workers import On as On
from .workers import Workers as Workers
from .workers import open_workers as open_workers
