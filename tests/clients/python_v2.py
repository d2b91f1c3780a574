"""The Python client 2.x. Usage: python_v2.py URL MODE   (MODE: auto, legacy), with KEY and perhaps AGGREGATE_URL set."""

import os
import sys

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
TOOLS = {"double_price", "count", "wait", "waits"}


def connect(http, url, mode):
    return Client(streamable_http_client(url, http_client=http), mode=mode)


async def bad_argument(client):
    """The answer is an error, of the tool or of the protocol, that names what is wrong."""
    try:
        result = await client.call_tool("double_price", {"price": "much"})
    except MCPError as error:
        said = str(error)
    else:
        assert result.is_error, result
        said = result.content[0].text
    assert "price" in said, said


async def progress(client):
    seen = []

    async def on_progress(done, total, message):
        seen.append((done, total, message))

    result = await client.call_tool("count", {"to": 3, "pause_ms": 100}, progress_callback=on_progress)
    assert result.structured_content == {"counted": 3}, result
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")], seen


async def cancel(client, name):
    with anyio.move_on_after(0.5) as scope:
        await client.call_tool("wait", {"ms": 20_000, "name": name})
    assert scope.cancelled_caught, "the wait ended by itself"
    with anyio.fail_after(5):
        while True:
            result = await client.call_tool("waits", {"name": name})
            if result.structured_content["cancelled"] == 1:
                return
            await anyio.sleep(0.05)


async def timeout(client, name):
    try:
        await client.call_tool("wait", {"ms": 20_000, "name": f"{name}-timeout"}, read_timeout_seconds=0.3)
    except MCPError:
        return
    raise AssertionError("no timeout")


async def everything(url, mode):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {os.environ['KEY']}"}, timeout=30) as http:
        async with connect(http, url, mode) as client:
            assert client.protocol_version == VERSIONS[mode], client.protocol_version
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert TOOLS <= tools, tools
            result = await client.call_tool("double_price", {"price": 45})
            assert not result.is_error and result.structured_content == {"doublePrice": 90}, result
            await bad_argument(client)
            contents = (await client.read_resource("notes://today")).contents
            assert contents[0].text == "Buy milk.", contents
            prompt = await client.get_prompt("greet", {"who": "Ada"})
            assert prompt.messages[0].content.text == "Greet Ada.", prompt
            await progress(client)
            await cancel(client, f"python-2-{mode}")
            await timeout(client, f"python-2-{mode}")
        if aggregate := os.environ.get("AGGREGATE_URL"):
            async with connect(http, aggregate, mode) as client:
                result = await client.call_tool("clients__double_price", {"price": 45})
                assert result.structured_content == {"doublePrice": 90}, result


async def main():
    with anyio.fail_after(100):
        await everything(sys.argv[1], sys.argv[2])


anyio.run(main)
