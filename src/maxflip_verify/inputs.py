"""The auditor's own readers: job and cohort become one Case, with all arrays in cohort order."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip_verify.derived import Rule, read_rules
from maxflip_verify.exact import Floats
from maxflip_verify.forms import FORMS, misfits
from maxflip_verify.levers import Formula, Levers, check_menu, read_levers, uses_of
from maxflip_verify.networks import Network
from maxflip_verify.tables import Source, group_of, read_table, with_codes
from maxflip_verify.trees import Trees
from maxflip_wall import Broken, Loaded, Unreadable, reading

Columns = dict[str, NDArray[Any]]
Model = Loaded | Network | Trees
GAPS = {"before", "change", "confidence_before", "confidence_after"}  # columns that may have empty cells
WAYS = {"up": "size|text", "down": "size|text"}
DEEP_KEY = re.compile(rb"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){99}""")


@dataclass(frozen=True)
class Draw:
    """What a budget takes from each sample, (n,) each."""

    inside: NDArray[np.bool_]
    fee: Floats
    uses: dict[int, tuple[Floats, Floats]]  # feature -> weights of changes up and down
    own: Columns  # what differs between samples, as columns of fates.parquet

    @property
    def weighed(self) -> list[int]:
        """The features whose changes it takes something for."""
        return [i for i, ways in self.uses.items() if any((weight > 0).any() for weight in ways)]

    def weights(self, sample: NDArray[np.intp], place: NDArray[np.intp], change: Floats) -> Floats:
        """Of changes of some samples' features, one each"""
        found = np.zeros(len(change))
        for i, (up, down) in self.uses.items():
            found = np.where(place == i, np.where(change > 0, up[sample], down[sample]), found)
        return np.where(self.inside[sample], found, 0.0)


@dataclass(frozen=True)
class Case:
    """The question for every sample. A sequence has a row per step, a table has one row per sample."""

    job: dict[str, Any]
    features: list[str]
    ids: list[str]
    begin: NDArray[np.intp]  # (n + 1,): sample j has the rows begin[j] to begin[j + 1] - 1
    start: Floats  # (N, F), nan where nothing was measured
    time: Floats  # (N,)
    may_change: NDArray[np.bool_]  # (N,)
    static: Floats  # (n, S)
    lower: Floats  # (n, F)
    upper: Floats  # (n, F)
    step: Floats  # (F + L,): by which values change, 0 where by any amount
    smallest: Floats  # (F + L,): the least size of a change, 0 where there is none
    wanted: NDArray[np.bool_]  # (n, k)
    worth: Floats  # (n,)
    draws: dict[str, Draw]  # by budget
    groups: list[NDArray[np.bool_]]  # of each quota: (n,)
    levers: Levers  # behind the features: L columns that start at 0
    rules: list[Rule]  # of derived features

    @property
    def columns(self) -> list[str]:
        """Names of features and levers: what plan.parquet may change"""
        return [*self.features, *self.levers.names]

    @property
    def is_long(self) -> bool:
        return bool(self.job["cohort"].get("kind") == "sequences")

    def whose(self, row: int) -> str:
        """Whose a row of `start` is, and of sequences which step."""
        j = int(np.searchsorted(self.begin, row, side="right")) - 1
        return f"id {self.ids[j]!r}" + (f", step {row - self.begin[j]}" if self.is_long else "")


def read_columns(data: bytes, name: str, form: dict[str, str]) -> Columns:
    """The columns of plan.parquet, implied.parquet or fates.parquet."""
    table = read_table(data, f"{name}.parquet")
    with reading(f"{name}.parquet"):
        wrong = list(misfits({field.name: str(field.type) for field in table.schema}, form, "columns"))
        if wrong or table.column_names != list(form) or any(table[key].null_count for key in form if key not in GAPS):
            raise Unreadable(f"has columns out of order or with gaps, or {wrong}")
        return {key: table[key].to_numpy() for key in form}


def positions(items: list[str] | NDArray[Any], among: list[str] | NDArray[Any]) -> NDArray[np.intp]:
    """Position of each item in `among`; -1 if it is not there."""
    index = {name: i for i, name in enumerate(among)}
    return np.array([index.get(item, -1) for item in items], dtype=np.intp)


def read_job(data: bytes) -> dict[str, Any]:
    with reading("job.toml"):
        if len(data) > 1_000_000 or DEEP_KEY.search(data):
            raise Unreadable("too long, or a key with so many dots that it takes minutes to parse")
        job = tomllib.loads(data.decode())
        if job.get("limits") == "observed":
            coded = {feature for codes in job.get("one_hot", {}).values() for feature in codes} | job.get(
                "choices", {}
            ).keys()
            job["limits"] = {name: {"observed": True} for name in job["cohort"]["features"] if name not in coded}
        if wrong := list(misfits(job, FORMS["job"], "job.toml"))[:100]:
            raise Unreadable(f"not supported by this auditor yet: {'; '.join(wrong)}")
        if any(len(job["goal"].keys() & one) != 1 for one in ({"target", "target_column"}, {"margin", "threshold"})):
            raise Unreadable("goal needs one of target and target_column, and one of margin and threshold")
        if job["goal"].get("most_changes", 1) < 1:
            raise Unreadable(f"goal: most_changes: got {job['goal']['most_changes']}, wanted at least 1")
        asked = job["cohort"]
        of_sequences = asked.keys() & {"time", "static", "static_features", "steps", "steps_column"}
        if asked.get("kind") != "sequences" and of_sequences:
            raise Unreadable(f"cohort: {sorted(of_sequences)}: only sequences have these")
        if asked.get("kind") == "sequences" and ("time" not in asked or {"steps", "steps_column"} <= asked.keys()):
            raise Unreadable("cohort: sequences need time, and not both of steps and steps_column")
        if not re.fullmatch("all|last [1-9][0-9]{0,8}", asked.get("steps", "all")):
            raise Unreadable(f"cohort: steps: got {asked['steps']!r:.80}, wanted 'all' or 'last 3', any number")
        names = asked["features"] + asked.get("static_features", []), job["model"].get("classes", "-")
        if any(not some or len(set(some)) < len(some) for some in names):
            raise Unreadable("features and classes must each be some names, none of them twice")
        check_menu(job)
        held, limits = job.get("must_hold", {}), job.get("limits", {})
        steps = held.get("rounded", {"": 1.0})
        if not 0 < held.get("uptake", 1.0) <= 1 or not steps or any(not 1e-100 <= s <= 1e100 for s in steps.values()):
            raise Unreadable(f"must_hold: got {held}, wanted an uptake in (0, 1] and steps from 1e-100 to 1e100")
        for number, quota in enumerate(job.get("quotas", []), start=1):
            if wrong_quota := list(quota_misfits(quota)):
                raise Unreadable(f"quotas, entry {number}: {'; '.join(wrong_quota)}")
        for name, terms in job["budgets"].items():
            tables = [weight for weight in terms.get("uses", {}).values() if isinstance(weight, dict)]
            odd_ways = [text for table in tables for text in misfits(table, WAYS, f"budgets: {name}: uses")]
            odd_part = "only" in terms and terms["only"].keys() not in ({"column", "value"}, {"ids"})
            if odd_ways or odd_part or (terms.get("cost") == "count" and "uses" in terms):
                raise Unreadable(f"job.toml: budgets: {name}: got {terms!r:.200}: {'; '.join(odd_ways)}")
        if odd := sorted(held.get("rounded", {}).keys() - set(asked["features"])):
            raise Unreadable(f"must_hold: rounded: got {odd}, wanted some of {asked['features']}")
        sizes = [(name, key, own[key]) for name, own in limits.items() for key in ("step", "smallest") if key in own]
        if odd := [size for size in sizes if not 1e-100 <= size[2] <= 1e100]:
            raise Unreadable(f"limits: got {odd}, wanted steps and smallest changes from 1e-100 to 1e100")
        return job


def quota_misfits(quota: dict[str, Any]) -> Iterator[str]:
    """What is wrong with a quota of the job by itself."""
    if sorted(quota.keys() & {"column", "value", "ids"}) not in (["column", "value"], ["ids"]):
        yield "wanted column and value, or ids"
    sides = {side: quota[side] for side in ("at_least", "at_most") if side in quota}
    if not sides:
        yield "wanted at_least or at_most"
    for side, amount in sides.items():
        is_share = type(amount) is float
        if not (0 < amount <= 1 if is_share else amount >= (side == "at_least")):
            yield f"{side}: got {amount!r}, wanted a whole number of people or a share in (0, 1]"


def columns_of(terms: dict[str, Any]) -> list[str]:
    """The columns that a budget names."""
    uses = terms.get("uses", {}).values()
    ways = [way for weight in uses for way in (weight.values() if isinstance(weight, dict) else [weight])]
    part = [terms["only"]["column"]] if "column" in terms.get("only", {}) else []
    return [*(given for given in (*ways, terms.get("fee")) if isinstance(given, str)), *part]


def complete(job: dict[str, Any], loaded: Model) -> dict[str, Any]:
    """The job, completed with what the model file states. The two must not contradict each other."""
    says, features, model = loaded.says, job["cohort"]["features"], loaded.says | job["model"]
    if features != (loaded.features or features):
        raise Broken(f"the model was trained on the columns {loaded.features}; the job names {features}")
    if isinstance(loaded, Network) != (job["cohort"].get("kind") == "sequences"):
        raise Unreadable(
            "job.toml: cohort: kind: sequences need a network in a .safetensors file (one of maxflip.networks), "
            "and a table needs a .pt2, a .skops or a file of trees"
        )
    if isinstance(loaded, Network):
        given, own = job["cohort"].get("static_features", []), loaded.arguments["static"]
        if given != (own if isinstance(own, list) else given) or len(given) != loaded.size("static"):
            raise Broken(f"the network has the static features {own}; the job names {given}")
        if len(features) != loaded.size("inputs"):
            takes = f"{size} feature" if (size := loaded.size("inputs")) == 1 else f"{size} features"
            raise Broken(f"the network takes {takes}; the job names {len(features)}")
    if "output" not in model:
        raise Unreadable("job.toml: model: output must be given, as the model file does not say it")
    if "classes" not in model and not isinstance(loaded, Network):  # without names they are called by their columns
        with reading("the model, on a row of zeros"):
            model |= {"classes": [str(i) for i in range(loaded.outputs(np.zeros((1, len(features)))).shape[1])]}
    given, own = model["classes"], says.get("classes", model["classes"])
    moved = [name for name, its in zip(given, own, strict=False) if name != its and name in own]
    if moved or len(given) != len(own) or model["output"] != says.get("output", model["output"]):
        raise Unreadable(f"job.toml: model: got {job['model']}; the model file says {says}")
    if model["output"] == "decision" and "threshold" in job["goal"]:
        raise Unreadable("job.toml: goal: threshold: decision values are no probabilities; wanted a margin")
    return job | {"model": model}


def blocks(ids: list[str], time: Floats, name: str) -> NDArray[np.intp]:
    """(n + 1,): first row of each id. Rows of an id must be contiguous and in the order of time."""
    first = [0, *(i for i in range(1, len(ids)) if ids[i] != ids[i - 1])] if ids else []
    if len({ids[i] for i in first}) < len(first):
        raise Unreadable(f"{name}: the rows of an id are not contiguous")
    falls = np.setdiff1d(1 + np.flatnonzero(np.diff(time) < 0), first)
    if len(falls) or not np.isfinite(time).all():
        raise Unreadable(
            f"{name}: time is not finite, or goes backwards in the rows {falls[:9].tolist()}, counted from 0"
        )
    return np.array([*first, len(ids)], dtype=np.intp)


def steps_that_change(asked: dict[str, Any], rows: Source, begin: NDArray[np.intp]) -> NDArray[np.bool_]:
    """(N,)"""
    if "steps_column" in asked:
        words = {"true": True, "1": True, "false": False, "0": False}
        with reading(f"{rows.name}: column {asked['steps_column']!r}"):
            return np.array([words[text.lower()] for text in rows.texts(asked["steps_column"])])
    from_end = np.repeat(begin[1:], np.diff(begin)) - np.arange(begin[-1])
    kept = asked.get("steps", "all")
    return np.asarray(from_end <= (begin[-1] if kept == "all" else int(kept.split()[1])))


def read_case(job: dict[str, Any], data: dict[str, bytes], names: dict[str, str]) -> Case:
    """The job, with numbers from the cohort where it names columns."""
    asked, goal, limits, classes = job["cohort"], job["goal"], job.get("limits", {}), job["model"]["classes"]
    features, key, name, is_long = asked["features"], asked["id"], names["cohort"], asked.get("kind") == "sequences"
    named = [limit[side] for limit in limits.values() for side in ("min_column", "max_column") if side in limit]
    named += [goal[column] for column in ("target_column", "worth_column") if column in goal]
    named += [column for terms in job["budgets"].values() for column in columns_of(terms)]
    named += [one["who"]["column"] for one in job.get("actions", {}).values() if "column" in one.get("who", {})]
    named += [quota["column"] for quota in job.get("quotas", []) if "column" in quota]
    of_steps = [asked[column] for column in ("time", "steps_column") if column in asked]
    table = read_table(data["cohort"], name, (key, *features, *named, *of_steps, *job.get("one_hot", {})))
    rows = Source(name, table if is_long else with_codes(table, name, job.get("one_hot", {}), key))
    texts = rows.texts(key)
    start = np.column_stack([rows.numbers(feature, gaps=is_long) for feature in features])
    time = rows.numbers(asked["time"]) if is_long else np.zeros(len(texts))
    begin = blocks(texts, time, name) if is_long else np.arange(len(texts) + 1)
    ids, people, still = [texts[i] for i in begin[:-1]], rows, asked.get("static_features", [])
    if not ids or len(set(ids)) < len(ids) or np.isinf(start).any() or (np.isnan(start).any() and not is_long):
        raise Unreadable(f"{name}: has no rows, an id twice, or a value that is not finite")
    if "static" in asked:
        table = read_table(data["static"], names["static"], (key, *still, *named))
        own = Source(names["static"], table).texts(key)
        if sorted(own) != sorted(ids):
            odd = sorted(set(own) ^ set(ids)) or "some of them twice"
            raise Unreadable(f"{names['static']}: its ids must be those of {name}, each once; got {odd!r:.200}")
        people = Source(names["static"], table, positions(ids, own))
    elif is_long and (named or still):
        raise Unreadable(f"job.toml: cohort: static: {named + still} must be in the static file")
    static = np.column_stack([people.numbers(feature) for feature in still]) if still else np.empty((len(ids), 0))
    worth = people.numbers(goal["worth_column"]) if "worth_column" in goal else np.ones(len(ids))
    if not np.isfinite([*static.T, worth]).all():
        raise Unreadable(f"{people.name}: has a value that is not finite")
    lower, upper = np.full((len(ids), len(features)), -np.inf), np.full((len(ids), len(features)), np.inf)
    for i, limit in enumerate(limits.get(feature, {}) for feature in features):
        measured = start[~np.isnan(start[:, i]), i]
        for side, bounds, extreme in (("min", lower, np.min), ("max", upper, np.max)):
            if limit.get("observed") and len(measured):
                bounds[:, i] = extreme(measured)
            elif f"{side}_column" in limit:
                bounds[:, i] = people.limits(limit[f"{side}_column"], float(bounds[0, i]))
            elif side in limit:
                bounds[:, i] = limit[side]
    number: dict[Any, int] = {label: i for i in range(len(classes)) for label in (i, str(i))}
    number |= {label: i for i, label in enumerate(classes)}  # a name wins over a number
    wanted = np.zeros((len(ids), len(classes)), dtype=bool)
    targets = goal["target"] if "target" in goal else people.texts(goal["target_column"])
    with reading("job.toml: goal: target"):
        chosen = [number[target] for target in ([targets] if isinstance(targets, str | int) else targets)]
        wanted[slice(None) if "target" in goal else np.arange(len(ids)), chosen] = True
        if not wanted.any() or wanted.all():
            raise Unreadable("at least one class must be wanted, and one must not")
    levers = read_levers(job, start, people, ids)
    columns = [*features, *levers.names]
    draws = {budget: read_draw(job, r, columns, start, people, ids) for r, budget in enumerate(job["budgets"])}
    may_change = steps_that_change(asked, rows, begin)
    groups = [group_of(quota, people, ids, f"quotas, entry {k}") for k, quota in enumerate(job.get("quotas", []), 1)]
    rules = read_rules(job)
    step, smallest = (
        np.array([float(limits.get(column, {}).get(key, 0)) for column in columns]) for key in ("step", "smallest")
    )
    kept = lower, upper, step, smallest
    return Case(
        job, features, ids, begin, start, time, may_change, static, *kept, wanted, worth, draws, groups, levers, rules
    )


def read_draw(
    job: dict[str, Any], number: int, columns: list[str], start: Floats, people: Source, ids: list[str]
) -> Draw:
    """The budget with this number.   columns: features and levers"""
    (name, terms), own = list(job["budgets"].items())[number], {}
    uses = uses_of(job, name)
    if uses.keys() - set(columns):
        raise Unreadable(f"job.toml: budgets: {name}: got {sorted(uses)}, wanted some of {columns}")

    def numbers(given: Any, column: str) -> Floats:
        if not isinstance(given, str | Formula):
            return np.broadcast_to(np.float64(given), (len(ids),))
        found = given.on(job["cohort"]["features"], start) if isinstance(given, Formula) else people.numbers(given)
        own[f"budget {number}: {column}"] = found
        if not (np.isfinite(found) & (found >= 0)).all():
            raise Unreadable(f"{people.name}: {given!r}: has a value that is not finite, or below 0")
        return found

    ways = {
        columns.index(feature): tuple(numbers(weight[way], f"{way} {feature}") for way in ("up", "down"))
        if isinstance(weight, dict)
        else (numbers(weight, f"of {feature}"),) * 2
        for feature, weight in uses.items()
    }
    fee = numbers(terms.get("fee", 1.0 if terms.get("cost") == "count" else 0.0), "fee")
    inside = np.ones(len(ids), dtype=bool)
    if "only" in terms:
        inside = group_of(terms["only"], people, ids, f"budgets: {name}: only")
        own[f"budget {number}: only"] = inside.astype(float)
        if not inside.any():
            raise Unreadable(f"job.toml: budgets: {name}: only: is nobody")
    return Draw(inside, fee, {i: (up, down) for i, (up, down) in ways.items()}, own)
