"""References between calls: parsed, found, checked, evaluated. Pure functions."""

from neuraxis.references.asset_ref import AssetRef

__all__ = ["AssetRef"]
