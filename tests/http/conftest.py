"""The service over a real store with word vectors: called in process, and by a real server."""

import contextlib
import socket
import threading
import time

import pytest
import uvicorn
from fastapi.testclient import TestClient

from prme_ray import Memory
from prme_ray.http.app import create_app
from tests.memory.tools import FEW_SHARDS, WordEncoder


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "store", settings=FEW_SHARDS, encoder=WordEncoder()) as opened:
        yield opened


@pytest.fixture
def served(memory):
    """Return a function that serves the memory in process, with options of ``create_app``."""
    with contextlib.ExitStack() as closing:

        def serve(over=None, **options):
            app = create_app(memory if over is None else over, **options)
            return closing.enter_context(TestClient(app, "http://127.0.0.1", raise_server_exceptions=False))

        yield serve


@pytest.fixture
def http(served):
    return served()


@pytest.fixture
def listening():
    """Return a function that serves an application on a free port and returns its address."""
    with contextlib.ExitStack() as closing:

        def listen(app):
            server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on"))
            listener = socket.create_server(("127.0.0.1", 0))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
            thread.start()

            def stop():
                server.should_exit = True
                thread.join(30)
                assert not thread.is_alive()

            closing.callback(stop)
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            return f"http://127.0.0.1:{listener.getsockname()[1]}"

        yield listen


@pytest.fixture
def url(memory, listening):
    return listening(create_app(memory))
