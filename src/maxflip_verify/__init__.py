"""The independent auditor of maxflip: written from docs/formats.md, without any import of maxflip."""

from maxflip_verify.rules import Check
from maxflip_verify.verdict import Audit, audit

__all__ = ["Audit", "Check", "audit"]
