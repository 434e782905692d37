"""Parameters, plans and runs of the tuner; what a test does not name is the same for all."""

from collections.abc import Iterable

from forebay.tune.model import Configuration, Machine, Parameter, Plan, Run


def parameter(name: str, *values: str, **members) -> Parameter:
    """PATTERN:SETTING, or SETTING of the whole job."""
    pattern, _, setting = name.rpartition(":")
    known = {"setting": setting, "ordered": False, "default": None, "reason": "made up", "source": "plans.py"}
    return Parameter(name=name, pattern=pattern or None, values=values, **known | members)


def plan(parameters: Iterable[Parameter], **members) -> Plan:
    known = {"refusals": (), "guesses": (), "machine": Machine(ranks=16, nodes=1)}
    known |= {"strategy": "tpe", "seed": 1, "runs_max": 20}
    return Plan(parameters=tuple(parameters), **known | members)


def run(number: int = 1, configuration: Configuration | None = None, **members) -> Run:
    known = {"place": "file-system", "phase": "search", "status": "ok"}
    return Run(number=number, configuration=configuration or {}, **known | members)
