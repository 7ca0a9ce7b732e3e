"""What methods share whose net learns with the first task, and never again."""

from collections.abc import Sequence

from sparc.data.stream import Task
from sparc.methods.method import Phase
from sparc.methods.parts.single import SingleNet
from sparc.methods.recipe import Recipe


class FirstTaskNet(SingleNet):
    """Later tasks are described in the features that the first one has left."""

    def begin_task(self, task: Task) -> None:
        if not task.index:
            super().begin_task(task)

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        return [] if task.index else [Phase(recipe)]
