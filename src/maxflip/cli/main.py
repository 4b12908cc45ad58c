"""The program: maxflip demo | solve | verify | report | data."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from maxflip import __version__
from maxflip._util.events import Advanced, Event, Finished, Notice, Started, Watch, silent
from maxflip._util.messages import CAVEAT, one_line
from maxflip.cli.signals import starting
from maxflip.errors import SHOWN, InputError, MaxflipError, OutputError, Terminated

app = typer.Typer(
    name="maxflip",
    help="Whom to pick and what to change so that as many as possible are predicted in the wanted class. " + CAVEAT,
    epilog="Documentation: docs/ in the repository (concepts, tutorials, formats); `make docs` builds it as a site.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# Paths are `readable=False`: the code that opens them checks permissions, with our messages and exit codes.
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
People = Annotated[
    str | None,
    typer.Option(help="What the report shows of single samples: none, pseudonyms or full; else as the job says."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.callback(invoke_without_command=True)
def program(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        _say(f"maxflip {__version__}")
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(readable=False, help="The plan folder to write.")] = Path("maxflip-demo"),
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Solve an example: 442 diabetes patients and a small network, trained on the spot."""
    with _errors(debug):
        with starting():
            from maxflip.cli.run_job import run_demo

        with _progress(quiet) as watch:
            released = run_demo(out, watch)
        _show(released, quiet)


@app.command()
def solve(
    job: Annotated[
        Path, typer.Argument(readable=False, help="The job file (TOML); docs/formats.md says what is in it.")
    ],
    out: Annotated[Path, typer.Option(readable=False, help="The plan folder to write.")],
    people: People = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make a plan, audit it, and release it into a folder."""
    with _errors(debug):
        with starting():  # errors in the job are reported before torch is loaded
            from maxflip.io.job.read import read_job

            shown, asked = _people(people), read_job(job)
            from maxflip.cli.run_job import run_job

        with _progress(quiet) as watch:
            released = run_job(asked, out, overwrite=overwrite, watch=watch, people=shown)
        _show(released, quiet)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(readable=False, help="A plan folder.")],
    cohort: Annotated[Path | None, typer.Option(readable=False, help="The cohort, if it has moved.")] = None,
    model: Annotated[Path | None, typer.Option(readable=False, help="The model, if it has moved.")] = None,
    static: Annotated[
        Path | None, typer.Option(readable=False, help="The static file of sequences, if it has moved.")
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Audit a plan folder: independent code recomputes flips, limits and budgets from its files."""
    with _errors(debug):
        from maxflip.errors import VerifyError, as_ours

        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder. Give the folder that holds a plan.")
        if missing := _missing_inputs(folder, {"cohort": cohort, "model": model, "static": static}):
            raise InputError(missing)
        with starting():
            import maxflip_verify
            import maxflip_wall
        try:
            audit = maxflip_verify.audit(folder, cohort=cohort, model=model, static=static)
        except (maxflip_wall.Refused, maxflip_wall.Unreadable) as error:
            raise as_ours(error) from error
        beside = (_missing_files(folder) or _stale_report(folder)) if audit.passed else []
        if beside:
            raise VerifyError([*beside, "The plan's own numbers pass, but the folder is not as it was released."])
        if not quiet or not audit.passed:
            _say(str(audit))
        if not audit.passed:
            raise typer.Exit(5)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(readable=False, help="A plan folder.")],
    out: Annotated[
        Path | None, typer.Option(readable=False, help="The page to write; report.html in the folder if not given.")
    ] = None,
    people: People = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is no report.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Rebuild a plan's report."""
    with _errors(debug):
        with starting():
            from maxflip.io.plan_folder import check_page, load_insight, load_people
            from maxflip.plan.plan import Plan

        shown = _people(people)
        if shown is not None and out is None:
            raise InputError("--people: name the file of the new page with --out; the plan keeps its own page.")
        target = out or folder / "report.html"
        plan = Plan.load(folder)
        insight = load_insight(folder, plan)
        if out is not None and not overwrite:
            check_page(out)
        plan.report(target, insight=insight, people=shown or load_people(folder))
        if not quiet:
            _say(one_line(str(target)))


@app.command()
def data(
    name: Annotated[str | None, typer.Argument(help="Which data; without a name, all are listed.")] = None,
    root: Annotated[Path | None, typer.Option(readable=False, help="The folder that holds its files.")] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """List public data and where to get it, or describe a folder that has it."""
    with _errors(debug):
        with starting():
            from maxflip.cli.datasets import describe, overview

        if name is None:
            if root is not None:
                raise InputError("--root: name the data that the folder holds: `maxflip data NAME --root DIR`.")
            text = overview()
        else:
            with _progress(quiet) as watch:
                text = describe(name, root, watch)
        if not quiet:
            _say(text)


def _people(given: str | None) -> Any:
    """The option --people, checked before any work begins."""
    if given is not None:
        from maxflip.report.page import check_people

        try:
            check_people(given)
        except InputError as error:
            raise InputError([f"--{sentence}" for sentence in error.problems]) from None
    return given


def _missing_inputs(folder: Path, given: dict[str, Path | None]) -> list[str]:
    """A sentence for each file that the audit needs and that is not at the path in the plan."""
    try:
        stated = json.loads((folder / "summary.json").read_bytes())["inputs"]
        paths = {key: folder / stated[key]["path"] for key in given if key in stated} if stated else None
    except (OSError, ValueError, TypeError, KeyError):  # the auditor reports what is wrong with it
        return []
    if paths is None and not (folder / "job.toml").exists():
        return [
            f"{folder}: the plan was saved from Python without its files, so it cannot be audited. "
            "Save it with `plan.save(folder, problem=problem, model=FILE)`, where FILE is its exported "
            "model (docs/formats.md says how; for sequences, only networks of maxflip.networks can be exported)."
        ]
    return [
        f"{path}: there is no such file; the plan names it as its {key}. If it has moved, say where with --{key}."
        for key, path in (paths or {}).items()
        if given[key] is None and not path.exists()
    ]


def _missing_files(folder: Path) -> list[str]:
    """Findings about files of the plan that the auditor does not need."""
    remedy = {"report.html": "Write it again with `maxflip report`.", "trace.parquet": "Solve the job again."}
    absent = [name for name in remedy if not (folder / name).is_file()]
    return [f"{folder}: has no {name}, which is part of every plan. {remedy[name]}" for name in absent]


def _stale_report(folder: Path) -> list[str]:
    """A finding if report.html is not what this version writes for the plan. Reports of other versions are not
    compared."""
    from maxflip.io.plan_folder import load_insight, load_people
    from maxflip.plan.plan import Plan
    from maxflip.report.page import page as page_of

    page = folder / "report.html"
    plan = Plan.load(folder)
    if plan.versions.get("maxflip") != __version__:
        return []
    try:
        insight, people = load_insight(folder, plan), load_people(folder)
    except InputError as error:
        return list(error.problems)
    if people == "pseudonyms":
        _tell("note: the report has pseudonyms that were made up for it, so it cannot be compared with the plan.")
        return []
    if page.read_bytes() == page_of(plan, insight, people):
        return []
    return [f"{page}: does not show this plan: it or summary.json was changed after the plan was released."]


def _show(released: Any, quiet: bool) -> None:
    """The answer in the terminal."""
    if quiet:
        return
    from maxflip.report.answer import answer, headline
    from maxflip.report.hold import headline as hold_line

    plan, folder = released.plan, one_line(str(released.folder))
    worth = "" if (plan.worths == 1).all() else f" The worth moved is {plan.worth:,.6g}."
    held = f"Holds: {line}\n" if (line := hold_line(plan)) else ""
    claims = "".join(f"{claim.label}: {claim.sentence}\n" for claim in answer(plan).claims)
    _say(
        f"{headline(plan)}{worth}\n"
        f"{claims}"
        f"{held}"
        f"{CAVEAT}\n"
        f"\n{_budget_lines(plan)}\n\n"
        f"{_quota_lines(plan)}"
        f"Plan:   {folder} (passed its audit)\n"
        f"Report: {folder}{os.sep}report.html"
    )


def _budget_lines(plan: Any) -> str:
    """The budgets as a plain text table, which looks the same in a terminal, a log and an e-mail."""
    from maxflip.report.answer import price_of

    rows = [("budget", "cost", "amount", "spent", "share", "price" if plan.prices else "")]
    for name, budget in plan.budgets.items():
        spent, price = plan.spend[name], price_of(plan, name)
        share = f"{spent / budget.amount:.1%}" if 0 < budget.amount < float("inf") else ""
        unit_price = "" if price is None else f"{price:,.2g}"
        rows.append((one_line(name), budget.cost, f"{budget.amount:,.6g}", f"{spent:,.6g}", share, unit_price))
    return _aligned(rows, texts=2)


def _quota_lines(plan: Any) -> str:
    """The same of the quotas; nothing without any."""
    from maxflip.report.quotas import quotas

    rows = [("quota", "asked", "picked", "share", "costs")]
    rows += [
        (one_line(k.quota.name), r.asked, r.picked, r.share, r.cost)
        for k, r in zip(plan.quotas, quotas(plan), strict=True)
    ]
    return f"{_aligned(rows, texts=2)}\n\n" if plan.quotas else ""


def _aligned(rows: Sequence[tuple[str, ...]], texts: int) -> str:
    """Columns of equal widths, the first `texts` to the left and all others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ways = [f"{'<' if place < texts else '>'}{width}" for place, width in enumerate(widths)]
    return "\n".join("  ".join(f"{cell:{way}}" for cell, way in zip(row, ways, strict=True)).rstrip() for row in rows)


def _say(text: str) -> None:
    """Print to stdout and flush. A closed pipe (`| head`) is not an error; a full disk is."""
    try:
        print(text, flush=True)
    except OSError as error:
        lost = _lost(error)
        if not isinstance(error, BrokenPipeError):
            raise lost from error


def _lost(error: OSError) -> OutputError:
    """The error to raise. Redirects stdout to /dev/null, since Python would flush it again at exit and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OutputError(f"standard output: {error.strerror}. The output is lost.")


def _tell(text: str) -> None:
    """Print to stderr, as one line. If stderr is closed, the exit code still shows the error."""
    with suppress(OSError):
        print(one_line(text), file=sys.stderr, flush=True)


@contextmanager
def _progress(quiet: bool) -> Iterator[Watch]:
    """Progress on stderr: a bar in a terminal, plain lines elsewhere, nothing if quiet."""
    if quiet:
        yield silent
        return
    if not sys.stderr.isatty():
        yield _plain_progress
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def watch(event: Event) -> None:
            match event:
                case Started(stage, total):
                    tasks[stage] = bars.add_task(stage, total=total)
                case Advanced(stage, steps):
                    bars.advance(tasks[stage], steps)
                case Finished(stage):
                    bars.remove_task(tasks.pop(stage))
                case Notice(text):
                    bars.console.print(f"note: {one_line(text)}", markup=False, highlight=False)

        yield watch


def _plain_progress(event: Event) -> None:
    match event:
        case Started(stage, total):
            _tell(f"{stage} ({total:,}) ..." if total > 1 else f"{stage} ...")
        case Notice(text):
            _tell(f"note: {text}")


@contextmanager
def _errors(debug: bool) -> Iterator[None]:
    """Report errors as sentences on stderr, with the exit code of their class; the traceback of a bug is written to a
    file."""
    try:
        yield
    except MaxflipError as error:
        if debug:
            traceback.print_exc()
        for problem in error.problems[:SHOWN]:
            _tell(f"error: {problem}")
        if len(error.problems) > SHOWN:
            _tell(f"error: ... and {len(error.problems) - SHOWN} more.")
        raise typer.Exit(error.exit_code) from error
    except KeyboardInterrupt:
        _tell("interrupted.")
        raise typer.Exit(130) from None
    except MemoryError as error:
        _tell("error: out of memory. Use a smaller batch, or a machine with more.")
        raise typer.Exit(6) from error
    except (typer.Exit, SystemExit):
        raise
    except Exception as error:
        if debug:
            raise
        with tempfile.NamedTemporaryFile("w", prefix="maxflip-bug-", suffix=".txt", delete=False) as file:
            file.write(f"maxflip {__version__}\n{traceback.format_exc()}")
        _tell(f"error: a bug of maxflip: {type(error).__name__}. Details: {file.name}")
        raise typer.Exit(1) from error


def run() -> None:
    """The program; help and usage that cannot be written are an error like any other."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that a terminal has no letters for is no reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except (OSError, OutputError) as error:
        told = error if isinstance(error, OutputError) else _lost(error)
        _tell(f"error: {told}")
        raise SystemExit(told.exit_code) from None
    except Terminated as signal:
        raise SystemExit(signal.exit_code) from None
