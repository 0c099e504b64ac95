"""The tables that explain the results file: made from the models' own descriptions. Pure."""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from arena.results import ResultsFile


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the results file."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class Table:
    """A part of the results file and its fields."""

    name: str
    about: str
    fields: tuple[Field, ...]


def tables() -> tuple[Table, ...]:
    """Return a table for each model of a results file, in the order in which they are met."""
    found: dict[type[BaseModel], Table] = {}
    waiting: list[type[BaseModel]] = [ResultsFile]
    while waiting:
        model = waiting.pop(0)
        if model in found:
            continue
        fields = []
        for name, info in model.model_fields.items():
            fields.append(Field(info.alias or name, said(info.annotation), info.description or ""))
            waiting.extend(_models(info.annotation))
        found[model] = Table(model.__name__, (model.__doc__ or "").strip(), tuple(fields))
    return tuple(found.values())


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


def said(annotation: Any) -> str:
    """Return a type in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is type(None):
        return "null"
    if annotation is Any:
        return "any value"
    if origin is Literal:
        return " | ".join(f'"{a}"' if isinstance(a, str) else str(a) for a in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(said(a) for a in arguments)
    if origin in (tuple, list):
        if origin is list or (len(arguments) == 2 and arguments[1] is Ellipsis):
            return f"list of {said(arguments[0])}"
        return f"[{', '.join(said(a) for a in arguments)}]"
    if origin is dict:
        return f"object of {said(arguments[1])} by name"
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))
