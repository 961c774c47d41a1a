"""A small set of web sites for browser agents: shop with admin area, forum and issue tracker, in one process.

Everything is in memory: a reset takes well under a millisecond, and what is lost with the process is what a reset would
discard. Tasks have the form of WebArena's configuration; `checks` scores them without a browser.
"""

from train_adapters.webarena.sites.site_set import SiteDown, SiteSet

__all__ = ["SiteDown", "SiteSet"]
