"""Every row of the benchmark can be had, in sizes that take no time."""

import contextlib
import json
import sys
import time
from dataclasses import replace

import pytest
import torch

import benchmarks.process
from benchmarks import __main__ as command
from benchmarks.answering import answering_rows
from benchmarks.inference import inference_rows
from benchmarks.measure import Elsewhere, Here, Row, Size, Workers, in_turns, ratio
from benchmarks.process import memory_rows, startup_rows
from benchmarks.serve import serve_rows
from benchmarks.start import start_rows
from benchmarks.training import later_task_rows, multiply_adds, our_training, plain_training, thread_rows, training_rows

TINY = Size(
    image=8,
    width=1 / 8,
    batch=4,
    classes=2,
    steps=2,
    rounds=1,
    memories=(1, 2),
    batches=(1, 3),
    tasks=3,
    sgemm=16,
    answer_memories=(1, 2),
    answer_batches=(1, 2),
    answer_aims=((5, 1),),
)


@pytest.fixture
def workers() -> Workers:
    return Workers(Here(), Here())


def numbers(rows: list[Row]) -> list[str]:
    assert all(row.measured and all(value > 0 for value in row.figures.values()) for row in rows)
    assert all((row.reached is None) == (not row.aim) for row in rows)
    return [row.number for row in rows]


def test_training(workers):
    assert numbers(training_rows(TINY, workers)) == ["1", "2", "1", "2", "3"]


def test_later_tasks(workers):
    assert numbers(later_task_rows(TINY, workers)) == ["6"]


def test_threads(workers, monkeypatch):
    monkeypatch.setattr("sparc.methods.sparc.sparc.WORTH_SPLITTING", 1)
    assert numbers(thread_rows(TINY, workers)) == ["11", "11"]
    assert torch.get_num_threads() == 1


def test_inference(workers):
    assert numbers(inference_rows(TINY, workers)) == ["4", "4", "4", "6"] * 2


def test_onnx(workers):
    pytest.importorskip("onnxruntime")
    rows = answering_rows(TINY, workers)
    assert numbers(rows) == ["5"] * (4 + 1 + 4)
    assert sum("two threads" in row.what for row in rows) == 4
    assert torch.get_num_threads() == 1


def test_start(workers):
    pytest.importorskip("onnxruntime")
    assert numbers(start_rows(replace(TINY, start_pictures=3), workers)) == ["9"]


@pytest.mark.long
def test_serve():
    assert numbers(serve_rows(replace(TINY, image=32, clients=3, serve_seconds=1))) == ["10", "10"]


def test_a_server_that_is_not_installed_is_said_to_be(monkeypatch):
    monkeypatch.setattr("benchmarks.serve.find_spec", lambda name: None)
    (row,) = serve_rows(TINY)
    assert "not installed" in row.measured


def test_onnx_that_is_not_installed_is_said_to_be(workers, monkeypatch):
    monkeypatch.setattr("benchmarks.answering.find_spec", lambda name: None)
    (row,) = answering_rows(TINY, workers)
    assert "not installed" in row.measured


def test_memory_and_start(monkeypatch):
    said = {"-c": "12.5", "-m": ""}
    monkeypatch.setattr(benchmarks.process, "_output", lambda command: said[command[1]])
    assert numbers(memory_rows(TINY)) == ["7", "7"]
    help_, predict = startup_rows(TINY)
    assert "without torch" in help_.measured
    assert predict.number == "8"


def test_peaks():
    assert benchmarks.process.answering_peak(TINY) >= 0


def test_the_same_batches_give_the_same_losses():
    assert our_training(TINY, later=True)() == pytest.approx(plain_training(TINY, later=True)(), rel=1e-3)


def test_multiply_adds_of_the_paper_net():
    forward, backward = multiply_adds(Size(), later=False)
    _, later = multiply_adds(Size(), later=True)
    assert forward == 17_446_912
    assert 1.9 * forward < backward < 2 * forward
    assert backward - forward / 2 < later < backward


def test_a_job_elsewhere_is_timed_there_and_its_error_comes_back():
    worker = Elsewhere(keeps_memory=True)
    try:
        worker.make("sum", job, 3)
        assert worker.run("sum")[1] == 3
        worker.make("pause", pause)
        assert worker.run("pause", time.perf_counter)[0] >= 0.05 > worker.run("pause")[0]
        with pytest.raises(KeyError):
            worker.run("nothing")
    finally:
        worker.close()


def pause():
    return lambda: time.sleep(0.05)


def job(number: int):
    return lambda: int(torch.ones(number).sum())


def test_ratio_and_turns():
    here = Here()
    here.make("one", job, 1)
    assert len(in_turns({"one": here}, 3)["one"]) == 3
    ticks = iter(range(100))
    assert in_turns({"one": here}, 3, timer=lambda: next(ticks))["one"] == [1, 1, 1]
    assert ratio([2.0, 9.0, 4.0], [1.0, 3.0, 2.0]) == 2


def test_command(workers, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "two_processes", lambda: contextlib.nullcontext(workers))
    row = Row("1", "something", "2 ×", "≥ 3 ×", False)
    for part in ("training_rows", "later_task_rows", "inference_rows", "answering_rows", "start_rows", "thread_rows"):
        monkeypatch.setattr(command, part, lambda size, workers: [row])
    monkeypatch.setattr(command, "memory_rows", lambda size: [])
    monkeypatch.setattr(command, "startup_rows", lambda size: [])
    monkeypatch.setattr(command, "serve_rows", lambda size: [])
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--out", str(tmp_path / "out.json")])
    command.main()
    assert "something" in capsys.readouterr().out
    saved = json.loads((tmp_path / "out.json").read_text())
    assert len(saved["rows"]) == 6
    assert saved["machine"]["torch"] == torch.__version__
