/*
 * Drives the operations of the ZooKeeper C client (libzookeeper_mt) against one server and prints
 * one JSON line per check.
 *
 * Usage: c_driver host:port super:password version minSessionTimeoutMs maxSessionTimeoutMs
 * tickTimeMs extendedTypes enforceQuota [hold path] With "hold" it keeps a session with an
 * ephemeral znode until it is killed.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <netinet/in.h>
#include <zookeeper.h>

/* Seconds. Above any delay of a busy machine; only a failure takes this long. */
enum { patience = 20 };
/*
 * Timeout of a session that should expire, in shortest timeouts: a machine may pause for one of
 * them.
 */
enum { brief = 4 };

static const char *server;
static const char *super_auth;
static int min_timeout, max_timeout, extended_types, enforce_quota;
static char **arguments;

/* A failing check leaves through here. */
static jmp_buf failed;
static char failure[1024];

static void fail(const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(failure, sizeof failure, format, values);
  va_end(values);
  longjmp(failed, 1);
}

#define expect(condition) \
  do { \
    if (!(condition)) fail("line %d: %s", __LINE__, #condition); \
  } while (0)

#define expect_code(call, code) \
  do { \
    int got_ = (call); \
    if (got_ != (code)) fail("line %d: %s gave %d (%s), not %d", __LINE__, #call, got_, zerror(got_), (code)); \
  } while (0)

/* Events that a handle's watchers received. */
struct events {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int connected, expired, auth_failed, count;
  /* How often it was connected and disconnected: a change before the wait for it still counts. */
  int times_connected, times_disconnected;
  struct {
    int type;
    char path[512];
  } list[64];
};

static void events_init(struct events *events) {
  memset(events, 0, sizeof *events);
  pthread_mutex_init(&events->lock, NULL);
  pthread_cond_init(&events->changed, NULL);
}

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *context) {
  struct events *events = context;
  (void)zh;
  pthread_mutex_lock(&events->lock);
  if (type == ZOO_SESSION_EVENT) {
    int connected = state == ZOO_CONNECTED_STATE;
    if (connected && !events->connected) events->times_connected++;
    if (!connected && events->connected) events->times_disconnected++;
    events->connected = connected;
    if (state == ZOO_EXPIRED_SESSION_STATE) events->expired = 1;
    if (state == ZOO_AUTH_FAILED_STATE) events->auth_failed = 1;
  } else if (events->count < 64) {
    events->list[events->count].type = type;
    snprintf(events->list[events->count].path, 512, "%s", path);
    events->count++;
  }
  pthread_cond_broadcast(&events->changed);
  pthread_mutex_unlock(&events->lock);
}

/* Waits until *count is at least value; returns whether that happened in time. */
static int wait_for(struct events *events, int *count, int value) {
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += patience;
  pthread_mutex_lock(&events->lock);
  while (*count < value && pthread_cond_timedwait(&events->changed, &events->lock, &deadline) != ETIMEDOUT) {
  }
  int reached = *count >= value;
  pthread_mutex_unlock(&events->lock);
  return reached;
}

/* Waits for the next watch event and compares it. */
static void expect_event(struct events *events, int type, const char *path) {
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += patience;
  pthread_mutex_lock(&events->lock);
  while (events->count == 0 && pthread_cond_timedwait(&events->changed, &events->lock, &deadline) != ETIMEDOUT) {
  }
  int heard = events->count > 0;
  int got_type = 0;
  char got_path[512] = "";
  if (heard) {
    got_type = events->list[0].type;
    strcpy(got_path, events->list[0].path);
    events->count--;
    memmove(&events->list[0], &events->list[1], sizeof events->list[0] * (size_t)events->count);
  }
  pthread_mutex_unlock(&events->lock);
  if (!heard) fail("no event came, expected %d %s", type, path);
  if (got_type != type || strcmp(got_path, path) != 0) fail("event %d %s, expected %d %s", got_type, got_path, type, path);
}

static zhandle_t *open_handle(struct events *events, const char *chroot, int timeout, const clientid_t *id, int flags) {
  char hosts[256];
  events_init(events);
  snprintf(hosts, sizeof hosts, "%s%s", server, chroot);
  zhandle_t *zh = zookeeper_init(hosts, on_event, timeout, id, events, flags);
  if (zh == NULL) fail("zookeeper_init failed: errno %d", errno);
  return zh;
}

static zhandle_t *connected_handle(struct events *events, const char *chroot, int timeout, const clientid_t *id, int flags) {
  zhandle_t *zh = open_handle(events, chroot, timeout, id, flags);
  if (!wait_for(events, &events->times_connected, 1)) fail("did not connect");
  return zh;
}

/*
 * Cuts the TCP connection of a handle, as a broken network would: the newest socket whose other end
 * is the server.
 */
static void cut_connection(void) {
  int port = atoi(strrchr(server, ':') + 1);
  int newest = -1;
  for (int fd = 3; fd < 1024; fd++) {
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && ntohs(peer.sin_port) == port) newest = fd;
  }
  if (newest == -1) fail("found no connection to cut");
  shutdown(newest, SHUT_RDWR);
}

static zhandle_t *zk;
static struct events zk_events;
static char base[128];

/* A path below the check's own znode; a few may be in use at once. */
static const char *at(const char *name) {
  static char paths[8][512];
  static int next;
  char *path = paths[next++ % 8];
  snprintf(path, 512, "%s%s", base, name);
  return path;
}

static void make(const char *name, const char *data, int flags) {
  expect_code(zoo_create(zk, at(name), data, data == NULL ? -1 : (int)strlen(data), &ZOO_OPEN_ACL_UNSAFE, flags, NULL, 0), ZOK);
}

static void persistent_znode(void) {
  char path[512], data[64];
  int length = sizeof data;
  struct Stat stat;
  expect_code(zoo_create(zk, at("/a"), "one", 3, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path), ZOK);
  expect(strcmp(path, at("/a")) == 0);
  expect_code(zoo_get(zk, at("/a"), 0, data, &length, &stat), ZOK);
  expect(length == 3 && memcmp(data, "one", 3) == 0);
  expect(stat.version == 0 && stat.cversion == 0 && stat.aversion == 0 && stat.ephemeralOwner == 0);
  expect(stat.dataLength == 3 && stat.numChildren == 0 && stat.czxid == stat.mzxid && stat.pzxid == stat.czxid);
  expect_code(zoo_delete(zk, at("/a"), -1), ZOK);
  expect_code(zoo_exists(zk, at("/a"), 0, &stat), ZNONODE);
}

static void null_and_empty_data(void) {
  char data[8];
  int length = sizeof data;
  make("/null", NULL, 0);
  expect_code(zoo_get(zk, at("/null"), 0, data, &length, NULL), ZOK);
  expect(length == -1);
  make("/empty", "", 0);
  length = sizeof data;
  expect_code(zoo_get(zk, at("/empty"), 0, data, &length, NULL), ZOK);
  expect(length == 0);
}

static void sequential_znodes(void) {
  char path[512];
  for (int i = 0; i < 3; i++) {
    char expected[512];
    int mode = i == 2 ? ZOO_EPHEMERAL_SEQUENTIAL : ZOO_PERSISTENT_SEQUENTIAL;
    expect_code(zoo_create(zk, at("/s-"), "", 0, &ZOO_OPEN_ACL_UNSAFE, mode, path, sizeof path), ZOK);
    snprintf(expected, sizeof expected, "%s/s-%010d", base, i);
    expect(strcmp(path, expected) == 0);
  }
}

static void create2_answers_the_stat(void) {
  char path[512];
  struct Stat stat;
  expect_code(zoo_create2(zk, at("/e"), "12", 2, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, path, sizeof path, &stat), ZOK);
  expect(stat.dataLength == 2 && stat.ephemeralOwner == zoo_client_id(zk)->client_id);
}

static void container_znode(void) {
  struct Stat stat;
  make("/c", "", ZOO_CONTAINER);
  expect_code(zoo_exists(zk, at("/c"), 0, &stat), ZOK);
  expect(stat.ephemeralOwner == 0);
  struct events events;
  zhandle_t *other = connected_handle(&events, "", 10000, NULL, 0);
  make("/c/child", "", 0);
  expect_code(zoo_wexists(other, at("/c"), on_event, &events, &stat), ZOK);
  expect_code(zoo_delete(zk, at("/c/child"), -1), ZOK);
  /* Without children now, so the server deletes it. */
  expect_event(&events, ZOO_DELETED_EVENT, at("/c"));
  zookeeper_close(other);
}

static void ttl_znode(void) {
  if (!extended_types) {
    expect_code(zoo_create_ttl(zk, at("/t"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 100, NULL, 0), ZUNIMPLEMENTED);
    return;
  }
  struct events events;
  struct Stat stat;
  char path[512];
  zhandle_t *other = connected_handle(&events, "", 10000, NULL, 0);
  expect_code(zoo_create2_ttl(zk, at("/t"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 300, path, sizeof path, &stat), ZOK);
  expect(stat.ephemeralOwner == 0);
  expect_code(zoo_create_ttl(zk, at("/ts-"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 100000, path, sizeof path), ZOK);
  expect(strcmp(path, at("/ts-0000000001")) == 0);
  /* It may have been deleted already. */
  int rc = zoo_wexists(other, at("/t"), on_event, &events, &stat);
  if (rc == ZOK) expect_event(&events, ZOO_DELETED_EVENT, at("/t"));
  else expect_code(rc, ZNONODE);
  zookeeper_close(other);
}

static void versions_are_compared(void) {
  struct Stat stat;
  make("/a", "", 0);
  expect_code(zoo_set2(zk, at("/a"), "x", 1, 0, &stat), ZOK);
  expect(stat.version == 1);
  expect_code(zoo_set(zk, at("/a"), "y", 1, 0), ZBADVERSION);
  expect_code(zoo_delete(zk, at("/a"), 0), ZBADVERSION);
  expect_code(zoo_set(zk, at("/a"), "y", 1, -1), ZOK);
  expect_code(zoo_delete(zk, at("/a"), 2), ZOK);
}

static void refusals_have_their_codes(void) {
  char data[8];
  int length = sizeof data;
  struct String_vector names;
  expect_code(zoo_get(zk, at("/no"), 0, data, &length, NULL), ZNONODE);
  expect_code(zoo_get_children(zk, at("/no"), 0, &names), ZNONODE);
  expect_code(zoo_set(zk, at("/no"), "", 0, -1), ZNONODE);
  expect_code(zoo_delete(zk, at("/no"), -1), ZNONODE);
  expect_code(zoo_create(zk, at("/no/child"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNONODE);
  make("/a", "", 0);
  expect_code(zoo_create(zk, at("/a"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNODEEXISTS);
  make("/a/b", "", 0);
  expect_code(zoo_delete(zk, at("/a"), -1), ZNOTEMPTY);
  make("/e", "", ZOO_EPHEMERAL);
  expect_code(zoo_create(zk, at("/e/c"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNOCHILDRENFOREPHEMERALS);
  expect_code(zoo_create(zk, at("/bad\001"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZBADARGUMENTS);
  expect_code(zoo_delete(zk, "/zookeeper", -1), ZBADARGUMENTS);
  struct ACL strange[] = {{ZOO_PERM_ALL, {"nosuch", "x"}}};
  struct ACL_vector strange_acl = {1, strange};
  expect_code(zoo_create(zk, at("/bad"), "", 0, &strange_acl, 0, NULL, 0), ZINVALIDACL);
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void children_and_stat(void) {
  struct String_vector names;
  struct Stat stat;
  make("/a", "", 0);
  make("/b", "", 0);
  make("/c", "", 0);
  expect_code(zoo_delete(zk, at("/b"), -1), ZOK);
  expect_code(zoo_get_children2(zk, base, 0, &names, &stat), ZOK);
  qsort(names.data, (size_t)names.count, sizeof names.data[0], by_text);
  expect(names.count == 2 && strcmp(names.data[0], "a") == 0 && strcmp(names.data[1], "c") == 0);
  deallocate_String_vector(&names);
  expect(stat.numChildren == 2 && stat.cversion == 4);
}

static void acls(void) {
  struct ACL_vector acl;
  struct Stat stat;
  make("/a", "", 0);
  expect_code(zoo_get_acl(zk, at("/a"), &acl, &stat), ZOK);
  expect(acl.count == 1 && acl.data[0].perms == ZOO_PERM_ALL && strcmp(acl.data[0].id.scheme, "world") == 0 && stat.aversion == 0);
  deallocate_ACL_vector(&acl);
  expect_code(zoo_set_acl(zk, at("/a"), 0, &ZOO_READ_ACL_UNSAFE), ZOK);
  expect_code(zoo_set(zk, at("/a"), "", 0, -1), ZNOAUTH);
  expect_code(zoo_create(zk, at("/a/b"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNOAUTH);
  expect_code(zoo_set_acl(zk, at("/a"), 1, &ZOO_OPEN_ACL_UNSAFE), ZNOAUTH);
}

static void on_auth(int rc, const void *context) {
  struct events *events = (struct events *)context;
  pthread_mutex_lock(&events->lock);
  events->count = rc == ZOK ? 1 : rc;
  pthread_cond_broadcast(&events->changed);
  pthread_mutex_unlock(&events->lock);
}

static void authenticate(zhandle_t *zh, const char *identity) {
  struct events answer;
  events_init(&answer);
  expect_code(zoo_add_auth(zh, "digest", identity, (int)strlen(identity), on_auth, &answer), ZOK);
  expect(wait_for(&answer, &answer.count, 1));
}

static void digest_and_super_auth(void) {
  struct events events, others_events, supers_events;
  zhandle_t *ann = connected_handle(&events, "", 10000, NULL, 0);
  authenticate(ann, "ann:secret");
  expect_code(zoo_create(ann, at("/a"), "hidden", 6, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0), ZOK);
  char data[16];
  int length = sizeof data;
  expect_code(zoo_get(ann, at("/a"), 0, data, &length, NULL), ZOK);
  struct ACL_vector acl;
  expect_code(zoo_get_acl(ann, at("/a"), &acl, NULL), ZOK);
  expect(strcmp(acl.data[0].id.scheme, "digest") == 0 && strncmp(acl.data[0].id.id, "ann:", 4) == 0);
  deallocate_ACL_vector(&acl);
  zhandle_t *other = connected_handle(&others_events, "", 10000, NULL, 0);
  expect_code(zoo_get(other, at("/a"), 0, data, &length, NULL), ZNOAUTH);
  expect_code(zoo_create(other, at("/x"), "", 0, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0), ZINVALIDACL);
  zhandle_t *master = connected_handle(&supers_events, "", 10000, NULL, 0);
  authenticate(master, super_auth);
  length = sizeof data;
  expect_code(zoo_get(master, at("/a"), 0, data, &length, NULL), ZOK);
  expect_code(zoo_delete(master, at("/a"), -1), ZOK);
  zookeeper_close(ann);
  zookeeper_close(other);
  zookeeper_close(master);
}

static void unknown_auth_scheme_fails(void) {
  struct events events;
  zhandle_t *other = connected_handle(&events, "", 10000, NULL, 0);
  expect_code(zoo_add_auth(other, "nosuch", "x", 1, NULL, NULL), ZOK);
  expect(wait_for(&events, &events.auth_failed, 1));
  zookeeper_close(other);
}

static void multi_applies_all(void) {
  zoo_op_t ops[6];
  zoo_op_result_t results[6];
  char a[512], s[512], a_path[512], set_path[512], old[512];
  struct Stat stat;
  make("/old", "", 0);
  strcpy(a_path, at("/a"));
  strcpy(set_path, at("/s-"));
  strcpy(old, at("/old"));
  zoo_create_op_init(&ops[0], a_path, "1", 1, &ZOO_OPEN_ACL_UNSAFE, 0, a, sizeof a);
  zoo_create_op_init(&ops[1], set_path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL, s, sizeof s);
  zoo_set_op_init(&ops[2], a_path, "2", 1, 0, &stat);
  zoo_check_op_init(&ops[3], a_path, 1);
  zoo_delete_op_init(&ops[4], old, -1);
  expect_code(zoo_multi(zk, 5, ops, results), ZOK);
  for (int i = 0; i < 5; i++) expect(results[i].err == ZOK);
  expect(strcmp(a, a_path) == 0 && stat.version == 1);
  expect(strcmp(s, at("/s-0000000002")) == 0);
}

static void multi_changes_nothing_when_one_fails(void) {
  zoo_op_t ops[3];
  zoo_op_result_t results[3];
  char path[512], a_path[512], missing[512];
  struct Stat stat;
  strcpy(a_path, at("/a"));
  strcpy(missing, at("/missing"));
  zoo_create_op_init(&ops[0], a_path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path);
  zoo_check_op_init(&ops[1], missing, -1);
  zoo_delete_op_init(&ops[2], a_path, -1);
  expect_code(zoo_multi(zk, 3, ops, results), ZNONODE);
  expect(results[0].err == ZOK && results[1].err == ZNONODE && results[2].err == ZRUNTIMEINCONSISTENCY);
  expect_code(zoo_exists(zk, a_path, 0, &stat), ZNONODE);
}

static void every_one_shot_watch_fires(void) {
  struct events events;
  struct Stat stat;
  struct String_vector names;
  char data[8];
  int length = sizeof data;
  events_init(&events);
  expect_code(zoo_wexists(zk, at("/a"), on_event, &events, &stat), ZNONODE);
  make("/a", "", 0);
  expect_event(&events, ZOO_CREATED_EVENT, at("/a"));
  expect_code(zoo_wget(zk, at("/a"), on_event, &events, data, &length, NULL), ZOK);
  expect_code(zoo_set(zk, at("/a"), "1", 1, -1), ZOK);
  expect_event(&events, ZOO_CHANGED_EVENT, at("/a"));
  expect_code(zoo_wget_children(zk, at("/a"), on_event, &events, &names), ZOK);
  deallocate_String_vector(&names);
  make("/a/b", "", 0);
  expect_event(&events, ZOO_CHILD_EVENT, at("/a"));
  expect_code(zoo_wget_children(zk, at("/a/b"), on_event, &events, &names), ZOK);
  deallocate_String_vector(&names);
  expect_code(zoo_delete(zk, at("/a/b"), -1), ZOK);
  expect_event(&events, ZOO_DELETED_EVENT, at("/a/b"));
  expect(events.count == 0);
}

static void watches_can_be_removed(void) {
  struct events events;
  char data[8];
  int length = sizeof data;
  events_init(&events);
  make("/a", "", 0);
  expect_code(zoo_remove_watches(zk, at("/a"), ZWATCHTYPE_DATA, on_event, &events, 0), ZNOWATCHER);
  expect_code(zoo_wget(zk, at("/a"), on_event, &events, data, &length, NULL), ZOK);
  expect_code(zoo_remove_watches(zk, at("/a"), ZWATCHTYPE_DATA, on_event, &events, 0), ZOK);
  expect_code(zoo_wget(zk, at("/a"), on_event, &events, data, &length, NULL), ZOK);
  expect_code(zoo_remove_all_watches(zk, at("/a"), ZWATCHTYPE_ANY, 0), ZOK);
}

static void watches_survive_a_reconnect(void) {
  struct events events, watch;
  char data[8];
  int length = sizeof data;
  struct String_vector names;
  make("/data", "", 0);
  zhandle_t *other = connected_handle(&events, "", 10000, NULL, 0);
  int64_t session = zoo_client_id(other)->client_id;
  events_init(&watch);
  expect_code(zoo_wget(other, at("/data"), on_event, &watch, data, &length, NULL), ZOK);
  expect_code(zoo_wget_children(other, at("/data"), on_event, &watch, &names), ZOK);
  deallocate_String_vector(&names);
  cut_connection();
  expect(wait_for(&events, &events.times_disconnected, 1));
  expect(wait_for(&events, &events.times_connected, 2));
  expect(zoo_client_id(other)->client_id == session);
  expect_code(zoo_exists(other, base, 0, NULL), ZOK);
  expect_code(zoo_set(zk, at("/data"), "x", 1, -1), ZOK);
  expect_event(&watch, ZOO_CHANGED_EVENT, at("/data"));
  make("/data/child", "", 0);
  expect_event(&watch, ZOO_CHILD_EVENT, at("/data"));
  zookeeper_close(other);
}

static void large_data(void) {
  make("/big", "", 0);
  int room = 1048575 - 20 - (int)strlen(at("/big"));
  char *data = malloc((size_t)room + 1);
  memset(data, 'x', (size_t)room + 1);
  expect_code(zoo_set(zk, at("/big"), data, room, -1), ZOK);
  int length = room;
  expect_code(zoo_get(zk, at("/big"), 0, data, &length, NULL), ZOK);
  expect(length == room);
  struct events events;
  zhandle_t *other = connected_handle(&events, "", 10000, NULL, 0);
  expect_code(zoo_set(other, at("/big"), data, room + 1, -1), ZCONNECTIONLOSS);
  expect(wait_for(&events, &events.connected, 1));
  zookeeper_close(other);
  free(data);
}

static void on_string(int rc, const char *value, const void *context) {
  struct events *events = (struct events *)context;
  pthread_mutex_lock(&events->lock);
  events->count = rc == ZOK && strcmp(value, base) == 0 ? 1 : -1;
  pthread_cond_broadcast(&events->changed);
  pthread_mutex_unlock(&events->lock);
}

static void sync_answers_its_path(void) {
  struct events answer;
  events_init(&answer);
  expect_code(zoo_async(zk, base, on_string, &answer), ZOK);
  expect(wait_for(&answer, &answer.count, 1));
}

static struct events pipeline;

static void on_stat(int rc, const struct Stat *stat, const void *context) {
  pthread_mutex_lock(&pipeline.lock);
  /* In order means that the versions increase one by one. */
  if (rc == ZOK && stat->version == (int)(intptr_t)context && pipeline.count == stat->version - 1) pipeline.count++;
  pthread_cond_broadcast(&pipeline.changed);
  pthread_mutex_unlock(&pipeline.lock);
}

static void pipelined_requests_are_answered_in_order(void) {
  events_init(&pipeline);
  make("/n", "", 0);
  for (int i = 1; i <= 200; i++) expect_code(zoo_aset(zk, at("/n"), "x", 1, i - 1, on_stat, (void *)(intptr_t)i), ZOK);
  expect(wait_for(&pipeline, &pipeline.count, 200));
}

static void chroot_hides_the_rest(void) {
  struct events events;
  char path[512];
  make("/app", "", 0);
  zhandle_t *inside = connected_handle(&events, at("/app"), 10000, NULL, 0);
  expect_code(zoo_create(inside, "/a", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path), ZOK);
  expect(strcmp(path, "/a") == 0);
  expect_code(zoo_exists(zk, at("/app/a"), 0, NULL), ZOK);
  zookeeper_close(inside);
}

static void session_moves_by_id_and_password(void) {
  struct events first_events, second_events;
  struct Stat stat;
  zhandle_t *first = connected_handle(&first_events, "", 10000, NULL, 0);
  expect_code(zoo_create(first, at("/e"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0), ZOK);
  clientid_t id = *zoo_client_id(first);
  zhandle_t *second = connected_handle(&second_events, "", 10000, &id, 0);
  expect(zoo_client_id(second)->client_id == id.client_id);
  expect(wait_for(&first_events, &first_events.times_disconnected, 1));
  expect_code(zoo_exists(zk, at("/e"), 0, &stat), ZOK);
  expect(stat.ephemeralOwner == id.client_id);
  zookeeper_close(second);
  zookeeper_close(first);
}

static void wrong_password_is_expired(void) {
  struct events first_events, second_events;
  zhandle_t *first = connected_handle(&first_events, "", 10000, NULL, 0);
  clientid_t id = *zoo_client_id(first);
  memset(id.passwd, 7, sizeof id.passwd);
  zhandle_t *second = open_handle(&second_events, "", 10000, &id, 0);
  expect(wait_for(&second_events, &second_events.expired, 1));
  zookeeper_close(second);
  zookeeper_close(first);
}

static void timeouts_are_negotiated(void) {
  struct events low_events, high_events;
  zhandle_t *low = connected_handle(&low_events, "", min_timeout / 2, NULL, 0);
  expect(zoo_recv_timeout(low) == min_timeout);
  zhandle_t *high = connected_handle(&high_events, "", 3600000, NULL, 0);
  expect(zoo_recv_timeout(high) == max_timeout);
  zookeeper_close(low);
  zookeeper_close(high);
}

static void read_only_flag_is_served(void) {
  struct events events;
  zhandle_t *other = connected_handle(&events, "", 10000, NULL, ZOO_READONLY);
  expect_code(zoo_create(other, at("/a"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
  zookeeper_close(other);
}

static void config_and_reconfig(void) {
  char config[256];
  int length = sizeof config;
  struct Stat stat;
  expect_code(zoo_getconfig(zk, 0, config, &length, &stat), ZOK);
  expect(length <= 0 && stat.aversion == -1);
  length = sizeof config;
  expect_code(zoo_reconfig(zk, NULL, "1", NULL, -1, config, &length, &stat), ZRECONFIGDISABLED);
}

static void hard_quota_refuses(void) {
  char quota[512], node[600];
  if (!enforce_quota) return;
  make("/a", "", 0);
  snprintf(quota, sizeof quota, "/zookeeper/quota");
  for (char *part = strtok(strdup(at("/a")), "/"); part != NULL; part = strtok(NULL, "/")) {
    strcat(strcat(quota, "/"), part);
    int rc = zoo_create(zk, quota, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    expect(rc == ZOK || rc == ZNODEEXISTS);
  }
  const char limits[] = "count=-1,bytes=-1=;byteHardLimit=4;countHardLimit=-1";
  snprintf(node, sizeof node, "%s/zookeeper_limits", quota);
  expect_code(zoo_create(zk, node, limits, sizeof limits - 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
  snprintf(node, sizeof node, "%s/zookeeper_stats", quota);
  expect_code(zoo_create(zk, node, "count=0,bytes=0", 15, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
  expect_code(zoo_set(zk, at("/a"), "1234", 4, -1), ZOK);
  expect_code(zoo_set(zk, at("/a"), "12345", 5, -1), -125);
}

static void dead_clients_session_expires(void) {
  struct events events;
  struct Stat stat;
  int pipes[2];
  char ready[16];
  expect(pipe(pipes) == 0);
  char path[512];
  strcpy(path, at("/e"));
  pid_t holder = fork();
  if (holder == 0) {
    dup2(pipes[1], 1);
    char *copy[] = {arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5], arguments[6], arguments[7], arguments[8], "hold", path, NULL};
    execv("/proc/self/exe", copy);
    _exit(127);
  }
  close(pipes[1]);
  int got = (int)read(pipes[0], ready, sizeof ready);
  close(pipes[0]);
  events_init(&events);
  int rc = got > 0 ? zoo_wexists(zk, path, on_event, &events, &stat) : ZSYSTEMERROR;
  kill(holder, SIGKILL);
  waitpid(holder, NULL, 0);
  expect_code(rc, ZOK);
  expect_event(&events, ZOO_DELETED_EVENT, path);
}

static const struct {
  const char *name;
  void (*run)(void);
} checks[] = {
    {"creates, reads and deletes a znode", persistent_znode},
    {"null and empty data are distinguished", null_and_empty_data},
    {"sequences count up below one parent", sequential_znodes},
    {"create2 answers the stat", create2_answers_the_stat},
    {"a container goes after its last child", container_znode},
    {"a TTL znode goes after its time", ttl_znode},
    {"versions are compared", versions_are_compared},
    {"refusals have their codes", refusals_have_their_codes},
    {"children come with the stat", children_and_stat},
    {"ACLs are stored, versioned and enforced", acls},
    {"digest and super auth admit their users", digest_and_super_auth},
    {"an unknown auth scheme fails", unknown_auth_scheme_fails},
    {"a multi applies all of it", multi_applies_all},
    {"a failed multi changes nothing", multi_changes_nothing_when_one_fails},
    {"every one-shot watch fires once", every_one_shot_watch_fires},
    {"watches can be removed", watches_can_be_removed},
    {"watches survive a reconnect", watches_survive_a_reconnect},
    {"nearly a mebibyte fits and more cuts the connection", large_data},
    {"sync answers its path", sync_answers_its_path},
    {"pipelined requests are answered in order", pipelined_requests_are_answered_in_order},
    {"a chroot hides the rest", chroot_hides_the_rest},
    {"a session moves by id and password", session_moves_by_id_and_password},
    {"a wrong password is answered as expired", wrong_password_is_expired},
    {"timeouts are negotiated", timeouts_are_negotiated},
    {"the read-only flag is served by a read-write server", read_only_flag_is_served},
    {"the config can be read and reconfig is refused", config_and_reconfig},
    {"a hard quota refuses", hard_quota_refuses},
    {"a dead client's session expires", dead_clients_session_expires},
};

/* Prints text as a JSON string. */
static void print_json(const char *text) {
  putchar('"');
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') printf("\\%c", c);
    else if (c < 0x20) printf("\\u%04x", c);
    else putchar(c);
  }
  putchar('"');
}

int main(int argc, char **argv) {
  if (argc < 9) return 64;
  arguments = argv;
  server = argv[1];
  super_auth = argv[2];
  min_timeout = atoi(argv[4]);
  max_timeout = atoi(argv[5]);
  extended_types = atoi(argv[7]);
  enforce_quota = atoi(argv[8]);
  zoo_set_debug_level((ZooLogLevel)0);
  if (setjmp(failed) != 0) {
    fprintf(stderr, "%s\n", failure);
    return 1;
  }
  if (argc >= 11) {
    zk = connected_handle(&zk_events, "", brief * min_timeout, NULL, 0);
    expect_code(zoo_create(zk, argv[10], "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0), ZOK);
    printf("ready\n");
    fflush(stdout);
    for (;;) pause();
  }
  zk = connected_handle(&zk_events, "", 10000, NULL, 0);
  char root[64];
  snprintf(root, sizeof root, "/c-%d-%ld", (int)getpid(), (long)time(NULL));
  expect_code(zoo_create(zk, root, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
  for (volatile size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
    snprintf(base, sizeof base, "%s/%d", root, (int)i);
    int bad = setjmp(failed);
    if (bad == 0) {
      expect_code(zoo_create(zk, base, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
      checks[i].run();
    }
    printf("{\"check\": ");
    print_json(checks[i].name);
    if (bad == 0) printf(", \"ok\": true}\n");
    else {
      printf(", \"ok\": false, \"detail\": ");
      print_json(failure);
      printf("}\n");
    }
    fflush(stdout);
  }
  zookeeper_close(zk);
  return 0;
}
