"""Runs a router with the flags of its own launcher, as a child that ends when this process's standard input does.

    launch_router.py sglang_router|smg [flag ...]

sglang-router's launcher does not offer the policy consistent_hashing on its command line, though the router has it: it
is let through here. Of a package's dependencies nothing is needed beside the router itself.
"""

import argparse
import importlib
import os
import signal
import sys
import threading


def run_router(package: str, flags: list[str]) -> None:
    router = importlib.import_module(f"{package}.router")
    router_args = importlib.import_module(f"{package}.router_args")
    parser = argparse.ArgumentParser()
    router_args.RouterArgs.add_cli_args(parser)
    for action in parser._actions:
        if action.dest == "policy":
            action.choices = [*action.choices, "consistent_hashing"]
    router.Router.from_args(router_args.RouterArgs.from_cli_args(parser.parse_args(flags))).start()


def end_with(child: int) -> None:
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


# The router keeps the interpreter to itself while it runs: nothing beside it could watch the input.
child = os.fork()
if child == 0:
    run_router(sys.argv[1], sys.argv[2:])
else:
    threading.Thread(target=end_with, args=(child,)).start()
    sys.stdin.buffer.read()
    os.kill(child, signal.SIGKILL)
