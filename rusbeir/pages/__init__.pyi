from .environment import make_environment as make_environment
from .environment import make_inert as make_inert
from .scales import Scale as Scale
from .scales import make_logarithmic_scale as make_logarithmic_scale
from .scales import make_scale as make_scale
