"""Runs a router with the flags of its own launcher; it ends when its standard input does.

    launch_router.py sglang_router|smg [flag ...]

sglang-router's launcher does not offer the policy consistent_hashing on its command line, though the router has it: it
is let through here. Of a package's dependencies nothing is needed beside the router itself.
"""

import argparse
import importlib
import os
import signal
import sys


def run_router(package: str, flags: list[str]) -> None:
    router = importlib.import_module(f"{package}.router")
    router_args = importlib.import_module(f"{package}.router_args")
    parser = argparse.ArgumentParser()
    router_args.RouterArgs.add_cli_args(parser)
    for action in parser._actions:
        if action.dest == "policy":
            action.choices = [*action.choices, "consistent_hashing"]
    router.Router.from_args(router_args.RouterArgs.from_cli_args(parser.parse_args(flags))).start()


def end_with_input(router: int) -> None:
    os.close(1)
    os.close(2)
    sys.stdin.buffer.read()
    # Whose parent is another has lost its own.
    if os.getppid() == router:
        os.kill(router, signal.SIGKILL)


# The router keeps the interpreter to itself while it runs: another process watches the input.
router = os.getpid()
if os.fork() == 0:
    end_with_input(router)
else:
    run_router(sys.argv[1], sys.argv[2:])
