"""A plain FastMCP server under uvicorn, stateless with JSON answers; no sandbox, no key. Prints the port it listens on."""

import socket

import uvicorn
from fastmcp import FastMCP
from pydantic import BaseModel


class Doubled(BaseModel):
    doublePrice: float


# Doubling needs no thread of its own; FastMCP would start one per call.
server = FastMCP("prices")


@server.tool(run_in_thread=False)
def double_price(price: float) -> Doubled:
    """Doubles a price."""
    return Doubled(doublePrice=price * 2)


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
app = server.http_app(path="/mcp", stateless_http=True, json_response=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on")).run(sockets=[listener])
