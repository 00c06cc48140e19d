"""Tasks: what this pack declares of them is what the SDK can do, which is nothing so far."""

import asyncio

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types.methods import SPEC_CLIENT_METHODS

from pegboard import Toolkit
from pegboard_mcp import mcp_server


def test_the_sdk_takes_no_method_of_tasks() -> None:
    """Where this fails, a release of the SDK has them: look at what it offers, and at `docs/packs/mcp.md`."""
    assert [method for method in SPEC_CLIENT_METHODS if method.startswith("tasks/")] == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_none_are_declared_and_none_are_taken(mode: str) -> None:
    async def main() -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(lambda: 1, name="one", description="One.")
            async with Client(mcp_server(toolkit, all_tools=True), mode=mode) as client:
                declared = client.server_capabilities
                assert not any([declared.tasks, declared.extensions, declared.experimental])
                (tool,) = (await client.list_tools()).tools
                assert tool.execution is None
                with pytest.raises(MCPError) as refused:
                    await client.session.send_request(
                        types.GetTaskRequest(params=types.GetTaskRequestParams(task_id="1")), types.GetTaskResult
                    )
                assert refused.value.code == types.METHOD_NOT_FOUND

    asyncio.run(main())
