from .evaluators import publish_for as publish_for
from .folder import publish as publish
