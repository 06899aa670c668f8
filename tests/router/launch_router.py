"""Runs the SGLang router with the flags of its own launcher, as a child that ends when this process's standard input does.

The launcher of this version does not offer the policy consistent_hashing on its command line, though the router has it:
it is let through here. Of the package's dependencies nothing is needed beside the router itself.
"""

import argparse
import os
import signal
import sys
import threading


def run_router() -> None:
    from sglang_router.router import Router
    from sglang_router.router_args import RouterArgs

    parser = argparse.ArgumentParser()
    RouterArgs.add_cli_args(parser)
    for action in parser._actions:
        if action.dest == "policy":
            action.choices = [*action.choices, "consistent_hashing"]
    Router.from_args(RouterArgs.from_cli_args(parser.parse_args())).start()


def watch(child: int) -> None:
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


# The router keeps the interpreter to itself while it runs, so that nothing beside it could watch the input.
child = os.fork()
if child == 0:
    run_router()
else:
    threading.Thread(target=watch, args=(child,)).start()
    sys.stdin.buffer.read()
    os.kill(child, signal.SIGKILL)
