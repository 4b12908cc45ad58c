"""The independent auditor of maxflip: written from docs/formats.md, it imports nothing of maxflip."""

from maxflip_verify.files import Refused, Unreadable
from maxflip_verify.pt2 import LoadedModel, audit_pt2, load_pt2
from maxflip_verify.rules import Check
from maxflip_verify.verdict import Audit, audit

__all__ = ["Audit", "Check", "LoadedModel", "Refused", "Unreadable", "audit", "audit_pt2", "load_pt2"]
