"""Spaces: parameters by name, in any of the forms that people already have."""

from __future__ import annotations

import json
import math
import reprlib
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


def _known(value: Any) -> Any:
    """What JSON does not know itself: a number of NumPy's as Python's."""
    converted = plain(value)
    if converted is value or not isinstance(converted, (bool, int, float, str)):
        raise TypeError(f"{reprlib.repr(value)} is not a number, text or truth value")
    return converted


def dumps(data: Any) -> str:
    """JSON, with NumPy's numbers as Python's; numbers that are not finite and what JSON does not know are refused."""
    try:
        return json.dumps(data, default=_known, allow_nan=False)
    except (RecursionError, ValueError) as error:
        if isinstance(error, RecursionError) or "Circular" in str(error):
            raise TypeError(f"{reprlib.repr(data)} contains itself, or too much") from None
        raise ValueError(f"a number is not finite ({error})") from None


def point_json(point: Mapping[str, Any]) -> str:
    """A point as JSON; what is wrong in it is said with the parameter's name."""
    point = dict(point)
    try:
        return dumps(point)
    except (TypeError, ValueError):
        for name, value in point.items():
            if not isinstance(name, str):
                raise TypeError(f"the name {name!r} is not text") from None
            try:
                dumps(value)
            except TypeError:
                raise TypeError(
                    f"parameter {name!r}: {reprlib.repr(value)} is not a number, text or truth value"
                ) from None
            except ValueError:
                raise ValueError(f"parameter {name!r}: {reprlib.repr(plain(value))} is not finite") from None
        raise


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
    """The integers `low`, `low + step`, … up to `high`.

    `log`, `default` and `condition` as in :class:`Real`.

    >>> Integer(16, 256, step=16, default=64).high
    256
    """

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
    """Numbers or words in an order; only the order matters.

    `default`: the level in the first trial. `condition`: it has a value only where this holds, as in :class:`Real`.
    """

    levels: Sequence[Value]
    default: Value | None = None
    condition: str | None = None

    def _data(self) -> dict[str, Any]:
        return {"type": "ordinal", "levels": list(self.levels)}


@dataclass(frozen=True)
class Categorical:
    """Words, numbers or truth values without an order.

    `default`: the choice in the first trial. `condition`: it has a value only where this holds, as in :class:`Real`.
    """

    choices: Sequence[Value]
    default: Value | None = None
    condition: str | None = None

    def _data(self) -> dict[str, Any]:
        return {"type": "categorical", "choices": list(self.choices)}


@dataclass(frozen=True)
class Boolean:
    """False or true.

    `default`: the value in the first trial. `condition`: it has a value only where this holds, as in :class:`Real`.
    """

    default: bool | None = None
    condition: str | None = None

    def _data(self) -> dict[str, Any]:
        return {"type": "boolean"}


Parameter = Union[Real, Integer, Ordinal, Categorical, Boolean]


@dataclass(frozen=True)
class Space:
    """Parameters that make sense together.

    Made from a dictionary. A value of it may be a :class:`Real` and so on, a pair of numbers (two integers are an integer
    range, otherwise a real one), a list (choices; two real numbers only as :class:`Categorical`, since a range may be meant),
    ``bool``, a dictionary as in a study file, or an Optuna distribution. A ConfigSpace object is taken as a whole.

    >>> space = Space({"rate": Real(1e-4, 1, log=True), "layers": (1, 8), "mode": ["a", "b"], "cache": bool})
    >>> space.names
    ['rate', 'layers', 'mode', 'cache']
    """

    parameters: Any
    forbidden: Sequence[str] = ()
    json: str = field(init=False, repr=False, compare=True, default="")
    _data: Mapping[str, Mapping[str, Any]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        parameters, forbidden = _parameters(self.parameters)
        for parameter in parameters:
            _check(parameter)
        if isinstance(self.forbidden, str):
            raise TypeError(f"forbidden is the text {self.forbidden!r}; write a list of conditions")
        text = dumps({"parameters": parameters, "forbidden": [*forbidden, *self.forbidden]})
        object.__setattr__(self, "json", _native.space(text))
        object.__setattr__(self, "_data", {one["name"]: one for one in json.loads(self.json)["parameters"]})

    @property
    def names(self) -> list[str]:
        """The names of the parameters, in their order."""
        return list(self._data)

    def _ordered(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Values in the order of the parameters."""
        return {name: params[name] for name in self._data if name in params}

    def _given(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """A point without NaN for parameters that have a condition: so data frames say that there is no value."""
        return {name: value for name, value in params.items() if not (_is_nan(value) and self._is_conditional(name))}

    def _is_conditional(self, name: Any) -> bool:
        return isinstance(name, str) and "condition" in self._data.get(name, ())

    def _is_near(self, point: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
        """Whether a point is another one but for rounding, to single precision or to six digits of the range."""
        for name, value in asked.items():
            if name not in point or not _is_close(self._data[name], plain(point[name]), value):
                return False
        # More than was asked for may be there only if it counts for nothing.
        return all(name in asked or self._is_conditional(name) for name in point)

    def __len__(self) -> int:
        return len(self._data)


def _is_nan(value: Any) -> bool:
    value = plain(value)
    return isinstance(value, float) and math.isnan(value)


def _is_close(parameter: Mapping[str, Any], one: Any, other: Any) -> bool:
    if not _is_number(one) or not _is_number(other):
        return type(one) is type(other) and bool(one == other)
    if one == other or parameter["type"] == "integer":
        return bool(one == other)
    try:
        one = float(one)
    except OverflowError:
        return False
    if not math.isfinite(one):
        return False
    if parameter["type"] != "real":
        return math.isclose(one, other, rel_tol=1e-6)
    low, high = parameter["low"], parameter["high"]
    # The last is half a unit of single precision.
    if parameter.get("log"):
        return one > 0 and abs(math.log(one) - math.log(other)) <= max(1e-6 * (math.log(high) - math.log(low)), 6e-8)
    return bool(abs(one / 2 - other / 2) <= max(1e-6 * (high / 2 - low / 2), 3e-8 * abs(other)))


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
    data = _described(name, what)
    condition = data.get("condition")
    if condition is not None and not isinstance(condition, str):
        raise TypeError(f"parameter {name!r}: the condition {condition!r} is not text; write it as in 'mode == \"fast\"'")
    if data.get("type") == "integer":
        for key in ("low", "high", "step"):
            if key in data:
                data[key] = _whole(name, "the step" if key == "step" else "the bound", data[key])
    return data


def _whole(name: str, what: str, value: Any) -> int:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"parameter {name!r}: {what} {value!r} is not an integer; Real is for real numbers")
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"parameter {name!r}: {what} {reprlib.repr(value)} is beyond integers of 64 bits; Real may be used")
    return value


def _described(name: str, what: Any) -> dict[str, Any]:
    if isinstance(what, (Real, Integer, Ordinal, Categorical, Boolean)):
        if isinstance(what, (Ordinal, Categorical)):
            values = what.levels if isinstance(what, Ordinal) else what.choices
            if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
                raise TypeError(f"parameter {name!r}: {values!r} is no list of values")
        try:
            data = what._data()
        except (TypeError, ValueError) as error:
            raise type(error)(f"parameter {name!r}: {error}") from None
        except OverflowError:
            raise ValueError(f"parameter {name!r}: a bound or the step is beyond numbers of 64 bits") from None
        for key in ("default", "condition"):
            value = getattr(what, key)
            if value is not None:
                data[key] = plain(value)
        return {"name": name, **data}
    if what is bool:
        return {"name": name, "type": "boolean"}
    if isinstance(what, Mapping):
        if plain(what.get("name", name)) != name:
            raise ValueError(f"parameter {name!r}: its dictionary has the name {what['name']!r}; leave that out")
        return {"name": name, **what}
    if hasattr(what, "_asdict") and type(what).__name__.endswith("Distribution"):
        return {"name": name, **_from_optuna(name, what)}
    if isinstance(what, tuple) and len(what) >= 2 and all(_is_number(end) for end in what[:2]):
        low, high = (plain(end) for end in what[:2])
        whole = isinstance(low, int) and isinstance(high, int)
        if len(what) > 2 and any(isinstance(plain(more), (str, bool)) for more in what[2:]):
            kind = "Integer" if whole else "Real"
            raise TypeError(
                f"parameter {name!r}: {what!r} is no range; write {kind}({low}, {high}, log=True) for a log scale, "
                f"Categorical({list(what)!r}) for choices"
            )
        if len(what) == 2 and whole:
            return {"name": name, "type": "integer", "low": low, "high": high}
        if len(what) == 2:
            return {"name": name, "type": "real", "low": _finite(name, low), "high": _finite(name, high)}
    if isinstance(what, (set, frozenset)):
        raise TypeError(f"parameter {name!r}: a set has no order, so runs could not be repeated; write a list")
    if isinstance(what, Iterable) and not isinstance(what, (str, bytes)):
        choices = [plain(choice) for choice in what]
        if len(choices) == 2 and all(isinstance(choice, float) for choice in choices):
            low, high = choices
            raise TypeError(
                f"parameter {name!r}: {choices} may be a range or two choices; "
                f"write ({low}, {high}) for a range, Categorical([{low}, {high}]) for two choices"
            )
        return {"name": name, "type": "categorical", "choices": choices}
    raise TypeError(
        f"parameter {name!r}: {what!r} is no range; write (low, high), a list of choices, bool, or boscage.Real(...)"
    )


def _is_number(value: Any) -> bool:
    value = plain(value)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _finite(name: str, value: float) -> float:
    try:
        value = float(value)
    except OverflowError:
        raise ValueError(f"parameter {name!r}: the bound {reprlib.repr(value)} is beyond numbers of 64 bits") from None
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
