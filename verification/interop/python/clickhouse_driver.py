"""Uses ClickHouse's own client library for Keeper, in the engine of the package chdb, against one server.

Usage: clickhouse_driver.py '{"connect": "127.0.0.1:2181", ...}'. Prints one JSON line per check.

The library reads the flags of the server and chooses its requests by them: with ClickHouse's
extensions a KeeperMap table is dropped with removeRecursive and tryRemove, checks use
checkNotExists and checkStat, and lists have Stats and data. Without them it uses ZooKeeper's own
operations, so all checks hold for Apache ZooKeeper too.
"""

import json
import os
import sys
import tempfile

import chdb

FACTS = json.loads(sys.argv[1])
HOST, PORT = FACTS["connect"].split(",")[0].rsplit(":", 1)
ROWS = 500

CONFIG = f"""<clickhouse>
  <zookeeper><node><host>{HOST}</host><port>{PORT}</port></node><session_timeout_ms>10000</session_timeout_ms></zookeeper>
  <keeper_map_path_prefix>/keeper_map</keeper_map_path_prefix>
</clickhouse>
"""


def check(name, call):
    try:
        call()
        line = {"check": name, "ok": True}
    except Exception as error:  # every failure is the failure of a check
        line = {"check": name, "ok": False, "detail": str(error)[:1000]}
    # The engine writes to the same output.
    sys.stdout.write("\n" + json.dumps(line) + "\n")
    sys.stdout.flush()


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config.xml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIG)
        engine = chdb.connect(f"{os.path.join(folder, 'data')}?config-file={path}")

        def query(sql):
            return str(engine.query(sql)).strip()

        def expect(sql, answer):
            found = query(sql)
            assert found == answer, f"{sql}: expected {answer!r}, got {found!r}"

        def refused(sql):
            try:
                query(sql)
            except Exception:
                return
            raise AssertionError(f"{sql}: expected an error")

        def create(name):
            query(f"create table {name} (key UInt32, value String) engine = KeeperMap('/map') primary key key")

        def fill():
            query(f"insert into one select number, toString(number) from numbers({ROWS})")
            expect("select count(), sum(key) from one", f"{ROWS},{ROWS * (ROWS - 1) // 2}")

        def update():
            query("alter table one update value = 'changed' where key < 10")
            expect("select count() from one where value = 'changed'", "10")

        def delete():
            query("alter table one delete where key < 100")
            expect("select min(key), count() from one", f"100,{ROWS - 100}")

        def strict():
            query("set keeper_map_strict_mode = 1")
            refused("insert into one values (200, 'again')")
            query("insert into one values (1, 'new')")
            query("alter table one update value = 'newer' where key = 1")
            expect("select value from one where key = 1", '"newer"')
            query("set keeper_map_strict_mode = 0")

        def share():
            create("two")
            expect("select count() from two", str(ROWS - 99))
            query("insert into two values (2, 'of two')")
            expect("select value from one where key = 2", '"of two"')

        def truncate():
            query("truncate table two")
            expect("select count() from one", "0")

        def drop():
            query("drop table one sync")
            query("insert into two values (3, 'left')")
            expect("select count() from two", "1")
            query("drop table two sync")
            # The znodes of the map are gone with its last table.
            create("one")
            expect("select count() from one", "0")
            query("drop table one sync")

        def replicated():
            query("create table r (a UInt64) engine = ReplicatedMergeTree('/tables/r', 'one') order by a")
            refused("create table again (a UInt64) engine = ReplicatedMergeTree('/tables/r', 'one') order by a")
            query("drop table r sync")
            query("create table r (a UInt64) engine = ReplicatedMergeTree('/tables/r', 'one') order by a")
            query("drop table r sync")

        check("a KeeperMap table is created", lambda: create("one"))
        check("rows are inserted and read", fill)
        check("rows are updated", update)
        check("rows are deleted", delete)
        check("strict mode inserts no key twice", strict)
        check("a second table has the same rows", share)
        check("a truncated table is empty, also for the other", truncate)
        check("the last dropped table leaves nothing", drop)
        check("a replica is registered once, and leaves nothing when it is dropped", replicated)
        engine.close()


main()
