"""What SPARC does beyond the contract."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods.sparc.settings import SparcSettings
from sparc.methods.sparc.sparc import SPARC, max_without_outliers, renormalize
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import begin

RECIPE = replace(SPARC.recipe, epochs=2, batch_size=16)


def learner(seed: int = 0, **settings: float) -> SPARC:
    return SPARC(SparcSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(seed, "method"))


def trainer(method: SPARC, augment: Augment) -> Trainer:
    return Trainer(method, RECIPE, seed=0)


# A has quartiles 2 and 4, so iqr is 2 and the bound 4 + 2 = 6.
USUAL = [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("largest", "eta"),
    [
        (6.0, 6.0),  # just inside: on the bound
        (6.0001, 4.0),  # just outside
        (5.0, 5.0),
        (1000.0, 4.0),
        (7.0, 4.0),  # one and a half inter-quartile ranges would let it in
    ],
)
def test_eta_with_an_outlier_inside_and_outside_the_bound(largest: float, eta: float) -> None:
    assert max_without_outliers(torch.tensor([*USUAL, largest])) == eta


def test_eta_interpolates_quartiles() -> None:
    # Quartiles of 0, 1, 2, 10 are .75 and 4, so the bound is 7.25.
    assert max_without_outliers(torch.tensor([0.0, 1.0, 2.0, 10.0])) == 2.0


def test_eta_takes_as_many_pictures_as_there_are() -> None:
    # torch's quantile refuses more than 16 M values; a task may have them.
    values = torch.linspace(0, 1, (1 << 24) + 1)
    assert max_without_outliers(values) == 1.0


def test_renormalization_puts_eta_at_kappa() -> None:
    head = nn.Linear(2, 2)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        head.bias.copy_(torch.tensor([8.0, -2.0]))
    renormalize(head, torch.tensor([*USUAL, 1000.0]), kappa=5.0)  # η = 4, so everything times 5/4
    assert head.weight.tolist() == [[1.25, 2.5], [3.75, 5.0]]
    assert head.bias.tolist() == [10.0, -2.5]


def test_a_head_that_never_answers_above_zero_is_left_alone() -> None:
    head = nn.Linear(2, 2)
    before = copy.deepcopy(head.state_dict())
    renormalize(head, torch.tensor([-3.0, -2.0, -1.0]), kappa=5.0)
    assert all(torch.equal(value, before[name]) for name, value in head.state_dict().items())


def test_after_a_task_the_largest_usual_answer_of_its_last_epoch_is_kappa(stream: Stream, augment: Augment) -> None:
    plain, scaled = learner(kappa=0), learner(kappa=5)
    recorded: list[Tensor] = []

    class Recording(SPARC):
        def end_task(self, task) -> None:  # type: ignore[no-untyped-def]
            recorded.append(self.maxima.clone())
            super().end_task(task)

    scaled.__class__ = Recording
    trainer(plain, augment).learn(stream[0])
    trainer(scaled, augment).learn(stream[0])
    (maxima,) = recorded
    assert len(maxima) == len(stream[0].train), "one for each sample of the last epoch, and no other"
    ratio = scaled.net.memories()[0].head.weight / plain.net.memories()[0].head.weight
    torch.testing.assert_close(ratio, torch.full_like(ratio, 5 / max_without_outliers(maxima)))
    assert len(scaled.maxima) == 0


def test_the_norms_of_heads_are_kept_from_before_and_after_renormalization(stream: Stream, augment: Augment) -> None:
    plain, scaled = learner(kappa=0), learner(kappa=5)
    assert scaled.diagnostics() == {"head norm before": [], "head norm after": []}
    for method in (plain, scaled):
        run = trainer(method, augment)
        for task in stream:
            run.learn(task)
    norms = [memory.head.weight.square().sum(1).sqrt().mean().item() for memory in scaled.net.memories()]
    assert scaled.diagnostics()["head norm after"] == pytest.approx(norms)
    assert plain.diagnostics()["head norm before"] == plain.diagnostics()["head norm after"]
    # Heads of later tasks stand on a semantic memory that re-normalization does not touch.
    assert scaled.diagnostics()["head norm before"] == plain.diagnostics()["head norm before"]
    resumed = learner(seed=1)
    resumed.load_state_dict(scaled.state_dict())
    assert resumed.diagnostics() == scaled.diagnostics()


def test_answers_without_renormalization_are_those_of_a_net_that_has_none(stream: Stream, augment: Augment) -> None:
    plain, scaled = learner(kappa=0), learner(kappa=5)
    for method in (plain, scaled):
        trainer(method, augment).run(stream)
        method.eval()
    images = augment.normalize(stream.test(0).images)
    ((name, logits),) = scaled.logits_by_part(images).items()
    assert name == "without re-normalization"
    torch.testing.assert_close(logits, plain.logits(images), atol=1e-4, rtol=1e-4)
    assert not torch.allclose(logits, scaled.logits(images), atol=0.1)
    assert plain.logits_by_part(images) == {}


def test_frozen_memories_do_not_change_by_a_byte(stream: Stream, augment: Augment) -> None:
    method = learner()
    run = trainer(method, augment)
    after: list[dict[str, bytes]] = []
    for task in stream:
        run.learn(task)
        for memory, state in zip(method.net.memories(), after, strict=False):
            now = {name: value.numpy().tobytes() for name, value in memory.state_dict().items()}
            assert now == state
        newest = method.net.memories()[-1]
        after.append({name: value.numpy().tobytes() for name, value in newest.state_dict().items()})


def test_a_memory_is_frozen_when_its_task_ends(stream: Stream, augment: Augment) -> None:
    method = learner()
    run = trainer(method, augment)
    run.learn(stream[0])
    memory = method.net.memories()[0]
    assert memory.frozen
    assert not any(parameter.requires_grad for parameter in memory.parameters())
    before = memory.stem.norm.running_mean.clone()
    method.train()
    method.logits(augment.normalize(stream.test(0).images))
    assert torch.equal(memory.stem.norm.running_mean, before), "not even its statistics move"


def test_the_first_task_is_not_consolidated(stream: Stream, augment: Augment) -> None:
    """It has taught the semantic memory already: with α = 0 consolidation would put its own filters there."""
    first, second = learner(alpha=0.0), learner(alpha=1.0)
    for method in (first, second):
        trainer(method, augment).learn(stream[0])
    for one, other in zip(first.net.semantic.filters, second.net.semantic.filters, strict=True):
        assert torch.equal(one, other)


def test_a_state_from_the_middle_of_a_task_keeps_who_learns(stream: Stream, augment: Augment) -> None:
    method = learner()
    trainer(method, augment).learn(stream[0])
    begin(method, stream[1])
    resumed = learner(seed=3)
    resumed.load_state_dict(method.state_dict())
    assert {name for name, value in resumed.named_parameters() if value.requires_grad} == {
        name for name, value in method.named_parameters() if value.requires_grad
    }


def test_semantic_memory_learns_in_the_first_task_only(stream: Stream, augment: Augment) -> None:
    method = learner()
    run = trainer(method, augment)
    banks = [bank.detach().clone() for bank in method.net.semantic.filters]
    run.learn(stream[0])
    learned = [bank.detach().clone() for bank in method.net.semantic.filters]
    assert all(not torch.equal(before, after) for before, after in zip(banks, learned, strict=True))

    run.learn(stream[1])
    assert all(bank.grad is None for bank in method.net.semantic.filters)
    own = [conv.pointwise for conv in method.net.memories()[1].separable()]
    for before, mine, now in zip(learned, own, method.net.semantic.filters, strict=True):
        torch.testing.assert_close(now, 0.99 * before + 0.01 * mine, rtol=1e-6, atol=1e-7)


def test_semantic_memory_takes_no_gradient_from_the_second_task_on(stream: Stream, augment: Augment) -> None:
    method = learner(alpha=1.0)
    run = trainer(method, augment)
    run.learn(stream[0])
    learned = [bank.detach().numpy().tobytes() for bank in method.net.semantic.filters]
    for task in stream[1:]:
        run.learn(task)
    assert [bank.detach().numpy().tobytes() for bank in method.net.semantic.filters] == learned, "α = 1 moves nothing"


def test_complete_isolation_forgets_nothing_within_tasks(stream: Stream, augment: Augment) -> None:
    reports = trainer(learner(shared=0), augment).run(stream)
    final = reports[-1].test.task_il
    assert [report.test.task_il[-1] for report in reports] == final


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"alpha": 1.1}, "--alpha"),
        ({"alpha": float("nan")}, "--alpha"),
        ({"kappa": -1}, "--kappa"),
        ({"kappa": float("inf")}, "--kappa"),
    ],
)
def test_settings_out_of_range_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        SparcSettings(**settings)


def test_owners_are_the_papers(stream: Stream) -> None:
    method = learner()
    method.begin_task(stream[0])
    owners = method.parameters_by_owner()
    assert list(owners) == ["working memories", "semantic memory", "heads"]
    assert sum(owners.values()) == sum(value.numel() for value in method.parameters())


def test_answers_follow_the_weights_whenever_they_change(stream: Stream, augment: Augment) -> None:
    method, other = learner(seed=0), learner(seed=1)
    for each in (method, other):
        trainer(each, augment).learn(stream[0])
        each.eval()
    images = augment.normalize(stream.test(0).images)
    before = method.logits(images)
    torch.testing.assert_close(before, method.net(images), atol=1e-5, rtol=1e-5)
    method.load_state_dict(other.state_dict())
    torch.testing.assert_close(method.logits(images), other.net(images), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(method.logits(images), before)
