"""The program: maxflip demo | solve | verify | report."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from maxflip import __version__
from maxflip.errors import MaxflipError
from maxflip.watch import Advanced, Event, Finished, Notice, Started, Watch, silent

CAVEAT = "A plan moves predictions, not outcomes."

app = typer.Typer(
    name="maxflip",
    help="Whom to pick and what to change so that as many as possible are predicted in the wanted class. " + CAVEAT,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
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
    out: Annotated[Path, typer.Option(help="The plan folder to write.")] = Path("maxflip-demo"),
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Solve the embedded default: 442 diabetes patients and a small network trained on the spot."""
    with _errors(debug), _progress(quiet) as watch:
        from maxflip.jobs import run_demo

        released = run_demo(out, watch)
    _show(released, quiet)


@app.command()
def solve(
    job: Annotated[Path, typer.Argument(help="The job file (TOML); docs/formats.md says what is in it.")],
    out: Annotated[Path, typer.Option(help="The plan folder to write.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make a plan, audit it, and release it into a folder."""
    with _errors(debug), _progress(quiet) as watch:
        from maxflip.jobs import run_job

        released = run_job(job, out, overwrite=overwrite, watch=watch)
    _show(released, quiet)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="A plan folder.")],
    cohort: Annotated[Path | None, typer.Option(help="The cohort, if it has moved.")] = None,
    model: Annotated[Path | None, typer.Option(help="The model, if it has moved.")] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Audit a plan folder: everything recomputed from the files, by code that shares nothing with the solver."""
    with _errors(debug):
        import maxflip_verify
        import maxflip_wall
        from maxflip.files.models import as_ours

        try:
            audit = maxflip_verify.audit(folder, cohort=cohort, model=model)
        except (maxflip_wall.Refused, maxflip_wall.Unreadable) as error:
            raise as_ours(error) from error
        stale = _stale_report(folder) if audit.passed else ""
    if not quiet or not audit.passed or stale:
        _say(str(audit))
    if stale:
        print(f"error: {stale}", file=sys.stderr)
    if not audit.passed or stale:
        raise typer.Exit(5)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A plan folder.")],
    out: Annotated[Path | None, typer.Option(help="The page to write; report.html in the folder if not given.")] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a plan's report again."""
    with _errors(debug):
        from maxflip.plan import Plan

        target = out or folder / "report.html"
        Plan.load(folder).report(target)
    if not quiet:
        _say(str(target))


def _stale_report(folder: Path) -> str:
    """A finding if report.html is not what this version writes for the plan; other versions may word it otherwise."""
    from maxflip.plan import Plan
    from maxflip.report import render

    page = folder / "report.html"
    plan = Plan.load(folder)
    if not page.is_file() or plan.versions.get("maxflip") != __version__:
        return ""
    same = page.read_bytes() == render(plan).encode()
    return "" if same else f"{page}: does not show this plan. Write it again with `maxflip report`."


def _show(released: Any, quiet: bool) -> None:
    """The answer in the terminal."""
    if quiet:
        return
    plan = released.plan
    already = int((plan.fates == "already").sum())
    there = f" (another {already:,} were there already)" if already else ""
    worth = "" if (plan.worths == 1).all() else f" They are worth {plan.worth:,.6g}."
    table = Table("budget", "cost", "amount", "spent", "share")
    for column in table.columns[2:]:
        column.justify = "right"
    for name, budget in plan.budgets.items():
        spent = plan.spend[name]
        share = f"{spent / budget.amount:.1%}" if 0 < budget.amount < float("inf") else ""
        table.add_row(name, budget.cost, f"{budget.amount:,.6g}", f"{spent:,.6g}", share)
    console = Console(width=None if sys.stdout.isatty() else 100, markup=False)
    with console.capture() as budgets:
        console.print(table)
    _say(
        f"{plan.count:,} of {len(plan.fates):,} are predicted in the wanted class after the change{there}.{worth}\n"
        f"{plan.status.sentence} {CAVEAT}\n"
        f"{budgets.get()}"
        f"Plan:   {released.folder} (passed its audit)\n"
        f"Report: {released.folder / 'report.html'}"
    )


def _say(text: str) -> None:
    """To stdout, at once. Whoever read it may have gone (`| head`): that is no error of ours."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _progress(quiet: bool) -> Iterator[Watch]:
    """A bar on a terminal, plain lines elsewhere, nothing when quiet; all on stderr."""
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
                    bars.console.print(f"note: {text}", markup=False, highlight=False)

        yield watch


def _plain_progress(event: Event) -> None:
    match event:
        case Started(stage, total):
            print(f"{stage} ({total:,}) ..." if total > 1 else f"{stage} ...", file=sys.stderr, flush=True)
        case Notice(text):
            print(f"note: {text}", file=sys.stderr, flush=True)


@contextmanager
def _errors(debug: bool) -> Iterator[None]:
    """Errors as sentences on stderr and the exit code of their kind; a bug of ours leaves its traceback in a file."""
    try:
        yield
    except MaxflipError as error:
        if debug:
            traceback.print_exc()
        for line in str(error).splitlines():
            print(f"error: {line}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from error
    except KeyboardInterrupt:
        print("interrupted; nothing was released.", file=sys.stderr)
        raise typer.Exit(130) from None
    except MemoryError as error:
        print("error: out of memory. Use a smaller batch, or a machine with more.", file=sys.stderr)
        raise typer.Exit(6) from error
    except (typer.Exit, SystemExit):
        raise
    except Exception as error:
        if debug:
            raise
        with tempfile.NamedTemporaryFile("w", prefix="maxflip-bug-", suffix=".txt", delete=False) as file:
            file.write(f"maxflip {__version__}\n{traceback.format_exc()}")
        print(f"error: a bug of maxflip: {type(error).__name__}. Details: {file.name}", file=sys.stderr)
        raise typer.Exit(1) from error


def _on_sigterm(_signal: int, _frame: object) -> None:
    raise SystemExit(143)


def main() -> None:
    """Entry point; SIGTERM ends the run with 143."""
    signal.signal(signal.SIGTERM, _on_sigterm)
    app()
