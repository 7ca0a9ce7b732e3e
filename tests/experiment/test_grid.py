"""Many runs: each is done once, whoever does it and whatever becomes of the workers."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sparc.errors import InputError
from sparc.experiment import Run, RunConfig, Stopped, StreamSettings, Workplace, done_runs, list_runs, run
from sparc.experiment.grid import ATTEMPTS, Executor, GridWatcher, Job, Report, run_grid
from sparc.experiment.identity import find_done
from sparc.experiment.on_ray import OnRay
from sparc.experiment.processes import Pool, Processes
from sparc.methods.sparc.settings import SparcSettings
from sparc.train import TrainingReport

CONFIG = RunConfig.default("seq-digits", "sparc")
CONFIG = replace(
    CONFIG,
    settings=SparcSettings(width=1 / 16),
    recipe=replace(CONFIG.recipe, epochs=4, batch_size=64),
    stream=StreamSettings(tasks=2),
)


def jobs(out: Path, seeds: int = 2) -> list[Job]:
    return [Job(replace(CONFIG, seed=seed), Workplace(out, checkpoint_minutes=0)) for seed in range(seeds)]


def digests(runs: list[Run]) -> list[str]:
    return [run.result.state_sha256 if run.result else run.note for run in runs]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """The runs, done one after another in this process."""
    return [run(job.config, job.workplace) for job in jobs(tmp_path_factory.mktemp("alone"))]


@pytest.fixture(scope="module")
def expected(alone: list[Run]) -> list[str]:
    return digests(alone)


class Killer(GridWatcher):
    """Kills a worker, or asks for a stop, when a run is well on its way."""

    def __init__(self, kill: Callable[[], object] | None = None, times: int = 1) -> None:
        self.kill = kill
        self.times = times
        self.stopping = False
        self.lost_jobs: list[int] = []
        self.ends: list[int] = []

    def reported(self, job: int, report: Report) -> None:
        if self.times and isinstance(report, TrainingReport) and report.epoch >= 2:
            self.times -= 1
            if self.kill:
                self.kill()
            else:
                self.stopping = True

    def stop_asked(self) -> bool:
        return self.stopping

    def lost(self, job: int, attempt: int) -> None:
        self.lost_jobs.append(job)

    def ended(self, job: int, run: Run) -> None:
        self.ends.append(job)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The process ids of all local workers there were."""
    ids: list[int] = []
    start = Pool.start_worker

    def watched(pool: Pool) -> None:
        start(pool)
        ids.append(pool.workers[-1].process.pid or 0)

    monkeypatch.setattr(Pool, "start_worker", watched)
    return ids


def test_workers_do_what_one_process_does(tmp_path: Path, expected: list[str], workers: list[int]) -> None:
    watcher = Killer(times=0)
    assert digests(run_grid(jobs(tmp_path), Processes(2), watcher)) == expected
    assert sorted(watcher.ends) == [0, 1]
    assert len(workers) == 2
    before = [path.stat().st_mtime_ns for path in tmp_path.glob("*/result.json")]
    assert digests(run_grid(jobs(tmp_path), Processes(2))) == expected
    assert [path.stat().st_mtime_ns for path in tmp_path.glob("*/result.json")] == before
    assert len(workers) == 2, "what is there is not run again"


def test_a_killed_worker_is_replaced_and_the_grid_ends_complete_and_equal(
    tmp_path: Path, expected: list[str], workers: list[int]
) -> None:
    watcher = Killer(lambda: os.kill(workers[-1], signal.SIGKILL))
    assert digests(run_grid(jobs(tmp_path), Processes(1), watcher)) == expected
    assert len(watcher.lost_jobs) == 1
    assert len(workers) == 2
    assert not list(tmp_path.rglob("checkpoints"))


@pytest.mark.long
def test_a_run_whose_workers_always_die_is_given_up(tmp_path: Path, workers: list[int]) -> None:
    long = [
        replace(job, config=replace(job.config, recipe=replace(CONFIG.recipe, epochs=400))) for job in jobs(tmp_path, 1)
    ]
    watcher = Killer(lambda: os.kill(workers[-1], signal.SIGKILL), times=99)
    (given_up,) = run_grid(long, Processes(1), watcher)
    assert given_up.state == "failed"
    assert "its worker died 4 times" in given_up.note
    assert len(workers) == ATTEMPTS


def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path, expected: list[str]) -> None:
    first, second = jobs(tmp_path)
    broken = replace(first, config=replace(first.config, recipe=replace(CONFIG.recipe, lr=1e30)))
    failed, done = run_grid([broken, second], Processes(1))
    assert failed.state == "failed"
    assert "lower --lr" in failed.note
    assert digests([done]) == expected[1:]


def test_a_stop_leaves_checkpoints_to_go_on_from(tmp_path: Path, expected: list[str]) -> None:
    with pytest.raises(Stopped, match="of 2 runs done"):
        run_grid(jobs(tmp_path), Processes(1), Killer())
    assert list(tmp_path.rglob("step-*"))
    assert digests(run_grid(jobs(tmp_path), Processes(2))) == expected


@pytest.mark.long
def test_a_system_that_cannot_fork_starts_workers_anew(
    tmp_path: Path, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    assert digests(run_grid(jobs(tmp_path, 1), Processes(1))) == expected[:1]


def test_what_failed_before_a_stop_is_not_told_as_done(tmp_path: Path) -> None:
    with pytest.raises(Stopped, match=r"^0 of 2 runs done, 1 failed$"):
        run_grid(jobs(tmp_path), lambda missing, watcher: {0: missing[0].failed("it broke")})


def test_what_is_there_is_found_by_its_config(alone: list[Run], tmp_path: Path) -> None:
    assert done_runs(tmp_path / "nowhere") == []
    runs = done_runs(alone[0].folder.parent)
    found = find_done(CONFIG, runs)
    assert found is not None
    assert found.folder == alone[0].folder
    assert find_done(CONFIG, runs, bf16=True) is None
    for other in (
        replace(CONFIG, seed=2),
        replace(CONFIG, settings=SparcSettings(width=1 / 8)),
        replace(CONFIG, benchmark="some/folder"),
    ):
        assert find_done(other, runs) is None


def ray_workers() -> list[int]:
    """The process ids of the workers that are at a run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().startswith(b"ray::_do"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no /proc here to find the workers in")
def test_ray_ends_complete_and_equal_though_a_worker_is_killed(tmp_path: Path, expected: list[str]) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'sparc-cl[ray]'")
    executor: Executor = OnRay()
    watcher = Killer(lambda: os.kill(ray_workers()[0], signal.SIGKILL))
    assert digests(run_grid(jobs(tmp_path), executor, watcher)) == expected
    assert not watcher.times, "one was killed"
    assert len(watcher.lost_jobs) == 1
    assert sorted(watcher.ends) == [0, 1]


@pytest.mark.long
def test_a_stop_reaches_the_workers_of_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'sparc-cl[ray]'")
    long = replace(CONFIG, recipe=replace(CONFIG.recipe, epochs=2000))
    workplace = Workplace(tmp_path, checkpoint_minutes=99)
    with pytest.raises(Stopped, match="0 of 2 runs done"):
        run_grid([Job(replace(long, seed=seed), workplace) for seed in (0, 1)], OnRay(workers=1), Killer())
    (only,) = list_runs(tmp_path)
    assert only.state == "part-way"
    assert list(only.folder.rglob("step-*"))


def test_an_address_where_no_ray_listens_is_told_at_once(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'sparc-cl[ray]'")
    with pytest.raises(InputError, match=r"there is no Ray cluster at --address 127\.0\.0\.1:1"):
        run_grid(jobs(tmp_path, 1), OnRay("127.0.0.1:1"))
