# SPDX-License-Identifier: MIT
"""Real clients and servers of gRPC, by Debian's grpcio, whose messages are plain bytes: no file is generated for them."""

import collections
import concurrent.futures
import os
import threading

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")  # gateways are started beside them, by exec
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc  # noqa: E402
import pytest  # noqa: E402

SECONDS = 60  # that nothing here may take, on however busy a machine

Called = collections.namedtuple("Called", "method metadata left peer")

KINDS = {
    "unary": grpc.unary_unary_rpc_method_handler,
    "server": grpc.unary_stream_rpc_method_handler,
    "client": grpc.stream_unary_rpc_method_handler,
    "both": grpc.stream_stream_rpc_method_handler,
}


class GrpcHost(grpc.GenericRpcHandler):
    """A server. Its methods are /lab.Lab/<name>: `unary`, `server`, `client` and `both` give a function each, or
    several by name: unary={"Get": function}. A function gets the arguments of grpcio: a message or an iterator, and the
    context."""

    def __init__(self, options=(), compression=None, credentials=None, **methods):
        self.handlers = {}
        self.called = []
        self.lock = threading.Lock()
        for kind, functions in methods.items():
            for name, function in functions.items() if isinstance(functions, dict) else [(kind.capitalize(), functions)]:
                self.handlers[name if name.startswith("/") else f"/lab.Lab/{name}"] = KINDS[kind](self.noted(name, function))
        self.server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(16),
            handlers=(self,),
            options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1), *options],
            compression=compression,
        )
        if credentials:
            self.port = self.server.add_secure_port("127.0.0.1:0", credentials)
        else:
            self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.address = f"127.0.0.1:{self.port}"
        self.server.start()

    def noted(self, name, function):
        def run(request, context):
            with self.lock:
                called = Called(name, dict(context.invocation_metadata()), context.time_remaining(), context.peer())
                self.called.append(called)
            return function(request, context)

        return run

    def service(self, details):
        return self.handlers.get(details.method)

    def close(self):
        self.server.stop(0).wait(SECONDS)


class GrpcClient:
    """A channel to a gateway, or to anything. It does not retry by itself."""

    def __init__(self, address, options=(), **more):
        usual = {"grpc.enable_retries": 0, "grpc.use_local_subchannel_pool": 1, "grpc.enable_http_proxy": 0, "grpc.max_receive_message_length": -1}
        every = list({**usual, **dict(options)}.items())
        self.channel = grpc.insecure_channel(address, every, **more) if isinstance(address, str) else address(every)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def unary(self, message=b"", method="Unary", timeout=SECONDS, metadata=(), **more):
        """The answer, and the call that knows more about it. Raises grpc.RpcError."""
        path = method if method.startswith("/") else f"/lab.Lab/{method}"
        return self.channel.unary_unary(path).with_call(message, timeout=timeout, metadata=metadata, **more)

    def failure(self, *args, **named):
        """The grpc.RpcError of a unary call, which has code(), details(), initial_metadata() and trailing_metadata()."""
        try:
            answer, _ = self.unary(*args, **named)
        except grpc.RpcError as error:
            return error
        raise AssertionError(f"it was answered: {answer[:100]}")

    def server(self, message=b"", method="Server", timeout=SECONDS, **more):
        return self.channel.unary_stream(f"/lab.Lab/{method}")(message, timeout=timeout, **more)

    def client(self, messages, method="Client", timeout=SECONDS, **more):
        return self.channel.stream_unary(f"/lab.Lab/{method}").with_call(iter(messages), timeout=timeout, **more)

    def both(self, messages, method="Both", timeout=SECONDS, **more):
        return self.channel.stream_stream(f"/lab.Lab/{method}")(messages, timeout=timeout, **more)


class Fails:
    """Answers of a unary method: the first few fail with these codes, then the message comes back. `times` counts."""

    def __init__(self, *codes, **trailing):
        self.codes, self.trailing, self.times = list(codes), [(key.replace("_", "-"), value) for key, value in trailing.items()], 0

    def __call__(self, message, context):
        self.times += 1
        if self.times <= len(self.codes):
            context.set_trailing_metadata(self.trailing)
            context.abort(self.codes[self.times - 1], "as it was told")
        return message


@pytest.fixture
def serves():
    """serves(read=...): a server with these methods, which ends with the test."""
    made = []

    def make(kind=GrpcHost, **methods):
        made.append(kind(**methods))
        return made[-1]

    yield make
    for each in made:
        each.close()
