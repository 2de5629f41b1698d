"""How values of the library stand in fields of pydantic models."""

from __future__ import annotations

from typing import Any


def core_schema(cls: Any) -> Any:
    """Return the schema of a class with `to_dict` and `from_dict`.

    Instances pass through uncopied, dictionaries in the form of `to_dict` are read, and JSON holds that form. What
    cannot be read is an error of its field.
    """
    from pydantic_core import core_schema as schemas  # noqa: PLC0415 - only users of pydantic need it

    def from_dict(data: dict[str, Any]) -> Any:
        try:
            return cls.from_dict(data)
        except TypeError as error:  # pydantic reports only ValueErrors as those of a field
            raise ValueError(str(error)) from error

    read = schemas.no_info_after_validator_function(from_dict, schemas.dict_schema())
    return schemas.json_or_python_schema(
        json_schema=read,
        python_schema=schemas.union_schema([schemas.is_instance_schema(cls), read]),
        serialization=schemas.plain_serializer_function_ser_schema(
            lambda value: value.to_dict(), when_used="json", return_schema=schemas.dict_schema()
        ),
    )
