"""Loads any supported model file after its audit; the format is recognised by content."""

from maxflip_wall import pt2, skops
from maxflip_wall.files import reading
from maxflip_wall.unknown import unknown_file

REMEDY = f"{pt2.REMEDY}, a scikit-learn model with skops.io.dump(model, 'model.skops')"
Loaded = pt2.LoadedModule | skops.LoadedEstimator


def load_model(data: bytes, name: str) -> Loaded:
    """Audit a model and load it. Raises Refused, or a subclass of Unreadable; `name` is used in messages."""
    if not data.startswith(b"PK\x03\x04"):
        with reading(name, REMEDY):
            raise unknown_file(data)
    return skops.load_estimator(data, name) if skops.is_skops(data) else pt2.load_module(data, name)
