from datetime import date
from typing import Annotated, Any

from pydantic import (
    UUID4,
    AfterValidator,
    AnyUrl,
    BaseModel,
    BeforeValidator,
    Field,
    HttpUrl,
    Json,
    PastDate,
    Secret,
    SecretStr,
    StringConstraints,
    conint,
)

from pegboard import Param
from pegboard._types.table import TypeTable
from tests.plugins.dataclasses.travel import arrive, is_refused_by_both, leave, schema, wrong


def is_even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


class TestClasses:
    def test_urls(self, types: TypeTable) -> None:
        assert schema(types, HttpUrl)["format"] == "uri"
        assert arrive(types, HttpUrl, "https://example.org/a") == HttpUrl("https://example.org/a")
        assert leave(types, list[AnyUrl], [AnyUrl("ftp://example.org")]) == ["ftp://example.org/"]
        assert wrong(types, HttpUrl, "ftp://example.org") == ["URL scheme should be 'http' or 'https'"]

    def test_secrets_are_never_shown(self, types: TypeTable) -> None:
        class Login(BaseModel):
            password: SecretStr = Field(min_length=8)

        secret = arrive(types, Login, {"password": "hunter2-hunter2"}).password
        assert secret.get_secret_value() == "hunter2-hunter2"
        assert schema(types, Login)["properties"]["password"]["writeOnly"] is True
        assert leave(types, SecretStr, secret) == "**********"
        (problem,) = wrong(types, Login, {"password": "hunter2"})
        assert problem.startswith("password: ")
        assert "hunter2" not in problem

    def test_subscripted_ones(self, types: TypeTable) -> None:
        assert arrive(types, Secret[int], 5).get_secret_value() == 5
        assert is_refused_by_both(types, Secret[int], "5")

    def test_dates_in_the_past(self, types: TypeTable) -> None:
        assert arrive(types, PastDate, "2024-01-02") == date(2024, 1, 2)
        assert is_refused_by_both(types, PastDate, 5)
        assert wrong(types, PastDate, "9999-01-01") == ["date should be in the past"]


class TestAnnotated:
    def test_bounds_need_no_pydantic(self, types: TypeTable) -> None:
        assert schema(types, conint(ge=1)) == {"type": "integer", "minimum": 1}
        assert is_refused_by_both(types, conint(ge=1), 0)

    def test_validators_run(self, types: TypeTable) -> None:
        annotation = Annotated[int, Field(ge=2), AfterValidator(is_even)]
        assert schema(types, annotation) == {"type": "integer", "minimum": 2}
        assert arrive(types, annotation, 4) == 4
        assert is_refused_by_both(types, annotation, 0)
        assert wrong(types, list[annotation], [4, 5]) == ["[1]: must be even"]

    def test_bounds_of_what_a_validator_returns_bound_no_input(self, types: TypeTable) -> None:
        annotation = Annotated[int, AfterValidator(lambda value: value * 2), Field(ge=4)]
        assert schema(types, annotation) == {"type": "integer"}
        assert arrive(types, annotation, 2) == 4
        assert wrong(types, annotation, 1) == ["input should be greater than or equal to 4"]

    def test_other_metadata_still_describes(self, types: TypeTable) -> None:
        annotation = Annotated[int, AfterValidator(is_even), Param("how many", examples=[2])]
        assert schema(types, annotation) == {"type": "integer", "description": "how many", "examples": [2]}

    def test_validators_before_do_not_widen_the_schema(self, types: TypeTable) -> None:
        annotation = Annotated[int, BeforeValidator(int)]
        assert arrive(types, annotation, 4) == 4
        assert is_refused_by_both(types, annotation, "4")

    def test_text_is_edited(self, types: TypeTable) -> None:
        assert arrive(types, Annotated[str, StringConstraints(strip_whitespace=True, to_upper=True)], " a ") == "A"

    def test_json_in_text(self, types: TypeTable) -> None:
        assert arrive(types, Json[list[int]], "[1]") == [1]
        assert is_refused_by_both(types, Json[list[int]], [1])
        assert wrong(types, Json[list[int]], '["a"]') != []

    def test_uuid_versions(self, types: TypeTable) -> None:
        four = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
        assert str(arrive(types, UUID4, four)) == four
        assert is_refused_by_both(types, UUID4, "f47ac10b-58cc-1372-a567-0e02b2c3d479")


class TestThirdParties:
    def test_a_class_that_only_speaks_to_pydantic(self, types: TypeTable) -> None:
        class Celsius:
            def __init__(self, degrees: float) -> None:
                self.degrees = degrees

            @classmethod
            def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
                from pydantic_core import core_schema

                return core_schema.json_or_python_schema(
                    json_schema=core_schema.no_info_after_validator_function(cls, core_schema.float_schema(ge=-273.15)),
                    python_schema=core_schema.is_instance_schema(cls),
                    serialization=core_schema.plain_serializer_function_ser_schema(lambda value: value.degrees),
                )

        assert arrive(types, list[Celsius], [20])[0].degrees == 20.0
        assert is_refused_by_both(types, Celsius, -300)
        assert leave(types, Celsius, Celsius(3.5)) == 3.5
