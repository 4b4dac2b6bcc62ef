"""Time parametrisation of a path as toppra does it, equal to the bit, without what doesn't enter the result.

RoboTwin lets mplib's ``Planner.TOPP`` time both arms' paths for each action: after physics the largest part of an
action. The linear programs, which are compiled, took less than a third of that. The rest was Python around them: a grid
found anew for each straight line, limits made text of, solvers looked for that aren't installed, arrays of one or two
numbers, sums number by number. Here each number that enters the result comes of the same operations in the same order;
squares of single numbers stay ``**``, which is the C library's ``pow`` and not always what a product is.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

KNOWN = ("0.6.3",)
"""Versions of toppra whose steps these are. Others are left to themselves."""
_GRID_ERROR, _GRID_LENGTH, _GRID_POINTS = 1e-3, 0.05, 100
"""What a ``TOPPRA`` asks of its grid: largest error, longest piece, fewest points."""


class PathTiming:
    """Takes the places of ``algo`` and ``constraint`` in ``mplib.planner``, and gives them back."""

    def __init__(self) -> None:
        self._planner: Any = importlib.import_module("mplib.planner")
        self._original = self._planner.algo, self._planner.constraint
        self._lean = _lean(*self._original) if _version() in KNOWN else self._original

    def use(self, lean: bool) -> None:
        """Time the paths from now on this way, or toppra's."""
        self._planner.algo, self._planner.constraint = self._lean if lean else self._original


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # Python 3.8 has it

    try:
        return version("toppra")
    except PackageNotFoundError:
        return ""


def _lean(algorithm: Any, constraint: Any) -> Tuple[Any, Any]:
    interpolator = importlib.import_module("toppra.interpolator")
    parametrizer = importlib.import_module("toppra.parametrizer")
    base, constants = importlib.import_module("toppra.algorithm.algorithm"), importlib.import_module("toppra.constants")
    wrapper = importlib.import_module("toppra.solverwrapper").seidelWrapper

    class ConstAccel(parametrizer.ParametrizeConstAccel):  # type: ignore[misc,name-defined]
        """See ``ParametrizeConstAccel``."""

        _asked: Optional[np.ndarray] = None
        _answer: Any = None

        def _process_parametrization(self) -> None:
            ss, xs, velocities = self._ss, self._xs, self._velocities
            pieces = ss[1:] - ss[:-1]
            self._us = 0.5 * (xs[1:] - xs[:-1]) / pieces
            self._ts = np.concatenate([[0.0], np.cumsum(2 * pieces / (velocities[:-1] + velocities[1:]))])

        def _eval_params(self, ts: np.ndarray) -> Any:
            if self._asked is not ts:  # positions, velocities and accelerations are asked for one after another
                self._answer, self._asked = self._at(ts), ts
            return self._answer

        def _at(self, ts: np.ndarray) -> Any:
            index = np.searchsorted(self._ts, ts, side="right") - 1
            index[index == len(self._us)] -= 1
            dt, us, velocities = ts - self._ts[index], self._us[index], self._velocities[index]
            squares = np.array([one**2 for one in dt])
            return self._ss[index] + dt * velocities + 0.5 * squares * us, velocities + dt * us, us

    class TOPPRA(algorithm.TOPPRA):  # type: ignore[misc]
        """See ``toppra.algorithm.TOPPRA``; without conic constraints, with the solver that it chooses by itself."""

        def __init__(self, constraint_list: List[Any], path: Any, parametrizer: str) -> None:
            self.constraints, self.path = constraint_list, path
            gridpoints = _grid(interpolator, path)
            self.gridpoints = np.array(gridpoints)
            self._problem_data = base.ParameterizationData()
            self._problem_data.gridpoints = np.array(gridpoints)
            self._N = len(gridpoints) - 1
            self.parametrizer = {"ParametrizeConstAccel": ConstAccel}[parametrizer]
            self._make_solver()

        def _make_solver(self) -> None:
            self.solver_wrapper = wrapper(self.constraints, self.path, self.gridpoints, solve_lp1d=True)

        def compute_parameterization(self, sd_start: float, sd_end: float, return_data: bool = False) -> None:
            """See ``ReachabilityAlgorithm``; the result is in ``problem_data`` alone."""
            if not self._solve(sd_start, sd_end):
                self._make_solver()  # it begins each program where the last one ended
                super().compute_parameterization(sd_start, sd_end)

        def _solve(self, sd_start: float, sd_end: float) -> bool:
            """The pass from the end and the one from the start; False where toppra would say or try something."""
            controllable = self._controllable(sd_end)
            x = sd_start**2
            lows, highs = controllable[:, 0].tolist(), controllable[:, 1].tolist()
            if np.isnan(controllable[0]).any() or x + constants.SMALL < lows[0] or highs[0] + constants.SMALL < x:
                return False
            solve, tiny, towards = self.solver_wrapper.solve_stagewise_optim, constants.TINY, np.array([0.0, -1.0])
            xs, us = [x], []
            self.solver_wrapper.setup_solver()
            for i, delta in enumerate(self.solver_wrapper.get_deltas()):
                towards[0] = -2 * delta
                u = solve(i, None, towards, x, x, lows[i + 1], highs[i + 1])[0]
                if u != u:
                    return False
                following = x + 2 * delta * u
                x = min(highs[i + 1], max(lows[i + 1], max(following - tiny, 0.9999 * following)))
                xs.append(x)
                us.append(u)
            self.solver_wrapper.close_solver()
            data = self._problem_data
            data.K, data.sd_vec, data.sdd_vec = controllable, np.sqrt(np.array(xs)), np.array(us)
            codes = base.ParameterizationReturnCode
            data.return_code = codes.ErrUnknown if np.isnan(data.sd_vec).any() else codes.Ok
            return True

        def _controllable(self, sd_end: float) -> np.ndarray:
            """(N + 1, 2): squared velocities, least and greatest, that can still reach the end; or NaN."""
            solve, nan = self.solver_wrapper.solve_stagewise_optim, np.nan
            up, down = np.array([1e-9, -1.0]), np.array([-1e-9, 1.0])
            low = high = sd_end**2
            found = [(low, high)]
            self.solver_wrapper.setup_solver()
            for i in range(self._N - 1, -1, -1):
                highest = solve(i, None, up, nan, nan, low, high)[1]
                lowest = solve(i, None, down, nan, nan, low, high)[1]
                low, high = 0.0 if lowest < 0 else lowest, highest
                if low != low or high != high:
                    return np.full((self._N + 1, 2), nan)
                found.append((low, high))
            self.solver_wrapper.close_solver()
            return np.array(found[::-1])

    lean_algorithm = SimpleNamespace(TOPPRA=TOPPRA)
    lean_constraint = SimpleNamespace(
        JointVelocityConstraint=_Remembered(constraint.JointVelocityConstraint),
        JointAccelerationConstraint=_Remembered(constraint.JointAccelerationConstraint),
    )
    return lean_algorithm, lean_constraint


class _Remembered:
    """A constraint for the same limits is the same one: it holds nothing else."""

    def __init__(self, make: Any) -> None:
        self._make = make
        self._made: Dict[Tuple[Any, ...], Any] = {}

    def __call__(self, limits: Any) -> Any:
        limits = np.array(limits, dtype=float)
        key = limits.shape, limits.tobytes()
        if key not in self._made:
            self._made[key] = self._make(limits)
        return self._made[key]


_grids: Dict[Tuple[float, float], List[float]] = {}


def _grid(interpolator: Any, path: Any) -> List[float]:
    """As ``propose_gridpoints``; between two waypoints, where nothing bends, remembered."""
    asked = {"max_err_threshold": _GRID_ERROR, "max_seg_length": _GRID_LENGTH, "min_nb_points": _GRID_POINTS}
    first, last = path.path_interval
    # The second derivative is linear between waypoints: with two of them, it is largest at an end.
    if len(path.waypoints[0]) != 2 or np.abs(path(path.path_interval, 2)).max() * _GRID_LENGTH**2 > _GRID_ERROR:
        grid: List[float] = interpolator.propose_gridpoints(path, **asked)
        if (np.diff(grid) <= 0).any():
            raise ValueError("Bad input gridpoints.")
        return grid
    if (first, last) not in _grids:
        _grids[first, last] = [float(point) for point in interpolator.propose_gridpoints(path, **asked)]
    return _grids[first, last]
