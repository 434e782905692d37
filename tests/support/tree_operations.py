"""Random operations on one directory tree from several nodes, compared one by one with the model of such a tree."""

import json
import random
import select
import time
from unittest.mock import ANY

from support import tree_agent
from support.nodes import PYTHON, WAIT_S, ended
from support.tree_model import Directory, File, Link, Model

NAMES = "abcdef"
DEPTH_MAX = 3
LENGTHS = (0, 1, 100, 4095, 4096, 10_000)
OFFSETS = (0, 1, 4000, 4096, 9_000, 20_000)
MODES = {File: (0o600, 0o640, 0o644, 0o666), Directory: (0o700, 0o711, 0o755)}
HANDLES_MAX = 6
SHOWN = 25
TREE_EVERY = 50
#: Two changes that are so far apart have different times.
CLOCK_TICK_S = 0.02

#: How often each operation comes.
WEIGHTS = {
    "mkdir": 8,
    "rmdir": 4,
    "unlink": 8,
    "rename": 10,
    "link": 4,
    "symlink": 3,
    "readlink": 2,
    "chmod": 4,
    "list": 6,
    "describe": 10,
    "read": 10,
    "put": 8,
    "create_new": 6,
    "write": 10,
    "append": 6,
    "truncate": 6,
    "open": 6,
    "handle_read": 8,
    "handle_write": 8,
    "handle_append": 6,
    "handle_truncate": 3,
    "handle_describe": 6,
    "close": 4,
}
#: What each is mostly done to; a new name if it is not here.
WANTED = {name: File for name in ("unlink", "chmod", "read", "put", "write", "append", "truncate")}
WANTED |= {"rmdir": Directory, "list": Directory, "describe": object, "readlink": Link}
#: Operations that are left out for an engine without the promise (support.engines).
OF_PROMISE = {"append": {"append", "handle_append"}, "rename": {"rename"}}


class Generator:
    """Draws operations that may succeed on the tree as the model has it, and some that may not."""

    def __init__(self, seed: int, nodes: tuple[str, ...], without: set[str]):
        self.random = random.Random(seed)
        self.nodes = nodes
        self.model = Model()
        self.places: dict[str, str] = {}  # of open handles: their node
        self.count = 0
        self.weights = {name: weight for name, weight in WEIGHTS.items() if name not in without}

    def draw(self) -> tuple[str, list]:
        """The node and the operation."""
        while True:
            (name,) = self.random.choices([*self.weights], [*self.weights.values()])
            node = self.random.choice(self.nodes)
            if name.startswith("handle_") or name == "close":
                usable = [handle for handle in self.places if self.can_use(handle, name)]
                if not usable:
                    continue
                handle = self.random.choice(usable)
                return self.places[handle], [name, handle, *self.arguments(name)]
            if name == "open":
                if len(self.places) == HANDLES_MAX:
                    continue
                self.count += 1
                return node, [name, f"h{self.count}", self.path(File), self.random.choice(["plain", "append"])]
            return node, [name, *self.arguments_of_names(name)]

    def can_use(self, handle: str, name: str) -> bool:
        appends = self.model.handles[handle][1] == "append"
        return appends if name == "handle_append" else not (appends and name == "handle_write")

    def note(self, node: str, operation: list, accepted: bool) -> None:
        """Which handles are open."""
        if operation[0] == "open" and accepted:
            self.places[operation[1]] = node
        elif operation[0] == "close":
            del self.places[operation[1]]

    def path(self, wanted: type | None = None) -> str:
        """Most of the time of the wanted kind, None for no such name yet; else any, of the tree or not."""
        existing = walked(self.model)
        usable = [path for path, inode in existing if wanted and isinstance(inode, wanted)]
        draw = self.random.random()
        if usable and draw < 0.7:
            return self.random.choice(usable)
        if existing and (draw < 0.15 or (wanted and draw < 0.85)):
            return self.random.choice(existing)[0]
        # A path may lead through what is no directory.
        kind = Directory if self.random.random() < 0.9 else object
        folders = [
            f"{path}/" for path, inode in existing if isinstance(inode, kind) and path.count("/") < DEPTH_MAX - 1
        ]
        return self.random.choice(["", *folders]) + self.random.choice(NAMES)

    def text(self) -> list:
        return [self.random.choice("tuvwxyz"), self.random.choice(LENGTHS)]

    def arguments(self, name: str) -> list:
        """Those after the file."""
        if name.endswith("write"):
            return [self.random.choice(OFFSETS), self.text()]
        if name.endswith("append") or name == "put":
            return [self.text()]
        if name.endswith("truncate"):
            return [self.random.choice(OFFSETS)]
        return []

    def arguments_of_names(self, name: str) -> list:
        if name in ("rename", "link"):
            wanted = File if name == "link" else self.random.choice([File, Directory])
            return [self.path(wanted), self.path(self.random.choice([None, None, wanted]))]
        if name == "symlink":
            return ["nowhere/" + self.random.choice(NAMES), self.path()]
        path = self.path(WANTED.get(name))
        if name == "chmod":
            found = dict(walked(self.model)).get(path)
            return [path, self.random.choice(MODES.get(type(found), MODES[Directory]))]
        return [path, *self.arguments(name)]


def walked(model: Model):
    return [(path, model.find(path)) for path in model.paths()]


class Agents:
    """One agent on each node, all in the same directory; ends them."""

    def __init__(self, namespace, directory):
        words = [PYTHON, namespace.bed.copied(tree_agent.__file__), directory]
        self.processes = {node: namespace.popen(node, words) for node in namespace.nodes}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            ended(process, check=False)

    def ask(self, node: str, operation: list) -> list:
        process = self.processes[node]
        process.stdin.write(json.dumps(operation) + "\n")
        process.stdin.flush()
        answers, _, _ = select.select([process.stdout], [], [], WAIT_S)
        assert answers, f"{node} did not answer within {WAIT_S} s: {operation}"
        line = process.stdout.readline()
        assert line, f"the agent on {node} ended: {process.communicate()}"
        return json.loads(line)


class Comparison:
    """Random operations of a seed in an empty directory. The first answer that is not the model's fails, with `repeat`,
    the way to see it again."""

    def __init__(self, namespace, agents: Agents, nodes: tuple[str, ...], seed: int, repeat: str):
        without = {name for promise in namespace.engine.deviations for name in OF_PROMISE.get(promise, ())}
        self.generator = Generator(seed, nodes, without)
        self.model = self.generator.model
        self.agents = agents
        self.done: list[str] = []
        self.repeat = f"seed {seed}: {repeat}"

    def ask(self, node: str, operation: list) -> list:
        found = self.agents.ask(node, operation)
        self.done.append(f"{len(self.done)} {node} {json.dumps(operation)}")
        return found

    def check(self, expected, found) -> None:
        if found != expected:
            lines = [*self.done[-SHOWN:], f"expected {expected}", f"found    {found}", self.repeat]
            raise AssertionError("\n".join(lines))

    def step(self) -> None:
        node, operation = self.generator.draw()
        expected = self.model.answer(*operation)
        self.check(expected, self.ask(node, operation))
        self.generator.note(node, operation, expected[0] == "ok")


def compare_with_model(namespace, directory, seed: int, steps: int, repeat: str) -> None:
    """Compares all answers."""
    with Agents(namespace, directory) as agents:
        comparison = Comparison(namespace, agents, namespace.nodes, seed, repeat)
        for step in range(1, steps + 1):
            comparison.step()
            if step % TREE_EVERY == 0 or step == steps:
                for node in namespace.nodes:
                    comparison.check(comparison.model.answer("tree"), comparison.ask(node, ["tree"]))


def compare_times_with_model(namespace, directory, nodes, seed: int, steps: int, repeat: str) -> None:
    """Compares after each operation which times have changed, and the links, as each of the nodes sees them."""
    with Agents(namespace, directory) as agents:
        comparison = Comparison(namespace, agents, nodes, seed, repeat)
        seen = {node: {} for node in nodes}  # of each inode: its changes in the model, and its times then
        for _ in range(steps):
            comparison.step()
            for node in nodes:
                inodes = comparison.model.inodes()
                answer = comparison.ask(node, ["status", [*inodes]])
                comparison.check(["ok", ANY], answer)
                expected, found = {}, {}
                for (path, inode), (links, *times) in zip(inodes.items(), answer[1], strict=True):
                    changes = (inode.modified, inode.changed)
                    unclear, *before = seen[node].get(inode, (None, changes, times))
                    if unclear != inode.unclear:
                        before = [changes, times]
                    expected[path] = [links_of(inode, links), *signs(before[0], changes)]
                    found[path] = [links, *signs(before[1], times)]
                    seen[node][inode] = (inode.unclear, changes, times)
                comparison.check(expected, found)
            time.sleep(CLOCK_TICK_S)


def signs(before, after) -> list[int]:
    """Of each: 1 if it is later, 0 if it is the same, -1 if it is earlier."""
    return [(new > old) - (new < old) for old, new in zip(before, after, strict=True)]


def links_of(inode, found: int) -> int:
    """A file system that does not count the links of directories says 1."""
    if not isinstance(inode, Directory):
        return inode.links
    folders = sum(isinstance(entry, Directory) for entry in inode.entries.values())
    return found if found == 1 else 2 + folders
