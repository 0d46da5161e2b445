"""Asks `jitterscope mcp` through the protocol's own client: python mcp_client.py CALLS PROGRAM ARGUMENT...

CALLS is a JSON list of [tool, arguments]. Prints a JSON object: the server, its tools, and the answers.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    calls, program, *args = sys.argv[1:]
    server = StdioServerParameters(command=program, args=args)
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            greeting = await session.initialize()
            await session.send_ping()
            tools = await session.list_tools()
            answers = []
            for tool, arguments in json.loads(calls):
                answer = await session.call_tool(tool, arguments)
                texts = [part.text for part in answer.content]
                answers.append({"error": answer.isError, "text": "".join(texts)})
            print(json.dumps({
                "server": greeting.serverInfo.name,
                "version": greeting.protocolVersion,
                "tools": [[tool.name, tool.annotations.readOnlyHint, tool.inputSchema] for tool in tools.tools],
                "answers": answers,
            }))


asyncio.run(main())
