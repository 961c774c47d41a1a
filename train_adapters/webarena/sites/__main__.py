"""Serve one site set until its parent ends: `python -m train_adapters.webarena.sites --port 0 --token TOKEN`.

The first line of the output is JSON with the address and the sites' addresses by placeholder. Without a token, one is
drawn and printed with them.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets

from train_adapters.webarena.sites.addresses import addresses
from train_adapters.webarena.sites.server import SiteServer


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m train_adapters.webarena.sites", description="Serve one site set.")
    parser.add_argument("--port", type=int, default=0, help="0 for a port that the system chooses")
    parser.add_argument(
        "--token", default="", help="of the control; also read from SITES_TOKEN, where ps does not show it"
    )
    parser.add_argument("--parent", type=int, default=os.getppid(), help="end with this process; 0 for never")
    chosen = parser.parse_args()
    token = chosen.token or os.environ.get("SITES_TOKEN") or secrets.token_hex(16)
    try:
        server = SiteServer(chosen.port, token, chosen.parent or None)
    except (OSError, OverflowError) as error:
        parser.error(f"cannot listen on port {chosen.port}: {error}. Choose another, or 0.")
    shown = {"url": server.url, "urls": addresses(server.url)}
    if not chosen.token and not os.environ.get("SITES_TOKEN"):
        shown["token"] = token
    print(json.dumps(shown), flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
