"""Spaces: parameters by name, in any of the forms that people already have."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from . import _native

Value = Union[bool, int, float, str]


def plain(value: Any) -> Any:
    """A value that JSON knows: NumPy's numbers become Python's."""
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "ndim", 0) == 0:
        value = item()
    return value


def dumps(data: Any) -> str:
    """JSON, with NumPy's numbers as Python's; numbers that are not finite are refused, by name if they have one."""
    try:
        return json.dumps(data, default=plain, allow_nan=False)
    except ValueError as error:
        for point in data if isinstance(data, list) else [data]:
            for name, value in point.items() if isinstance(point, Mapping) else ():
                value = plain(value)
                if isinstance(value, float) and not math.isfinite(value):
                    raise ValueError(f"parameter {name!r}: {value} is not finite") from None
        raise ValueError(f"a number is not finite ({error})") from None


@dataclass(frozen=True)
class Real:
    """Real numbers from `low` to `high`.

    `log`: equal ratios, not equal differences, are equally far apart. `step`: only `low`, `low + step`, and so on.
    `default`: the value in the first trial. `condition`: the parameter has a value only where this holds, as in
    ``'mode == "fast"'``.

    >>> Real(1e-5, 1.0, log=True, default=0.01)
    Real(low=1e-05, high=1.0, log=True, step=None, default=0.01, condition=None)
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    default: float | None = None
    condition: str | None = None

    def _data(self) -> dict[str, Any]:
        data: dict[str, Any] = {"type": "real", "low": float(self.low), "high": float(self.high), "log": self.log}
        if self.step is not None:
            data["step"] = float(self.step)
        return data


@dataclass(frozen=True)
class Integer:
    """The integers `low`, `low + step`, … up to `high`."""

    low: int
    high: int
    step: int = 1
    log: bool = False
    default: int | None = None
    condition: str | None = None

    def _data(self) -> dict[str, Any]:
        return {"type": "integer", "low": self.low, "high": self.high, "step": self.step, "log": self.log}


@dataclass(frozen=True)
class Ordinal:
    """Numbers or words in an order; only the order matters."""

    levels: Sequence[Value]
    default: Value | None = None
    condition: str | None = None

    def _data(self) -> dict[str, Any]:
        return {"type": "ordinal", "levels": list(self.levels)}


@dataclass(frozen=True)
class Categorical:
    """Words, numbers or truth values without an order."""

    choices: Sequence[Value]
    default: Value | None = None
    condition: str | None = None

    def _data(self) -> dict[str, Any]:
        return {"type": "categorical", "choices": list(self.choices)}


@dataclass(frozen=True)
class Boolean:
    """False or true."""

    default: bool | None = None
    condition: str | None = None

    def _data(self) -> dict[str, Any]:
        return {"type": "boolean"}


Parameter = Union[Real, Integer, Ordinal, Categorical, Boolean]


@dataclass(frozen=True)
class Space:
    """Parameters that make sense together.

    Made from a dictionary. A value of it may be a :class:`Real` and so on, a pair of numbers (two integers are an integer
    range, otherwise a real one), a list (choices), ``bool``, a dictionary as in a study file, or an Optuna distribution. A
    ConfigSpace object is taken as a whole.

    >>> space = Space({"rate": Real(1e-4, 1, log=True), "layers": (1, 8), "mode": ["a", "b"], "cache": bool})
    >>> space.names
    ['rate', 'layers', 'mode', 'cache']
    """

    parameters: Any
    forbidden: Sequence[str] = ()
    json: str = field(init=False, repr=False, compare=True, default="")
    _names: tuple[str, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        parameters, forbidden = _parameters(self.parameters)
        for parameter in parameters:
            _check(parameter)
        if isinstance(self.forbidden, str):
            raise TypeError(f"forbidden is the text {self.forbidden!r}; write a list of conditions")
        text = dumps({"parameters": parameters, "forbidden": [*forbidden, *self.forbidden]})
        object.__setattr__(self, "json", _native.space(text))
        object.__setattr__(self, "_names", tuple(one["name"] for one in json.loads(self.json)["parameters"]))

    @property
    def names(self) -> list[str]:
        """The names of the parameters, in their order."""
        return list(self._names)

    def _ordered(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Values in the order of the parameters."""
        return {name: params[name] for name in self._names if name in params}

    def __len__(self) -> int:
        return len(self._names)


def as_space(space: Any) -> Space:
    """The space that is meant."""
    return space if isinstance(space, Space) else Space(space)


def _parameters(space: Any) -> tuple[list[dict[str, Any]], list[str]]:
    if hasattr(space, "to_serialized_dict"):
        return _from_configspace(space)
    if not isinstance(space, Mapping):
        raise TypeError(
            f"a space is a dictionary from names to ranges, such as {{'x': (0.0, 1.0)}}, not {type(space).__name__}"
        )
    if not space:
        raise ValueError("the space has no parameters")
    return [_parameter(name, what) for name, what in space.items()], []


def _check(parameter: Mapping[str, Any]) -> None:
    """A parameter alone, so that what is wrong in it is said with its name. Conditions on others are looked at later."""
    alone = {key: value for key, value in parameter.items() if key != "condition"}
    name = str(parameter["name"])
    try:
        _native.space(dumps({"parameters": [alone], "forbidden": []}))
        if isinstance(condition := parameter.get("condition"), str):
            # Whatever it says of other parameters: here only how it is written.
            _native.space(dumps({"parameters": [{**alone, "condition": condition}], "forbidden": []}))
    except (TypeError, ValueError) as error:
        text = str(error).removeprefix("space: ")
        if f'"{name}"' in text or not name:
            return
        raise type(error)(f"parameter {name!r}: {text}") from None


def _parameter(name: Any, what: Any) -> dict[str, Any]:
    if not isinstance(name, str):
        raise TypeError(f"the name {name!r} is not text")
    if isinstance(what, (Real, Integer, Ordinal, Categorical, Boolean)):
        if isinstance(what, (Ordinal, Categorical)):
            values = what.levels if isinstance(what, Ordinal) else what.choices
            if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
                raise TypeError(f"parameter {name!r}: {values!r} is no list of values")
        try:
            data = what._data()
        except (TypeError, ValueError) as error:
            raise type(error)(f"parameter {name!r}: {error}") from None
        for key in ("default", "condition"):
            value = getattr(what, key)
            if value is not None:
                data[key] = plain(value)
        return {"name": name, **data}
    if what is bool:
        return {"name": name, "type": "boolean"}
    if isinstance(what, Mapping):
        return {"name": name, **what}
    if hasattr(what, "_asdict") and type(what).__name__.endswith("Distribution"):
        return {"name": name, **_from_optuna(name, what)}
    if isinstance(what, tuple) and len(what) == 2 and all(_is_number(end) for end in what):
        low, high = (plain(end) for end in what)
        if isinstance(low, int) and isinstance(high, int):
            return {"name": name, "type": "integer", "low": low, "high": high}
        return {"name": name, "type": "real", "low": _finite(name, low), "high": _finite(name, high)}
    if isinstance(what, (set, frozenset)):
        raise TypeError(f"parameter {name!r}: a set has no order, so runs could not be repeated; write a list")
    if isinstance(what, Iterable) and not isinstance(what, (str, bytes)):
        return {"name": name, "type": "categorical", "choices": [plain(choice) for choice in what]}
    raise TypeError(
        f"parameter {name!r}: {what!r} is no range; write (low, high), a list of choices, bool, or boscage.Real(...)"
    )


def _is_number(value: Any) -> bool:
    value = plain(value)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _finite(name: str, value: float) -> float:
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"parameter {name!r}: the bound {value} is not finite")
    return value


def _from_optuna(name: str, distribution: Any) -> dict[str, Any]:
    kind = type(distribution).__name__
    data = distribution._asdict()
    if kind == "CategoricalDistribution":
        choices = list(data["choices"])
        if sorted(map(str, choices)) == ["False", "True"] and all(isinstance(c, bool) for c in choices):
            return {"type": "boolean"}
        if any(not isinstance(plain(choice), (bool, int, float, str)) for choice in choices):
            raise ValueError(f"parameter {name!r}: choices must be numbers, text or truth values, not {choices!r}")
        return {"type": "categorical", "choices": [plain(choice) for choice in choices]}
    if kind == "IntDistribution":
        return {"type": "integer", "low": data["low"], "high": data["high"], "step": data["step"], "log": data["log"]}
    if kind == "FloatDistribution":
        result = {"type": "real", "low": data["low"], "high": data["high"], "log": data["log"]}
        return result if data["step"] is None else {**result, "step": data["step"]}
    raise ValueError(f"parameter {name!r}: {kind} is not known")


def _from_configspace(space: Any) -> tuple[list[dict[str, Any]], list[str]]:
    data = json.loads(_native.import_space(json.dumps(space.to_serialized_dict()), "configspace"))
    return data["parameters"], data.get("forbidden", [])
