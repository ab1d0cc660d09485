from .site import write_site as write_site
