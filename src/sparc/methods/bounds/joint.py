"""Joint training: at every task a new net learns the pictures of all tasks so far, as if they had come at once.

The upper bound: it sees again what nobody else may keep, and its pictures are not counted as a buffer.
"""

from collections.abc import Sequence

from sparc.data.stream import Task
from sparc.methods.method import Phase
from sparc.methods.parts.single import SingleNet
from sparc.methods.recipe import Recipe


class Joint(SingleNet):
    name = "joint"
    title = "JOINT"
    paper = "upper bound"
    recipe = Recipe(lr=0.1)
    sees_old_tasks = True

    def begin_task(self, task: Task) -> None:
        self.net = self.new_net(self.generator).to(self.device)
        self.net.add_classes(task.classes.stop)

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        return [Phase(recipe, images=task.seen)]
