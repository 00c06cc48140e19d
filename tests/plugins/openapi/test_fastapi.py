"""An application in this process: its operations are tools, and no server is started."""

from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from pegboard import ImageBlock, Status, Toolkit
from pegboard_openapi import OpenApi

pytest.importorskip("fastapi")

import fastapi
import fastapi.security
import pydantic


class Item(pydantic.BaseModel):
    name: str
    price: float = pydantic.Field(gt=0)
    tags: list[str] = pydantic.Field(default=[])


class Stored(Item):
    id: int


def application() -> Any:
    app = fastapi.FastAPI(title="Shop")
    stored: dict[int, Stored] = {}
    bearer = fastapi.security.HTTPBearer()

    @app.post("/items", status_code=201)
    async def add_item(item: Item) -> Stored:
        """Add an item."""
        number = len(stored) + 1
        stored[number] = Stored(id=number, **item.model_dump())
        return stored[number]

    @app.get("/items/{item_id}")
    def get_item(item_id: int, tag: Annotated[list[str] | None, fastapi.Query()] = None) -> Stored | None:
        found = stored.get(item_id)
        if found is None:
            raise fastapi.HTTPException(404, "no such item")
        return None if tag and not set(tag) & set(found.tags) else found

    @app.delete("/items/{item_id}", status_code=204)
    def delete_item(item_id: int) -> None:
        del stored[item_id]

    @app.get("/me", tags=["private"])
    def me(who: Annotated[Any, fastapi.Depends(bearer)]) -> str:
        return f"token of {len(who.credentials)} characters"

    @app.get("/picture", response_class=fastapi.Response)
    def picture() -> Any:
        return fastapi.Response(b"\x89PNG\r\n\x1a\nrest", media_type="image/png")

    @app.get("/broken")
    def broken() -> str:
        raise RuntimeError("the reason is for the log")

    @app.get("/files/{path:path}")
    def file(path: str) -> str:
        return path

    return app


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        made.register(OpenApi(application(), token="made-up-token", slashes=["path"]))
        yield made


def test_operations_are_tools(toolkit: Toolkit) -> None:
    assert toolkit.problems == []
    tool = toolkit["add_item_items_post"]
    assert tool.description == "Add Item\n\nAdd an item."
    assert list(tool.parameters["properties"]) == ["name", "price", "tags"]
    assert tool.parameters["required"] == ["name", "price"]
    assert tool.hints.open_world is False


def test_calls_reach_the_application(toolkit: Toolkit) -> None:
    added = toolkit.call_sync("add_item_items_post", {"name": "hat", "price": 3, "tags": ["new"]})
    assert added.data == {"name": "hat", "price": 3.0, "tags": ["new"], "id": 1}
    assert toolkit.call_sync("get_item_items__item_id__get", {"item_id": 1, "tag": ["old", "new"]}).data["id"] == 1
    assert toolkit.call_sync("get_item_items__item_id__get", {"item_id": 1, "tag": ["old"]}).data is None
    assert toolkit.call_sync("delete_item_items__item_id__delete", {"item_id": 1}).text == "null"
    gone = toolkit.call_sync("get_item_items__item_id__get", {"item_id": 1})
    assert gone.text == 'GET /items/{item_id} answered 404 Not Found: {"detail":"no such item"}'


def test_what_is_wrong_does_not_reach_it(toolkit: Toolkit) -> None:
    assert toolkit.call_sync("add_item_items_post", {"name": "hat", "price": 0}).status is Status.INVALID


def test_other_answers(toolkit: Toolkit) -> None:
    assert toolkit.call_sync("me_me_get").data == "token of 13 characters"
    assert isinstance(toolkit.call_sync("picture_picture_get").content[0], ImageBlock)
    broken = toolkit.call_sync("broken_broken_get")
    assert (broken.status, "500" in broken.text, "the reason" in broken.text) == (Status.ERROR, True, False)


def test_a_slash_in_an_argument_is_no_other_path(toolkit: Toolkit) -> None:
    assert toolkit.call_sync("file_files__path__get", {"path": "a/b"}).data == "a/b"  # the program says that it may
    assert toolkit.call_sync("get_item_items__item_id__get", {"item_id": "1/../../me"}).status is not Status.SUCCESS


@pytest.mark.parametrize("value", ["1/delete/", "1/delete", "1%2Fdelete/", "../me", "1/delete/?x", "/1/delete/"])
def test_a_slash_reaches_no_route_that_the_document_does_not_have(value: str) -> None:
    app = fastapi.FastAPI()

    @app.get("/notes/{note_id}", operation_id="note")
    def note(note_id: str) -> str:
        return f"note {note_id}"

    @app.get("/notes/{note_id}/delete/", include_in_schema=False)
    def delete_note(note_id: str) -> str:
        return f"deleted {note_id}"

    with Toolkit(plugins=()) as toolkit:
        toolkit.register(OpenApi(app))
        assert toolkit.call_sync("note", {"note_id": value}).status is Status.INVALID
        assert toolkit.call_sync("note", {"note_id": "1?delete#"}).data == "note 1?delete#"


def test_any_application_with_a_document() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b'"%s"' % scope["raw_path"]})

    document = {"openapi": "3.1.0", "paths": {"/hello": {"get": {"operationId": "hello", "responses": {}}}}}
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(OpenApi(document, app=app))
        assert toolkit.call_sync("hello").data == "/hello"
