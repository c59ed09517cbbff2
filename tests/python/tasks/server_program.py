"""A server of aiohttp and its clients, on loopback, under load; or asyncio's streams. Records itself which task runs
where, and the answers, in a JSON file.

usage: server_program.py asyncio|uvloop aiohttp|streams CLIENTS REQUESTS TRUTH
"""
import asyncio
import json
import os
import sys

from task_programs import stamp, truth

if os.environ.get("KPT_GREENLETS"):
    sys.path.append(os.environ["KPT_GREENLETS"])

handled = []
answered = []


async def work(question):
    """The body of a handler: waits, then continues."""
    stamp()
    await asyncio.sleep(0.001)
    stamp()
    handled.append(question)
    return f"answer to {question}"


class Http:
    """aiohttp on both sides; each connection is a task of the server."""

    async def __aenter__(self):
        from aiohttp import ClientSession, web

        async def handle(request):
            body = await request.text()
            return web.Response(text=await work(body))

        app = web.Application()
        app.router.add_post("/", handle)
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.url = "http://127.0.0.1:%d/" % self.runner.addresses[0][1]
        self.session = ClientSession()
        return self

    async def ask(self, questions):
        for question in questions:
            async with self.session.post(self.url, data=question) as response:
                stamp()
                answered.append(await response.text())
                stamp()

    async def __aexit__(self, *exception):
        await self.session.close()
        await self.runner.cleanup()


class Streams:
    """The same with asyncio's own streams, line by line."""

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return self

    async def serve(self, reader, writer):
        while line := await reader.readline():
            writer.write(((await work(line.decode().strip())) + "\n").encode())
            await writer.drain()
        writer.close()

    async def ask(self, questions):
        port = self.server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for question in questions:
            writer.write(f"{question}\n".encode())
            await writer.drain()
            answered.append((await reader.readline()).decode().strip())
            stamp()
        writer.close()
        await writer.wait_closed()

    async def __aexit__(self, *exception):
        self.server.close()
        await self.server.wait_closed()


async def main(kind, clients, requests):
    async with kind() as service:
        await asyncio.gather(*(asyncio.create_task(service.ask([f"{c}.{r}" for r in range(requests)]),
                                                   name=f"client-{c}") for c in range(clients)))


if __name__ == "__main__":
    loop, kind, clients, requests, path = sys.argv[1:]
    program = main({"aiohttp": Http, "streams": Streams}[kind], int(clients), int(requests))
    if loop == "uvloop":
        import uvloop
        uvloop.run(program)
    else:
        asyncio.run(program)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"truth": truth, "handled": handled, "answered": answered}, file)
