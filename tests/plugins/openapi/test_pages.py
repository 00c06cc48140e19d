"""Pages: a description says how the next one is requested, as far as the document says it."""

from typing import Any

import pytest

from tests.plugins.openapi.api import answering, board, one, parameter

INTEGER = {"type": "integer"}
NEXT = "For the next page send"
SIZE = parameter("per_page", schema=INTEGER)
SECRET = {"components": {"securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "cursor"}}}}


def answer(**members: Any) -> Any:
    return answering({"type": "object", "properties": members})


def linked() -> Any:
    return {"200": {"description": "It.", "headers": {"LINK": {"schema": {"type": "string"}}}}}


def text_of(document: Any, **options: Any) -> str:
    with board(document, **options) as toolkit:
        text: str = toolkit["do"].description
        return text.removeprefix("Do it.").strip()


@pytest.mark.parametrize(
    ("parameters", "responses", "text"),
    [
        ([parameter("page", schema=INTEGER)], {}, "For the next page send the next `page`."),
        (
            [parameter("page", schema=INTEGER), SIZE],
            linked(),
            f"{NEXT} the next `page`, which the Link header of the answer names; `per_page` is the size of a page.",
        ),
        ([], linked(), "The Link header of the answer names the next page."),
        (
            [parameter("pageToken"), parameter("maxResults", schema=INTEGER)],
            answer(nextPageToken={"type": "string"}, items={"type": "array"}),
            f"{NEXT} `pageToken`, which is `nextPageToken` of the answer; `maxResults` is the size of a page.",
        ),
        (
            [parameter("cursor", schema={"anyOf": [{"type": "string"}, {"type": "null"}]})],
            answer(response_metadata={"type": "object", "properties": {"next_cursor": {"type": "string"}}}),
            "For the next page send `cursor`, which is `response_metadata.next_cursor` of the answer.",
        ),
        (
            [parameter("offset", schema=INTEGER), parameter("limit", schema=INTEGER)],
            answer(has_more={"type": "boolean"}),
            (
                f"{NEXT} a higher `offset`; `has_more` of the answer says whether there is one; "
                "`limit` is the size of a page."
            ),
        ),
        ([parameter("after"), SIZE], {}, "For the next page send `after`; `per_page` is the size of a page."),
    ],
    ids=["page", "page and link", "link", "token", "nested cursor", "offset", "after"],
)
def test_are_told(parameters: Any, responses: Any, text: str) -> None:
    assert text_of(one(parameters=parameters, responses=responses)) == text


@pytest.mark.parametrize(
    "parameters",
    [
        [],
        [SIZE],
        [parameter("after", schema={"type": "string", "format": "date"})],  # a date as long as no page has a size
        [parameter("page")],  # the name of one
        [parameter("page", "header", INTEGER)],
        [parameter("cursor", schema=INTEGER)],
        [parameter("homepage", schema=INTEGER)],
    ],
)
def test_nothing_is_said_of_what_the_document_does_not_say(parameters: Any) -> None:
    assert text_of(one(parameters=parameters, responses=answer(next={"type": "string"}))) == ""


def test_the_argument_is_named_and_what_the_model_does_not_send_is_not() -> None:
    parameters = [parameter("page", "path", INTEGER), parameter("page", schema=INTEGER)]
    assert text_of(one(path="/{page}", parameters=parameters)) == "For the next page send the next `query_page`."
    hidden = one(parameters=[parameter("cursor")], more={**SECRET, "security": [{"key": []}]})
    assert text_of(hidden, api_key="made-up") == ""


def test_fields_are_found_in_branches_of_an_answer() -> None:
    both = {"allOf": [{"$ref": "#/components/schemas/Page"}, {"properties": {"items": {"type": "array"}}}]}
    more = {"components": {"schemas": {"Page": {"allOf": [{"properties": {"next_page": INTEGER}}]}}}}
    document = one(parameters=[parameter("page", schema=INTEGER)], responses=answering(both), more=more)
    assert text_of(document) == "For the next page send the next `page`, which is `next_page` of the answer."


@pytest.mark.parametrize(
    "responses",
    [
        {"200": {"$ref": "#/none"}},
        {"200": {"content": {"application/json": 7}}},
        {"200": {"headers": 7}},
        answering({"properties": 7, "allOf": 7}),
        answering({"$ref": "#/paths/~1things/get/responses/200/content/application~1json/schema"}),
        7,
    ],
)
def test_what_is_wrong_there_costs_nothing(responses: Any) -> None:
    assert text_of(one(parameters=[SIZE], responses=responses)) == ""


def test_a_long_description_gives_room_to_it() -> None:
    document = one(parameters=[parameter("page", schema=INTEGER)], summary="Words. " * 300)
    text = text_of(document)
    assert len(text) == 1_024
    assert text.endswith("...\n\nFor the next page send the next `page`.")
