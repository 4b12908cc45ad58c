"""Fitted transformers of scikit-learn, one function each: (part, raw columns, seen) -> (layer, raw columns after)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn

from maxflip._util.types import Floats
from maxflip.models.sklearn.layers import Clipped, Columns, Dense, OneHot, SideBySide, Standardised, Stretched
from maxflip.models.sklearn.parts import Part, Raw, Seen

Step = tuple[nn.Module, Raw]


def convert_step(part: Part, raw: Raw, seen: Seen) -> Step:
    if part.estimator is None or isinstance(part.estimator, str):  # "passthrough"
        return nn.Identity(), raw
    if part.kind not in _STEPS:
        raise part.refused(
            f"cannot be converted. Transformers that can: {', '.join(_STEPS)}. Use these, or apply this one to the "
            "table beforehand and train on its columns."
        )
    return _STEPS[part.kind](part, raw, seen)


def pipeline_steps(part: Part) -> list[Part]:
    return [part.inside(f"step {name!r}", step) for name, step in part.estimator.steps]


def chain(parts: list[Part], raw: Raw, seen: Seen) -> Step:
    layers = []
    for part in parts:
        layer, raw = convert_step(part, raw, seen)
        layers.append(layer)
    return nn.Sequential(*layers), raw


def _computed(width: int) -> Raw:
    return (None,) * width


def _standard(part: Part, raw: Raw, seen: Seen) -> Step:
    """(x - mean_) / scale_"""
    scaler = part.estimator
    part.fitted("n_samples_seen_")
    return _centred(scaler.mean_ if scaler.with_mean else None, scaler.scale_ if scaler.with_std else None, raw, seen)


def _robust(part: Part, raw: Raw, seen: Seen) -> Step:
    """(x - center_) / scale_"""
    scaler = part.estimator
    part.fitted("scale_")
    centre = scaler.center_ if scaler.with_centering else None
    return _centred(centre, scaler.scale_ if scaler.with_scaling else None, raw, seen)


def _centred(centre: Any, scale: Any, raw: Raw, seen: Seen) -> Step:
    is_whole = centre is not None and scale is not None
    centre = np.zeros(len(raw)) if centre is None else centre
    scale = np.ones(len(raw)) if scale is None else scale
    if is_whole:
        seen.note_scaler(raw, centre, scale, is_range=False)
    else:
        seen.note(raw, centre, scale)
    return Standardised(centre, scale), _computed(len(raw))


def _min_max(part: Part, raw: Raw, seen: Seen) -> Step:
    """x scale_ + min_, clipped to feature_range where clip=True"""
    scale, shift = part.fitted("scale_"), part.estimator.min_
    middle, quarter = (part.estimator.data_max_ + part.estimator.data_min_) / 2, part.estimator.data_range_ / 4
    seen.note_scaler(raw, middle, quarter, is_range=True)
    layer: nn.Module = Stretched(scale, shift)
    if part.estimator.clip:
        layer = nn.Sequential(layer, Clipped(*part.estimator.feature_range))
    return layer, _computed(len(raw))


def _max_abs(part: Part, raw: Raw, seen: Seen) -> Step:
    """x / scale_, clipped to [-1, 1] where clip=True"""
    scale = part.fitted("scale_")
    seen.note_scaler(raw, np.zeros(len(raw)), scale / 2, is_range=True)
    layer: nn.Module = Standardised(np.zeros(len(raw)), scale)
    if getattr(part.estimator, "clip", False):
        layer = nn.Sequential(layer, Clipped(-1.0, 1.0))
    return layer, _computed(len(raw))


def _pca(part: Part, raw: Raw, seen: Seen) -> Step:
    """components_ (x - mean_), over sqrt(explained_variance_) where whiten=True   components_ (c, w)"""
    components, pca = np.asarray(part.fitted("components_"), np.float64), part.estimator
    seen.note(raw, pca.mean_, np.sqrt((components**2).T @ pca.explained_variance_))
    layer: nn.Module = Dense(components, -(components @ pca.mean_))
    if pca.whiten:
        spread = np.sqrt(pca.explained_variance_)
        smallest = np.finfo(spread.dtype).eps
        layer = nn.Sequential(layer, Standardised(np.zeros(len(components)), np.maximum(spread, smallest)))
    return layer, _computed(len(components))


def _imputer(part: Part, raw: Raw, seen: Seen) -> Step:
    """All cells of a cohort are finite, so nothing is imputed; columns that were empty in training are dropped."""
    statistics, imputer = part.fitted("statistics_"), part.estimator
    if imputer.add_indicator:
        raise part.refused("adds missing-value indicators, which do not change by amounts. Set add_indicator=False.")
    if str(imputer.missing_values) not in ("nan", "None", "<NA>"):
        raise part.refused(
            f"takes {imputer.missing_values!r} for a missing value, a number like others here. Mark missing cells as "
            "NaN and refit."
        )
    filled = np.array([float(s) if isinstance(s, (int, float)) else 0.0 for s in statistics.tolist()])
    seen.note(raw, filled)
    kept = np.full(len(raw), True) if imputer.keep_empty_features else ~np.isnan(filled)
    return _pick(np.flatnonzero(kept).tolist(), raw)


def _pick(picked: list[int], raw: Raw) -> Step:
    if picked == list(range(len(raw))):
        return nn.Identity(), raw
    return Columns(picked, len(raw)), tuple(raw[i] for i in picked)


def _function(part: Part, raw: Raw, seen: Seen) -> Step:  # noqa: ARG001
    """ColumnTransformer writes "passthrough" as a FunctionTransformer without a function."""
    if part.estimator.func is not None:
        raise part.refused(
            "runs a Python function, which cannot be converted. Apply it to the table beforehand, or give the whole "
            "model as a torch module (TorchClassifier)."
        )
    return nn.Identity(), raw


def _by_column(part: Part, raw: Raw, seen: Seen) -> Step:
    """Each transformer on its columns, the results side by side, times transformer_weights."""
    weights = part.estimator.transformer_weights or {}
    branches: list[nn.Module] = []
    after: list[int | None] = []
    inputs = {name: list(indices) for name, indices in part.fitted("_transformer_to_input_indices").items()}
    for name, transformer, _ in part.fitted("transformers_"):
        if (isinstance(transformer, str) and transformer == "drop") or not inputs[name]:
            continue
        picked, here = _pick(inputs[name], raw)
        layer, here = convert_step(part.inside(f"transformer {name!r}", transformer), here, seen)
        if name in weights:
            layer, here = nn.Sequential(layer, Stretched(weights[name], 0.0)), _computed(len(here))
        branches.append(nn.Sequential(picked, layer))
        after += here
    return SideBySide(branches), tuple(after)


def _one_hot(part: Part, raw: Raw, seen: Seen) -> Step:
    """Indicators of each column's category, computed by the encoder itself, so drop= and rare categories are right."""
    tables = _indicator_tables(part)
    branches = []
    for i, (column, (categories, table, unknown)) in enumerate(zip(raw, tables, strict=True)):
        if column is None:
            raise part.refused("works on columns that an earlier step has computed. Let it read raw columns.")
        seen.categories[column] = categories
        branches.append(nn.Sequential(Columns([i], len(raw)), OneHot(categories, table, unknown)))
    return SideBySide(branches), _computed(sum(table.shape[1] for _, table, _ in tables))


def _indicator_tables(part: Part) -> list[tuple[Floats, Floats, Floats | None]]:
    """Per column: categories (c,), their indicators (c, o), those (o,) of a value never seen, if it may occur."""
    encoder = part.estimator
    categories = [_numbers(part, column) for column in part.fitted("categories_")]
    edges = np.cumsum([0, *encoder._n_features_outs])
    tables: list[tuple[Floats, Floats, Floats | None]] = []
    for i, known in enumerate(categories):
        rows = np.tile([c[0] for c in categories], (len(known) + 1, 1))
        rows[:, i] = [*known, known.max() + 1.0]
        columns = slice(edges[i], edges[i + 1])
        if encoder.handle_unknown == "error":
            tables.append((known, _indicators(encoder, rows[:-1])[:, columns], None))
        else:
            table = _indicators(encoder, rows)[:, columns]
            tables.append((known, table[:-1], table[-1]))
    return tables


def _indicators(encoder: Any, rows: Floats) -> Floats:
    with warnings.catch_warnings(action="ignore"):  # of missing column names and unknown categories
        out = encoder.transform(rows)
    return np.asarray(out.toarray() if hasattr(out, "toarray") else out, np.float64)


def _numbers(part: Part, categories: Any) -> Floats:
    """Categories as numbers, as coded in a cohort; NaN is left out, because cohorts have none."""
    if categories.dtype.kind not in "biuf":
        raise part.refused(
            f"has categories of type {categories.dtype}, such as {categories.tolist()[0]!r}, and a cohort is a table "
            "of numbers. Code the column as numbers and refit."
        )
    numbers = categories.astype(np.float64)
    finite: Floats = numbers[np.isfinite(numbers)]
    if not len(finite):
        raise part.refused("has a column without any category.")
    return finite


_STEPS: dict[str, Callable[[Part, Raw, Seen], Step]] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
    "PCA": _pca,
    "SimpleImputer": _imputer,
    "ColumnTransformer": _by_column,
    "OneHotEncoder": _one_hot,
    "FunctionTransformer": _function,
    "Pipeline": lambda part, raw, seen: chain(pipeline_steps(part), raw, seen),
}
