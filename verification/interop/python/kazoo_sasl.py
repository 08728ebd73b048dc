"""Connects with kazoo and SASL DIGEST-MD5, and prints what each user may do.

Usage: kazoo_sasl.py attempts

`attempts` is JSON: a list of {"name", "connect", "user", "password", "path"}; without a user kazoo
uses no SASL. Prints one JSON line for each: its name, and its outcome in words.
"""

import json
import sys

from kazoo.client import KazooClient
from kazoo.security import CREATOR_ALL_ACL

# Above any delay of a busy machine; only a failure takes this long.
PATIENCE = 20


def outcome_of(attempt):
    options = None
    if attempt.get("user"):
        options = {"mechanism": "DIGEST-MD5", "username": attempt["user"], "password": attempt["password"]}
    zk = KazooClient(hosts=attempt["connect"], timeout=10, sasl_options=options)
    try:
        zk.start(timeout=PATIENCE)
        zk.create(attempt["path"], b"", acl=CREATOR_ALL_ACL)
        acls, _ = zk.get_acls(attempt["path"])
        zk.delete(attempt["path"])
        return "created with the ACL " + " ".join(f"{acl.id.scheme}:{acl.id.id}" for acl in acls)
    except Exception as error:
        return type(error).__name__
    finally:
        zk.stop()
        zk.close()


for attempt in json.loads(sys.argv[1]):
    print(json.dumps({"name": attempt["name"], "outcome": outcome_of(attempt)}), flush=True)
