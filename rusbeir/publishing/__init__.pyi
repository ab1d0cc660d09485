from .folder import publish as publish
