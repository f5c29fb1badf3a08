"""References between calls: parse, find, check and evaluate them. Pure functions."""

from neuraxis.references.asset_ref import AssetRef

__all__ = ["AssetRef"]
