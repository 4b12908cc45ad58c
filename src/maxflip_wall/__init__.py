"""The wall in front of files that are not trusted: plain files only, and no model that could run code.

It stands alone, so that maxflip and its auditor, which share nothing else, cannot get this differently wrong.
"""

from maxflip_wall.files import Refused, Unreadable, read, reading
from maxflip_wall.pt2 import LoadedModel, audit_pt2, load_bytes, load_pt2

__all__ = ["LoadedModel", "Refused", "Unreadable", "audit_pt2", "load_bytes", "load_pt2", "read", "reading"]
