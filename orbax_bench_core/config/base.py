"""Base model of the suite file's blocks."""

from __future__ import annotations

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema


class ConfigModel(pydantic.BaseModel):
    """A block of the suite file.

    Unknown keys and wrong types are errors: a misspelt key that is silently ignored measures
    something else than what its author believes.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)


class DescribedSchema(GenerateJsonSchema):
    """Adds to the schema of a class what its docstring says of it and of each field."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Returns the schema of a model."""
        return _described(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Returns the schema of a dataclass."""
        return _described(super().dataclass_schema(schema), schema["cls"])


def meanings(class_: type) -> dict[str, str]:
    """Returns what the docstrings of a class and its bases say of each attribute, in one line."""
    import docstring_parser

    found: dict[str, str] = {}
    for base in reversed(class_.__mro__):
        for parameter in docstring_parser.parse(base.__doc__ or "").params:
            found[parameter.arg_name] = " ".join((parameter.description or "").split())
    return found


def _described(schema: JsonSchemaValue, class_: type) -> JsonSchemaValue:
    import docstring_parser

    schema["description"] = docstring_parser.parse(class_.__doc__ or "").short_description
    known = meanings(class_)
    for name, field in schema.get("properties", {}).items():
        if name in known:
            field["description"] = known[name]
    return schema
