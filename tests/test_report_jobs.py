"""The report of a job: what it is asked to know beyond the plan, and whom it shows."""

from __future__ import annotations

import json
import shutil
import stat
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import maxflip.cli.run_job
import maxflip.study.outlook
from maxflip import InputError, Insight, Nearest, Plan, Problem, look, solve
from maxflip._util.events import Event, Started, silent
from maxflip.cli.main import app
from maxflip.cli.run_job import run_job
from maxflip.errors import ProblemError, Terminated
from maxflip.io.insight_file import insight_bytes
from maxflip.io.job.read import read_job
from maxflip.study.outlook import SCALES
from tests.conftest import LONG
from tests.examples import net_problem, small_net
from tests.jobs import export, job_text
from tests.sequences.stays import edited, long_table, static_table, write_stays

JOB = job_text(["age", "bmi", "bp"], {"bmi": 20.0, "bp": 10.0})


def asked(table: str) -> str:
    return JOB.replace("[report]\nfrontier = false\n", f"[report]\n{table}\n")


def invoke(*args: str | Path) -> Any:
    return CliRunner().invoke(app, list(map(str, args)))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.pt2"
    export(small_net(3, seed=1), path)
    return path


def write_cohort(path: Path, n: int = 40) -> None:
    values = np.random.default_rng(0).normal(size=(n, 3))
    lines = ["who,age,bmi,bp,sex,town,visits"]
    for j, row in enumerate(values.tolist()):
        labels = f"{'fm'[j % 2]},{'' if j == 7 else 'Ulm'},{j % 3 + 1}"
        lines.append(f"id-{j:03d}," + ",".join(map(repr, row)) + f",{labels}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path: Path, model: Path) -> Path:
    write_cohort(tmp_path / "cohort.csv")
    (tmp_path / "job.toml").write_text(asked("frontier = false"))
    shutil.copy(model, tmp_path / "model.pt2")
    return tmp_path


def solved(folder: Path, table: str, *options: str | Path) -> Any:
    (folder / "job.toml").write_text(asked(table))
    return invoke("solve", folder / "job.toml", "--out", folder / "plan", *options)


# --- what is asked ---


def test_judges_are_asked_about_a_better_plan_that_was_found_on_the_way(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    better: list[Plan] = []

    def found(problem: Problem, plan: Plan, scales: Any, **options: Any) -> tuple[Any, Plan]:
        better.append(solve(problem, Nearest()))
        assert better[0].worth > plan.worth
        ahead = maxflip.study.outlook.outlook_of(problem, better[0], scales, **options)[0]
        return ahead, better[0]

    def poor(problem: Problem, *args: Any, **options: Any) -> Plan:
        return solve(problem, Nearest(prices={"bmi": 1e3, "bp": 1e-3}))

    monkeypatch.setattr(maxflip.cli.run_job, "outlook_of", found)
    monkeypatch.setattr(maxflip.cli.run_job, "solve", poor)
    done = solved(folder, 'frontier = [1.0]\njudges = ["model.pt2"]')
    assert done.exit_code == 0, done.output
    insight = Insight.load(folder / "plan")
    assert insight is not None
    assert insight.judges is not None
    assert [judge.after for judge in insight.judges] == [better[0].count]


def test_a_job_asks_for_frontier_and_groups(folder: Path) -> None:
    done = solved(folder, 'frontier = [0.5, 1.0]\ngroup = "sex"')
    assert done.exit_code == 0, done.stderr
    assert "Asking what other budgets buy" in done.stderr
    insight, plan = Insight.load(folder / "plan"), Plan.load(folder / "plan")
    assert insight is not None
    assert insight.frontier is not None
    assert insight.frontier.scales == (0.5, 1.0)
    assert insight.frontier.counts[1] == plan.count > insight.frontier.counts[0]
    assert insight.groups is not None
    assert insight.groups.column == "sex"
    assert [(g.name, g.size) for g in insight.groups.groups] == [("f", 20), ("m", 20)]
    women = plan.fates[::2]
    assert insight.groups.groups[0].picked == (women == "flipped").sum()
    assert insight.groups.groups[0].already == (women == "already").sum()
    assert insight.plausibility is not None
    assert len(insight.plausibility.after) == plan.count
    assert insight.plausibility.source == "cohort.csv"
    assert not [n for n in plan.notices if "sex" in n and "ignored" in n]
    audit = invoke("verify", folder / "plan")
    assert audit.exit_code == 0, audit.stderr
    assert "insight.json" in audit.stdout.splitlines()[-2]  # among what is not checked


def test_of_large_cohorts_the_frontier_is_asked_for_or_not_made(folder: Path) -> None:
    job = folder / "job.toml"
    scales = {}
    for table in ("", "frontier = true", "frontier = false", "frontier = [2, 3.5]"):
        job.write_text(asked(table))
        scales[table] = [read_job(job).scales(n) for n in (5000, 5001)]
    assert scales == {
        "": [SCALES, None],
        "frontier = true": [SCALES, SCALES],
        "frontier = false": [None, None],
        "frontier = [2, 3.5]": [[2.0, 3.5], [2.0, 3.5]],
    }


@pytest.mark.parametrize(
    ("column", "names"),
    [("town", ["Ulm", "missing"]), ("visits", ["1", "2", "3"]), ("age", None)],
)
def test_groups_are_texts_or_numbers_of_any_column(folder: Path, column: str, names: list[str] | None) -> None:
    assert solved(folder, f'frontier = false\ngroup = "{column}"', "-q").exit_code == 0
    insight = Insight.load(folder / "plan")
    assert insight is not None
    assert insight.groups is not None
    found = [g.name for g in insight.groups.groups]
    assert found == names if names else len(found) == 4
    assert sum(g.size for g in insight.groups.groups) == 40


def test_columns_of_parquet_are_groups_too(folder: Path) -> None:
    import pyarrow.csv as pc

    table = pc.read_csv(folder / "cohort.csv")
    flags = pa.array([None if j == 0 else j % 2 == 0 for j in range(40)])
    dates = pa.array([f"2024-0{j % 2 + 1}-01" for j in range(40)]).cast(pa.date32())
    table = table.append_column("flag", flags).append_column("day", dates)
    table = table.append_column("weight", pa.array([None, *map(float, range(39))]))
    pq.write_table(table.append_column("list", pa.array([[1]] * 40)), folder / "cohort.parquet")
    found = {}
    for column in ("flag", "day", "weight"):
        text = asked(f'frontier = false\ngroup = "{column}"').replace("cohort.csv", "cohort.parquet")
        (folder / "job.toml").write_text(text)
        job = read_job(folder / "job.toml")
        values = job.group(job.read_cohort())
        assert values is not None
        found[column] = values[column][:3].tolist()
    assert found == {
        "flag": [None, "false", "true"],
        "day": ["2024-01-01", "2024-02-01", "2024-01-01"],
        "weight": [None, 0.0, 1.0],
    }
    (folder / "job.toml").write_text(text.replace('"weight"', '"list"'))
    with pytest.raises(InputError, match=r"column 'list' has type list.*wanted texts or numbers"):
        read_job(folder / "job.toml").read_cohort()


def test_a_reference_of_the_users_is_compared_with(folder: Path) -> None:
    write_cohort(folder / "others.csv", 60)
    assert solved(folder, 'frontier = false\nreference = "others.csv"', "-q").exit_code == 0
    insight = Insight.load(folder / "plan")
    assert insight is not None
    assert insight.plausibility is not None
    assert insight.plausibility.source == "others.csv"
    assert invoke("verify", folder / "plan").exit_code == 0


def test_of_sequences_groups_stand_in_the_static_file(tmp_path: Path) -> None:
    """With a proportional allocation, each scale is divided among the groups too."""
    report = 'frontier = [0.5, 1.0]\ngroup = "wish"\n'
    divided = '[solver]\nallocation = "proportional"\ngroups = 2\n'
    n = 24 if LONG else 14
    text = edited(("frontier = false\n", report), ("[solver]\n", divided))
    path = write_stays(tmp_path, text, long_table(n), static_table(n))
    events: list[Event] = []
    plan = run_job(path, tmp_path / "plan", overwrite=False, watch=events.append).plan
    insight = Insight.load(tmp_path / "plan")
    assert insight is not None
    assert insight.groups is not None
    wishes = dict(zip(static_table(n)["stay"], static_table(n)["wish"], strict=True))
    picked = [wishes[str(i)] for i in plan.ids]
    assert [(g.name, g.size, g.picked) for g in insight.groups.groups] == [
        (name, n // 2, picked.count(name)) for name in ("stable", "worse")
    ]
    assert insight.frontier is not None
    assert insight.frontier.counts[1] == plan.count
    job = read_job(path)
    problem = job.problem(job.read_cohort(), job.load_classifier(silent))
    halved = {name: budget.amount / 2 for name, budget in problem.budgets.items()}
    alone = solve(problem.changed(budgets=halved), Nearest(), allocation="proportional", groups=2)
    assert insight.frontier.counts[0] == alone.count
    assert Started("Asking what other budgets buy", 1) in events


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ('static = "static.parquet"\n', ""),
            "report.group: for sequences, a column with one value per id must be in",
        ),
        (('group = "wish"', 'group = "wisch"'), "static.parquet: has no column 'wisch'. Did you mean 'wish'?"),
        (('group = "wish"', 'reference = "stays.csv"'), "report.reference: only jobs with tables have it"),
    ],
)
def test_what_sequences_cannot_have_is_named(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    path = write_stays(tmp_path, edited(("frontier = false\n", 'group = "wish"\n')).replace(*change))
    with pytest.raises(InputError) as raised:
        read_job(path).read_cohort()
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('group = "sax"', "cohort.csv: has no column 'sax'. Did you mean 'sex'?"),
        ('group = "who"', "report.group, cohort.id: 'who' is the id column"),
        ('people = "some"', "report.people = 'some': must be 'none', 'pseudonyms' or 'full'."),
        ("frontier = 3", "report.frontier = 3: must be true, false, or a list"),
        ("frontier = [0.0]", "report.frontier = [0.0]: factors of the budgets must be finite numbers > 0."),
        ('reference = "cohorts.csv"', "report.reference = 'cohorts.csv': no such file"),
        ("fronteir = true", "report.fronteir: there is no such key. Did you mean 'frontier'?"),
    ],
)
def test_what_is_wrong_is_named_before_the_work_begins(folder: Path, table: str, said: str) -> None:
    done = solved(folder, table)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (folder / "plan").exists()


# --- the plan is not lost by what is asked beyond it ---


@pytest.mark.parametrize(
    ("fault", "code"), [(KeyboardInterrupt(), 130), (Terminated(), 143), (ProblemError("budgets: too much."), 0)]
)
def test_what_stops_the_frontier_leaves_the_audited_plan(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException, code: int
) -> None:
    def stopped(*_args: Any, **_options: Any) -> Any:
        raise fault

    monkeypatch.setattr(maxflip.cli.run_job, "outlook_of", stopped)
    (folder / "job.toml").write_text(asked('group = "sex"'))
    if isinstance(fault, Terminated):
        with pytest.raises(Terminated):
            run_job(folder / "job.toml", folder / "plan", overwrite=False, watch=silent)
    else:
        done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
        assert done.exit_code == code
        assert "The plan is audited and released; its report lacks some of what was asked for." in done.stderr
        assert (str(fault) or "interrupted.") in done.stderr
    insight = Insight.load(folder / "plan")
    assert insight is not None
    assert insight.frontier is None
    assert insight.groups is not None
    how = "ended with an error" if code == 0 else "was interrupted"
    assert insight.notices[-1] == f"Some sections that were asked for are missing: computing them {how}."
    assert Plan.load(folder / "plan").count > 0
    assert invoke("verify", folder / "plan").exit_code == 0
    assert sorted(p.name for p in folder.iterdir()) == ["cohort.csv", "job.toml", "model.pt2", "plan"]


def test_a_better_plan_that_the_frontier_shows_is_the_one_released(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first plan spends a quarter of the budgets; the flips of all scales make a better one of the same job."""
    first: list[Plan] = []

    def sparing(problem: Problem, *args: Any, **options: Any) -> Plan:
        quarter = problem.changed(budgets={name: b.amount / 4 for name, b in problem.budgets.items()})
        first.append(replace(solve(quarter, *args, **options), budgets=problem.budgets))
        return first[0]

    monkeypatch.setattr(maxflip.cli.run_job, "solve", sparing)
    done = solved(folder, 'frontier = [0.5, 1.0]\ngroup = "sex"')
    assert done.exit_code == 0, done.stderr
    plan, insight = Plan.load(folder / "plan"), Insight.load(folder / "plan")
    assert insight is not None
    assert insight.frontier is not None
    assert insight.groups is not None
    assert plan.worth > first[0].worth
    assert insight.frontier.worths[1] == plan.worth
    assert sum(group.picked for group in insight.groups.groups) == plan.count
    assert invoke("verify", folder / "plan").exit_code == 0


def test_a_reference_that_the_model_cannot_take_leaves_the_plan(folder: Path) -> None:
    """Its numbers are beyond float32."""
    (folder / "others.csv").write_text("who,age,bmi,bp\n" + "".join(f"x{j},1e39,0,0\n" for j in range(20)))
    done = solved(folder, 'frontier = false\nreference = "others.csv"')
    assert done.exit_code == 0, done.stderr
    assert "1e+39" in done.stderr
    insight = Insight.load(folder / "plan")
    assert insight is not None
    assert insight.plausibility is None
    assert insight.notices


def test_a_signal_in_the_midst_of_the_frontier_is_no_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside the second solve, in the library's own loop."""
    solves = []

    def interrupted(*args: Any, **options: Any) -> Plan:
        solves.append(args)
        if len(solves) == 2:
            raise KeyboardInterrupt
        return solve(*args, **options)

    monkeypatch.setattr("maxflip.study.frontier.solve", interrupted)
    assert solved(folder, "frontier = [0.5, 0.75]").exit_code == 130
    assert len(solves) == 2
    assert invoke("verify", folder / "plan").exit_code == 0


# --- the file ---


@cache
def looked() -> tuple[Problem, Plan, Insight]:
    problem = net_problem()
    plan = solve(problem)
    return problem, plan, look(problem, plan, scales=(0.5, 1.0), group="x0")


def saved(folder: Path) -> tuple[Plan, Insight]:
    _, plan, insight = looked()
    plan.save(folder / "plan", insight=insight)
    return plan, insight


def test_an_insight_comes_back_as_it_was(tmp_path: Path) -> None:
    _, insight = saved(tmp_path)
    again = Insight.load(tmp_path / "plan")
    assert again is not None
    assert (again.frontier, again.groups, again.notices) == (insight.frontier, insight.groups, insight.notices)
    assert insight.plausibility is not None
    assert again.plausibility is not None
    assert np.array_equal(again.plausibility.before, insight.plausibility.before)
    assert np.array_equal(again.plausibility.after, insight.plausibility.after)
    assert dict(again.plausibility.typical) == dict(insight.plausibility.typical)
    assert insight_bytes(again) == (tmp_path / "plan" / "insight.json").read_bytes()


def test_one_of_another_plan_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    problem, plan, insight = looked()
    other = solve(problem.changed(budgets={name: 9 * b.amount for name, b in problem.budgets.items()}))
    said = rf"insight: frontier: at scale 1 it has {plan.count} samples; the plan has {other.count}\. Give what look"
    with pytest.raises(InputError, match=said):
        other.report(tmp_path / "page.html", insight=insight)
    with pytest.raises(InputError, match=said):
        other.save(tmp_path / "plan", insight=insight)
    assert not list(tmp_path.iterdir())


def test_a_plan_without_one_has_none(tmp_path: Path) -> None:
    solve(net_problem(20)).save(tmp_path / "plan")
    assert not (tmp_path / "plan" / "insight.json").exists()
    assert Insight.load(tmp_path / "plan") is None


def forge(folder: Path, data: bytes) -> None:
    """With a hash that fits, as a forger would."""
    from hashlib import sha256

    (folder / "insight.json").write_bytes(data)
    summary = json.loads((folder / "summary.json").read_text())
    summary["insight"] = sha256(data).hexdigest()
    (folder / "summary.json").write_text(json.dumps(summary))


def test_one_that_was_changed_is_refused(tmp_path: Path) -> None:
    saved(tmp_path)
    place = tmp_path / "plan" / "insight.json"
    place.write_bytes(place.read_bytes().replace(b"0.5", b"0.6"))
    refused = invoke("report", tmp_path / "plan", "--out", tmp_path / "page.html")
    assert refused.exit_code == 2
    assert "is not the file that the plan was saved with" in refused.stderr
    place.unlink()
    refused = invoke("report", tmp_path / "plan", "--out", tmp_path / "page.html")
    assert refused.exit_code == 2
    assert "has no insight.json" in refused.stderr
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (["format"], 2, "insight format 2; this version reads format 1"),
        (["frontier", 1, "count"], 7, "frontier: at scale 1 it has 7 samples; the plan has"),
        (["frontier", 0, "count"], -1, "frontier.0.count = -1"),
        (["frontier", 0, "scale"], 4.0, "wanted at least one, ascending"),
        (["frontier"], [], "wanted at least one, ascending"),
        (["frontier"], 3, "frontier = 3"),
        (["plausibility", "after"], [1.0], "plausibility: has 1 sample; the plan has"),
        (["plausibility", "after", 0], "<script>", "is not the insight of a plan: plausibility.after.0"),
        (["plausibility", "typical"], {"0.5": 1.0}, "plausibility.typical: has the quantiles ['0.5']"),
        (["groups", "groups", 0, "picked"], 10**9, "groups: their picked add up to"),
        (["groups", "groups", 0, "more"], 1, "groups.groups.0.more = 1"),
        (["notices"], None, "notices = None"),
    ],
)
def test_one_that_is_forged_gives_a_sentence(tmp_path: Path, keys: list[Any], value: Any, said: str) -> None:
    saved(tmp_path)
    whole = inner = json.loads((tmp_path / "plan" / "insight.json").read_text())
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    forge(tmp_path / "plan", json.dumps(whole).encode())
    refused = invoke("report", tmp_path / "plan", "--out", tmp_path / "page.html")
    assert refused.exit_code == 2, refused.stderr
    assert said in refused.stderr
    assert str(tmp_path / "plan" / "insight.json") in refused.stderr


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[]", b"null", b'{"format": 1', b"[" * 100_000])
def test_one_that_is_no_json_gives_a_sentence(tmp_path: Path, data: bytes) -> None:
    saved(tmp_path)
    forge(tmp_path / "plan", data)
    refused = invoke("report", tmp_path / "plan", "--out", tmp_path / "page.html")
    assert refused.exit_code == 2, refused.stderr
    assert "is not the insight of a plan" in refused.stderr


def test_verify_finds_a_changed_insight(folder: Path) -> None:
    assert solved(folder, 'frontier = false\ngroup = "sex"', "-q").exit_code == 0
    place = folder / "plan" / "insight.json"
    place.write_bytes(place.read_bytes().replace(b'"picked": ', b'"picked": 1'))
    found = invoke("verify", folder / "plan")
    assert found.exit_code == 5
    assert "is not the file that the plan was saved with" in found.stderr


# --- whom the report shows ---


@pytest.mark.parametrize("people", ["pseudonyms", "none"])
def test_no_id_stands_in_a_page_without_names(folder: Path, people: str) -> None:
    text = asked(f'frontier = false\npeople = "{people}"').replace(
        "margin = 0.1\n", 'margin = 0.1\nexclude = ["id-001"]\n'
    )
    (folder / "job.toml").write_text(text)
    assert invoke("solve", folder / "job.toml", "--out", folder / "plan", "-q").exit_code == 0
    page = (folder / "plan" / "report.html").read_text()
    assert "id-0" not in page
    assert json.loads((folder / "plan" / "summary.json").read_text())["people"] == people
    assert invoke("report", folder / "plan", "-q").exit_code == 0  # as it was
    assert "id-0" not in (folder / "plan" / "report.html").read_text()
    assert invoke("report", folder / "plan", "--out", folder / "page.html", "--people", "full").exit_code == 0
    assert "id-0" in (folder / "page.html").read_text()


def test_the_command_line_wins_over_the_job(folder: Path) -> None:
    assert solved(folder, "frontier = false", "--people", "none").exit_code == 0
    assert "id-0" not in (folder / "plan" / "report.html").read_text()
    for people in ("none", "pseudonyms"):
        page = folder / f"{people}.html"
        assert invoke("report", folder / "plan", "--out", page, "--people", people).exit_code == 0
        assert "id-0" not in page.read_text()


def test_a_page_with_pseudonyms_is_not_compared_and_that_is_said(folder: Path) -> None:
    assert solved(folder, 'frontier = false\npeople = "pseudonyms"', "-q").exit_code == 0
    found = invoke("verify", folder / "plan")
    assert found.exit_code == 0
    assert "cannot be compared with the plan" in found.stderr


def test_pseudonyms_are_new_in_every_page(folder: Path) -> None:
    assert solved(folder, "frontier = false", "-q").exit_code == 0
    pages = []
    for name in ("a.html", "b.html"):
        assert invoke("report", folder / "plan", "--out", folder / name, "--people", "pseudonyms").exit_code == 0
        pages.append((folder / name).read_text())
    assert pages[0] != pages[1]


@pytest.mark.parametrize("command", ["solve", "report"])
def test_people_that_are_no_choice_are_refused(folder: Path, command: str) -> None:
    source = folder / "job.toml" if command == "solve" else folder / "plan"
    refused = invoke(command, source, "--out", folder / "out", "--people", "ful")
    assert refused.exit_code == 2
    assert "--people = 'ful': must be one of 'none', 'pseudonyms', 'full'. Did you mean 'full'?" in refused.stderr


def test_the_plans_own_page_stays_as_it_was_asked_for(folder: Path) -> None:
    assert solved(folder, "frontier = false", "-q").exit_code == 0
    refused = invoke("report", folder / "plan", "--people", "none")
    assert refused.exit_code == 2
    assert "--people: name the file of the new page with --out" in refused.stderr


def test_in_python_too(tmp_path: Path) -> None:
    plan, insight = saved(tmp_path)
    with pytest.raises(InputError, match=r"people = 'all': must be one of"):
        plan.report(tmp_path / "page.html", people="all")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"insight: got 3; wanted what look\(problem, plan\) returns"):
        plan.report(tmp_path / "page.html", insight=3)  # type: ignore[arg-type]
    assert not (tmp_path / "page.html").exists()
    plan.report(tmp_path / "page.html", insight=insight, people="none")
    assert (tmp_path / "page.html").exists()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_their_owner_can_read_what_is_written(folder: Path) -> None:
    (folder / "plan").mkdir(mode=0o755)
    (folder / "page.html").write_text("<!DOCTYPE html>\n")
    (folder / "page.html").chmod(0o644)
    assert solved(folder, 'frontier = false\ngroup = "sex"', "-q").exit_code == 0
    assert invoke("report", folder / "plan", "--out", folder / "page.html", "--overwrite").exit_code == 0
    assert mode(folder / "plan") == 0o700
    inside = sorted((folder / "plan").iterdir())
    assert "insight.json" in [path.name for path in inside]
    assert {mode(path) for path in inside} == {0o600}
    assert mode(folder / "page.html") == 0o600
    Plan.load(folder / "plan").to_csv(folder / "changes.csv")
    assert mode(folder / "changes.csv") == 0o600
