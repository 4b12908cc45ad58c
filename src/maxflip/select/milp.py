"""Linear and 0/1 programs, by HiGHS: through highspy, or through scipy if highspy is not installed.

    max  worth . x    s.t.  row_lower <= matrix x <= row_upper,   lower <= x <= upper     (x whole, if asked)

One thread, a fixed seed, and limits on nodes instead of time: the same program always has the same solution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from maxflip._util.types import Floats
from maxflip.select.settings import PROGRAMS


@dataclass(frozen=True, eq=False)
class Program:
    worth: Floats  # (c,)
    matrix: sp.csc_matrix  # (rows, c)
    row_lower: Floats
    row_upper: Floats
    lower: Floats  # (c,)
    upper: Floats  # (c,)

    def with_rows(self, rows: list[tuple[Floats, float]]) -> Program:
        """The program with the rows row . x <= most added, for each (row, most)."""
        return replace(
            self,
            matrix=sp.csc_matrix(sp.vstack([self.matrix, *(sp.csr_matrix(row) for row, _ in rows)])),
            row_lower=np.concatenate([self.row_lower, np.full(len(rows), -np.inf)]),
            row_upper=np.concatenate([self.row_upper, [most for _, most in rows]]),
        )


@dataclass(frozen=True, eq=False)
class ProgramResult:
    """x (c,)   value: of x   bound: upper bound on the value of any x   duals (rows,): empty for whole x"""

    x: Floats
    value: float
    bound: float
    duals: Floats


def relax(program: Program) -> ProgramResult | None:
    """The linear relaxation; None if infeasible."""
    return _highspy(program, whole=False, gap=0.0, nodes=0) if _has_highspy() else _scipy_relax(program)


def solve_whole(
    program: Program, *, gap: float, bound: float, nodes: int, start: Floats | None = None
) -> ProgramResult | None:
    """x in whole numbers. Stops when bound - value <= gap, or after so many nodes. None if no x was found.

    bound: a known upper bound, which turns the gap into scipy's relative gap   start (c,): an x to begin from
    """
    if _has_highspy():
        return _highspy(program, whole=True, gap=gap, nodes=nodes, start=start)
    return _scipy_whole(program, gap / max(gap, bound), nodes)


def _has_highspy() -> bool:
    try:
        import highspy  # noqa: F401
    except ImportError:
        return False
    return True


def _highspy(
    program: Program, *, whole: bool, gap: float, nodes: int, start: Floats | None = None
) -> ProgramResult | None:
    import highspy

    matrix = sp.csc_matrix(program.matrix)
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.worth, program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    if whole:
        lp.integrality_ = [highspy.HighsVarType.kInteger] * len(program.worth)
    solver = highspy.Highs()
    options = {"output_flag": False, "threads": 1, "random_seed": 0, "parallel": "off"}
    options |= {"primal_feasibility_tolerance": PROGRAMS.tolerance, "mip_feasibility_tolerance": PROGRAMS.tolerance}
    options |= {"small_matrix_value": PROGRAMS.smallest_coefficient}
    if whole:
        options |= {"mip_abs_gap": gap, "mip_rel_gap": 0.0, "mip_max_nodes": nodes}
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    if start is not None:
        known = highspy.HighsSolution()
        known.col_value = start.tolist()
        solver.setSolution(known)
    solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return None
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    solution = solver.getSolution()
    x, value = np.array(solution.col_value), float(info.objective_function_value)
    if whole:
        return ProgramResult(x, value, float(info.mip_dual_bound), np.empty(0))
    return ProgramResult(x, value, value, np.array(solution.row_dual))


def _scipy_relax(program: Program) -> ProgramResult | None:
    from scipy.optimize import linprog

    finite_low = np.isfinite(program.row_lower)
    rows = sp.vstack([program.matrix, -program.matrix[finite_low]])
    right = np.concatenate([program.row_upper, -program.row_lower[finite_low]])
    bounds = np.stack([program.lower, program.upper], axis=1)
    result = linprog(-program.worth, A_ub=rows, b_ub=right, bounds=bounds, method="highs")
    if result.x is None:
        return None
    duals = -result.ineqlin.marginals
    upper, lower = duals[: len(program.row_upper)], duals[len(program.row_upper) :]
    upper[finite_low] -= lower
    return ProgramResult(result.x, -result.fun, -result.fun, upper)


def _scipy_whole(program: Program, relative_gap: float, nodes: int) -> ProgramResult | None:
    """With a relative gap: scipy's milp has no absolute one."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    result = milp(
        -program.worth,
        integrality=np.ones(len(program.worth)),
        bounds=Bounds(program.lower, program.upper),
        constraints=LinearConstraint(program.matrix, program.row_lower, program.row_upper),
        options={"node_limit": nodes, "mip_rel_gap": relative_gap},
    )
    if result.x is None:
        return None
    return ProgramResult(result.x, -result.fun, -result.mip_dual_bound, np.empty(0))
