"""The Python client 1.x. Usage: python_v1.py URL, with KEY and perhaps AGGREGATE_URL set."""

import os
import sys
from datetime import timedelta

import anyio
from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import CancelledNotification, CancelledNotificationParams, ClientNotification
from pydantic import AnyUrl

TOOLS = {"double_price", "count", "wait", "waits"}
HEADERS = {"Authorization": f"Bearer {os.environ['KEY']}"}


async def bad_argument(session):
    """The answer is an error, of the tool or of the protocol, that names what is wrong."""
    try:
        result = await session.call_tool("double_price", {"price": "much"})
    except McpError as error:
        said = str(error)
    else:
        assert result.isError, result
        said = result.content[0].text
    assert "price" in said, said


async def progress(session):
    seen = []

    async def on_progress(done, total, message):
        seen.append((done, total, message))

    result = await session.call_tool("count", {"to": 3, "pause_ms": 100}, progress_callback=on_progress)
    assert result.structuredContent == {"counted": 3}, result
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")], seen


async def cancel(session):
    async with anyio.create_task_group() as group:
        group.start_soon(session.call_tool, "wait", {"ms": 20_000, "name": "python-1"})
        await anyio.sleep(0.5)
        # This client has no call for it: the notification is sent by hand, for the request sent last.
        params = CancelledNotificationParams(requestId=session._request_id - 1, reason="enough")
        await session.send_notification(
            ClientNotification(CancelledNotification(method="notifications/cancelled", params=params))
        )
        group.cancel_scope.cancel()
    with anyio.fail_after(5):
        while True:
            result = await session.call_tool("waits", {"name": "python-1"})
            if result.structuredContent["cancelled"] == 1:
                return
            await anyio.sleep(0.05)


async def timeout(session):
    wait = {"ms": 20_000, "name": "python-1-timeout"}
    try:
        await session.call_tool("wait", wait, read_timeout_seconds=timedelta(milliseconds=300))
    except McpError:
        return
    raise AssertionError("no timeout")


async def everything(session):
    tools = {tool.name for tool in (await session.list_tools()).tools}
    assert TOOLS <= tools, tools
    result = await session.call_tool("double_price", {"price": 45})
    assert not result.isError and result.structuredContent == {"doublePrice": 90}, result
    await bad_argument(session)
    contents = (await session.read_resource(AnyUrl("notes://today"))).contents
    assert contents[0].text == "Buy milk.", contents
    prompt = await session.get_prompt("greet", {"who": "Ada"})
    assert prompt.messages[0].content.text == "Greet Ada.", prompt
    await progress(session)
    await cancel(session)
    await timeout(session)


async def aggregate(session):
    result = await session.call_tool("clients__double_price", {"price": 45})
    assert result.structuredContent == {"doublePrice": 90}, result


async def within(url, steps):
    async with streamablehttp_client(url, headers=HEADERS) as (read, write, _), ClientSession(read, write) as session:
        version = (await session.initialize()).protocolVersion
        assert version == "2025-11-25", version
        await steps(session)


async def main():
    with anyio.fail_after(100):
        await within(sys.argv[1], everything)
        if url := os.environ.get("AGGREGATE_URL"):
            await within(url, aggregate)


anyio.run(main)
