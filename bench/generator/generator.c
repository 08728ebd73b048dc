/*
 * Load for a ZooKeeper server: one process, one thread, one epoll.
 *
 * It speaks the client protocol itself and checks every answer: replies must come in the order of
 * the requests, with the xid and the length that belong to them, with zxids that never go back, and
 * with the data that was written. An answer that does not fit ends the run with exit code 2 and a
 * sentence; an error code of the protocol is counted. The result is one line of JSON on standard
 * output.
 *
 *   generator preload  --port P --znodes N [--first F] [--value B]     makes N znodes, pipelined, and leaves them there
 *   generator load     --port P --op getData|setData|create|mixed ...  keeps each connection at its number of requests in flight
 *   generator probe    --port P --interval MS ...                      reads one znode now and then; ends on SIGTERM
 *   generator watches  --port P --connections C --znodes N             sets C x N watches, then changes every znode
 *   generator expire   --port P --connections C --session-timeout MS   opens C sessions with an ephemeral each, and vanishes
 *
 * Several ports, separated by commas, are the servers of one ensemble: connections are spread over
 * them in turn. So are several pids.
 *
 * A latency runs from before the request's write to after the read that brought its reply.
 * Histograms keep two digits.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { OP_CREATE = 1, OP_EXISTS = 3, OP_GET_DATA = 4, OP_SET_DATA = 5, OP_PING = 11, OP_CLOSE_SESSION = -11 };
enum { XID_PING = -2 };
enum { ERR_NODE_EXISTS = -110 };
enum { EVENT_DATA_CHANGED = 3, STATE_SYNC_CONNECTED = 3 };
enum { STAT_BYTES = 68, REPLY_HEADER_BYTES = 16, PATH_MAX_BYTES = 64, ZNODES_PER_PARENT = 1000, SERVERS_MAX = 16 };

static const uint64_t second_ns = 1000000000ULL;

/* ---- options ---- */

/* Numbers separated by commas. */
struct list {
  int count;
  int numbers[SERVERS_MAX];
};

static struct {
  struct list ports;
  int connections;
  int in_flight;
  int op; /* 0 = mixed */
  int read_percent;
  int znodes;
  int first; /* of the znodes to be made, or of the parents of created znodes */
  int value_bytes;
  double warm_up;
  double seconds;
  int interval_ms;
  int session_timeout_ms;
  struct list server_pids;
} options = {.connections = 1, .in_flight = 1, .op = OP_GET_DATA, .read_percent = 90, .znodes = 1, .value_bytes = 100,
             .warm_up = 0, .seconds = 5, .interval_ms = 0, .session_timeout_ms = 30000};

static uint8_t *value;
static volatile sig_atomic_t stopped;

static void on_signal(int number) {
  (void)number;
  stopped = 1;
}

/* Ends the run. 1: it could not run. 2: the server violated the protocol. */
__attribute__((noreturn, format(printf, 2, 3))) static void fail(int code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("generator: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(code);
}

static uint64_t now_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (uint64_t)at.tv_sec * second_ns + (uint64_t)at.tv_nsec;
}

/*
 * xorshift64: the choice of the next znode only has to be cheap and evenly spread. The same in each
 * run.
 */
static uint64_t chance = 0x9e3779b97f4a7c15ULL;
static uint32_t random_below(uint32_t bound) {
  chance ^= chance << 13;
  chance ^= chance >> 7;
  chance ^= chance << 17;
  return (uint32_t)((chance >> 32) * bound >> 32);
}

static void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes == 0 ? 1 : bytes);
  if (memory == NULL) fail(1, "out of memory (%zu bytes)", bytes);
  return memory;
}

/* ---- histogram: 64 steps to each power of two, so that a value is known to 1.6 % ---- */

enum { STEP_BITS = 6, STEPS = 1 << STEP_BITS, BUCKETS = 64 * STEPS };

struct histogram {
  uint64_t counts[BUCKETS];
  uint64_t count;
  uint64_t sum;
  uint64_t max;
};

static int bucket_of(uint64_t nanoseconds) {
  if (nanoseconds < STEPS) return (int)nanoseconds;
  int power = 63 - __builtin_clzll(nanoseconds);
  return ((power - STEP_BITS + 1) << STEP_BITS) + (int)((nanoseconds >> (power - STEP_BITS)) & (STEPS - 1));
}

/* The middle of a bucket. */
static double value_of(int bucket) {
  int power = bucket >> STEP_BITS;
  if (power == 0) return bucket;
  return ((double)((bucket & (STEPS - 1)) + STEPS) + 0.5) * (double)(1ULL << (power - 1));
}

static void record(struct histogram *histogram, uint64_t nanoseconds) {
  histogram->counts[bucket_of(nanoseconds)]++;
  histogram->count++;
  histogram->sum += nanoseconds;
  if (nanoseconds > histogram->max) histogram->max = nanoseconds;
}

static double percentile_us(const struct histogram *histogram, double share) {
  uint64_t wanted = (uint64_t)(share * (double)histogram->count);
  uint64_t seen = 0;
  for (int bucket = 0; bucket < BUCKETS; bucket++) {
    seen += histogram->counts[bucket];
    if (seen > wanted) {
      double nanoseconds = value_of(bucket);
      return (nanoseconds < (double)histogram->max ? nanoseconds : (double)histogram->max) / 1000;
    }
  }
  return (double)histogram->max / 1000;
}

static void print_latency(const char *name, const struct histogram *histogram) {
  printf("\"%s\":{\"count\":%llu,\"mean\":%.1f,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f}", name,
         (unsigned long long)histogram->count,
         histogram->count == 0 ? 0 : (double)histogram->sum / (double)histogram->count / 1000, percentile_us(histogram, 0.5),
         percentile_us(histogram, 0.9), percentile_us(histogram, 0.99), percentile_us(histogram, 0.999),
         (double)histogram->max / 1000);
}

/* ---- writing and reading jute ---- */

static uint8_t *put_int(uint8_t *at, int32_t number) {
  uint32_t big = htonl((uint32_t)number);
  memcpy(at, &big, 4);
  return at + 4;
}

static uint8_t *put_bytes(uint8_t *at, const void *bytes, int length) {
  at = put_int(at, length);
  memcpy(at, bytes, (size_t)length);
  return at + length;
}

static int32_t get_int(const uint8_t *at) {
  uint32_t big;
  memcpy(&big, at, 4);
  return (int32_t)ntohl(big);
}

static int64_t get_long(const uint8_t *at) {
  return (int64_t)((uint64_t)(uint32_t)get_int(at) << 32 | (uint32_t)get_int(at + 4));
}

static int znode_path(char *path, int number) {
  return snprintf(path, PATH_MAX_BYTES, "/bench/d%04d/n%07d", number / ZNODES_PER_PARENT, number);
}

/* Space that one request may need, including its frame length. */
static size_t request_bytes_max(void) { return PATH_MAX_BYTES + 64 + (size_t)options.value_bytes; }

static uint8_t *put_request(uint8_t *at, int32_t xid, int32_t type, const char *path, int path_length, int flags) {
  uint8_t *start = at;
  at = put_int(at + 4, xid);
  at = put_int(at, type);
  at = put_bytes(at, path, path_length);
  switch (type) {
    case OP_GET_DATA:
      *at++ = 0;
      break;
    case OP_EXISTS:
      *at++ = 1; /* with a watch: there is no other reason to ask here */
      break;
    case OP_SET_DATA:
      at = put_bytes(at, value, options.value_bytes);
      at = put_int(at, -1);
      break;
    case OP_CREATE:
      at = put_bytes(at, value, options.value_bytes);
      at = put_int(at, 1);
      at = put_int(at, 31);
      at = put_bytes(at, "world", 5);
      at = put_bytes(at, "anyone", 6);
      at = put_int(at, flags);
      break;
  }
  put_int(start, (int32_t)(at - start - 4));
  return at;
}

/* Checks the common part of a reply, and returns its error code. */
static int32_t check_header(const uint8_t *frame, int length, int32_t xid, int64_t *last_zxid) {
  if (length < REPLY_HEADER_BYTES) fail(2, "a reply of %d bytes is too short for its header", length);
  if (get_int(frame) != xid) fail(2, "reply with xid %d where %d was next", get_int(frame), xid);
  int64_t zxid = get_long(frame + 4);
  int32_t error = get_int(frame + 12);
  if (zxid < *last_zxid && error == 0) fail(2, "zxid 0x%llx after 0x%llx", (unsigned long long)zxid, (unsigned long long)*last_zxid);
  if (zxid > *last_zxid) *last_zxid = zxid;
  return error;
}

static void check_body(const uint8_t *frame, int length, int32_t type, const char *path, int path_length) {
  const uint8_t *body = frame + REPLY_HEADER_BYTES;
  int body_length = length - REPLY_HEADER_BYTES;
  int expected = type == OP_GET_DATA ? 4 + options.value_bytes + STAT_BYTES : type == OP_CREATE ? 4 + path_length : STAT_BYTES;
  if (body_length != expected) fail(2, "the body of a reply to opcode %d has %d bytes, not %d", type, body_length, expected);
  if (type == OP_GET_DATA && (get_int(body) != options.value_bytes || memcmp(body + 4, value, (size_t)options.value_bytes) != 0))
    fail(2, "getData did not give the data that was written");
  if (type == OP_CREATE && (get_int(body) != path_length || memcmp(body + 4, path, (size_t)path_length) != 0))
    fail(2, "create did not give the path that was asked for");
}

/* ---- connections ---- */

struct sent {
  uint64_t at;
  int32_t type;
};

struct connection {
  int fd;
  int index;
  /* The start of a frame whose rest has not arrived yet. */
  uint8_t *input;
  size_t input_length, input_capacity;
  /* Bytes that the socket did not accept. */
  uint8_t *output;
  size_t output_length, output_capacity;
  int32_t next_xid, next_reply;
  int in_flight;
  /* Ring of the requests in flight, by xid modulo its size. */
  struct sent *sent;
  int sent_size;
  int64_t last_zxid;
  int made;
  uint64_t due;
  bool open;
  /* Has sent something since the last check of heartbeats. */
  bool spoke;
};

/* Connects to the servers in turn. */
static int dial(void) {
  static int dialled;
  int port = options.ports.numbers[dialled++ % options.ports.count];
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) fail(1, "socket: %s", strerror(errno));
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) fail(1, "connect to 127.0.0.1:%d: %s", port, strerror(errno));
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

static int put_connect_request(uint8_t *at) {
  uint8_t *start = at;
  at = put_int(at, 45);
  at = put_int(at, 0);
  memset(at, 0, 8);
  at = put_int(at + 8, options.session_timeout_ms);
  memset(at, 0, 8);
  static const uint8_t password[16];
  at = put_bytes(at + 8, password, 16);
  *at++ = 0;
  return (int)(at - start);
}

static void check_connect_response(const uint8_t *frame, int length) {
  if (length != 37) fail(2, "a ConnectResponse of %d bytes, not 37", length);
  if (get_int(frame + 4) <= 0 || get_long(frame + 8) == 0) fail(2, "the session was refused");
}

static void write_all(int fd, const uint8_t *bytes, size_t length) {
  while (length > 0) {
    ssize_t written = write(fd, bytes, length);
    if (written < 0) fail(2, "the server closed the connection: %s", strerror(errno));
    bytes += written;
    length -= (size_t)written;
  }
}

static void read_all(int fd, uint8_t *bytes, size_t length) {
  while (length > 0) {
    ssize_t got = read(fd, bytes, length);
    if (got <= 0) fail(2, "the server closed the connection%s%s", got < 0 ? ": " : "", got < 0 ? strerror(errno) : "");
    bytes += got;
    length -= (size_t)got;
  }
}

static int read_frame(int fd, uint8_t *frame, int capacity) {
  uint8_t head[4];
  read_all(fd, head, 4);
  int length = get_int(head);
  if (length < 0 || length > capacity) fail(2, "a frame of %d bytes", length);
  read_all(fd, frame, (size_t)length);
  return length;
}

/* A session on a blocking socket, for work before the measurement. */
static int open_blocking(void) {
  int fd = dial();
  uint8_t bytes[64];
  write_all(fd, bytes, (size_t)put_connect_request(bytes));
  int length = read_frame(fd, bytes, sizeof bytes);
  check_connect_response(bytes, length);
  return fd;
}

static void close_blocking(int fd) {
  uint8_t bytes[12];
  put_int(put_int(put_int(bytes, 8), 0x7ffffff0), OP_CLOSE_SESSION);
  write_all(fd, bytes, sizeof bytes);
  while (read(fd, bytes, sizeof bytes) > 0) continue;
  close(fd);
}

/* Creates `count` znodes with the paths of `name`, at most 512 in flight. */
static void create_all(int fd, int count, int (*name)(char *, int), bool may_exist, int32_t *xid, int64_t *last_zxid) {
  enum { BATCH = 512 };
  uint8_t *requests = allocate(BATCH * request_bytes_max());
  uint8_t reply[256];
  char path[PATH_MAX_BYTES];
  for (int first = 0; first < count; first += BATCH) {
    int last = first + BATCH < count ? first + BATCH : count;
    uint8_t *at = requests;
    for (int i = first; i < last; i++) {
      int length = name(path, i);
      at = put_request(at, *xid + i - first, OP_CREATE, path, length, 0);
    }
    write_all(fd, requests, (size_t)(at - requests));
    for (int i = first; i < last; i++) {
      int length = read_frame(fd, reply, sizeof reply);
      int32_t error = check_header(reply, length, (*xid)++, last_zxid);
      int path_length = name(path, i);
      if (error == 0) check_body(reply, length, OP_CREATE, path, path_length);
      else if (error != ERR_NODE_EXISTS || !may_exist) fail(2, "create %s was answered with error %d", path, error);
    }
  }
  free(requests);
}

static int root_path(char *path, int number) {
  (void)number;
  return snprintf(path, PATH_MAX_BYTES, "/bench");
}

static int parent_path(char *path, int number) { return snprintf(path, PATH_MAX_BYTES, "/bench/d%04d", number); }

static int preload_path(char *path, int number) { return znode_path(path, options.first + number); }

static int creator_path(char *path, int number) { return snprintf(path, PATH_MAX_BYTES, "/bench/c%04d", options.first + number); }

/* ---- the epoll loop ---- */

static int poller;
static uint64_t received_bytes_max = 256 * 1024;
static uint8_t *received;
static uint8_t *building;

/* How a mode handles a frame, and a connection that may send again. */
struct behaviour {
  void (*frame)(struct connection *, const uint8_t *, int, uint64_t);
  void (*refill)(struct connection *);
};

static void listen_for(struct connection *connection, uint32_t events, int operation) {
  struct epoll_event event = {.events = events, .data.ptr = connection};
  if (epoll_ctl(poller, operation, connection->fd, &event) < 0) fail(1, "epoll_ctl: %s", strerror(errno));
}

static void keep_output(struct connection *connection, const uint8_t *bytes, size_t length) {
  size_t needed = connection->output_length + length;
  if (needed > connection->output_capacity) {
    connection->output = realloc(connection->output, needed * 2);
    if (connection->output == NULL) fail(1, "out of memory");
    connection->output_capacity = needed * 2;
  }
  memcpy(connection->output + connection->output_length, bytes, length);
  connection->output_length = needed;
}

static void transmit(struct connection *connection, const uint8_t *bytes, size_t length) {
  connection->spoke = true;
  if (connection->output_length > 0) {
    keep_output(connection, bytes, length);
    return;
  }
  ssize_t written = write(connection->fd, bytes, length);
  if (written < 0) {
    if (errno != EAGAIN) fail(2, "connection %d was closed by the server: %s", connection->index, strerror(errno));
    written = 0;
  }
  if ((size_t)written < length) {
    keep_output(connection, bytes + written, length - (size_t)written);
    listen_for(connection, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
  }
}

static void flush_output(struct connection *connection) {
  ssize_t written = write(connection->fd, connection->output, connection->output_length);
  if (written < 0) {
    if (errno == EAGAIN) return;
    fail(2, "connection %d was closed by the server: %s", connection->index, strerror(errno));
  }
  connection->output_length -= (size_t)written;
  memmove(connection->output, connection->output + written, connection->output_length);
  if (connection->output_length == 0) listen_for(connection, EPOLLIN, EPOLL_CTL_MOD);
}

/* One read; then every whole frame in it. */
static void receive(struct connection *connection, const struct behaviour *behaviour) {
  size_t length = connection->input_length;
  memcpy(received, connection->input, length);
  ssize_t got = read(connection->fd, received + length, received_bytes_max - length);
  if (got == 0) fail(2, "connection %d was closed by the server", connection->index);
  if (got < 0) {
    if (errno == EAGAIN) return;
    fail(2, "connection %d was closed by the server: %s", connection->index, strerror(errno));
  }
  uint64_t now = now_ns();
  length += (size_t)got;
  size_t offset = 0;
  while (length - offset >= 4) {
    int frame_length = get_int(received + offset);
    if (frame_length < 0 || (size_t)frame_length > received_bytes_max / 2) fail(2, "a frame of %d bytes", frame_length);
    if (length - offset - 4 < (size_t)frame_length) break;
    const uint8_t *frame = received + offset + 4;
    offset += 4 + (size_t)frame_length;
    if (connection->open && frame_length >= REPLY_HEADER_BYTES && get_int(frame) == XID_PING) continue;
    if (connection->open) {
      behaviour->frame(connection, frame, frame_length, now);
    } else {
      check_connect_response(frame, frame_length);
      connection->open = true;
    }
  }
  connection->input_length = length - offset;
  if (connection->input_length > connection->input_capacity) {
    connection->input_capacity = connection->input_length * 2;
    connection->input = realloc(connection->input, connection->input_capacity);
    if (connection->input == NULL) fail(1, "out of memory");
  }
  memcpy(connection->input, received + offset, connection->input_length);
  if (connection->open) behaviour->refill(connection);
}

static struct connection *opened;
static int opened_count;

/* Pings on connections that have been silent for a quarter of their session's timeout. */
static void keep_alive(void) {
  static uint64_t looked;
  uint64_t now = now_ns();
  if (now - looked < (uint64_t)options.session_timeout_ms * 1000000 / 4) return;
  looked = now;
  uint8_t ping[12];
  put_int(put_int(put_int(ping, 8), XID_PING), OP_PING);
  for (int i = 0; i < opened_count; i++) {
    struct connection *connection = &opened[i];
    if (!connection->spoke && connection->open) transmit(connection, ping, sizeof ping);
    connection->spoke = false;
  }
}

/* Waits for events, at most `timeout_ms` (-1: until one comes), and handles them. */
static void turn(const struct behaviour *behaviour, int timeout_ms) {
  struct epoll_event events[256];
  keep_alive();
  /* Never longer than heartbeats can wait. */
  int patience_ms = options.session_timeout_ms / 8;
  int count = epoll_wait(poller, events, 256, timeout_ms < 0 || timeout_ms > patience_ms ? patience_ms : timeout_ms);
  if (count < 0 && errno != EINTR) fail(1, "epoll_wait: %s", strerror(errno));
  for (int i = 0; i < count; i++) {
    struct connection *connection = events[i].data.ptr;
    if (events[i].events & EPOLLOUT) flush_output(connection);
    if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(connection, behaviour);
  }
}

static void ignore_refill(struct connection *connection) { (void)connection; }

static void unexpected_frame(struct connection *connection, const uint8_t *frame, int length, uint64_t now) {
  (void)frame;
  (void)now;
  fail(2, "connection %d got %d bytes it had not asked for", connection->index, length);
}

static struct connection *open_connections(int count, int in_flight) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  poller = epoll_create1(0);
  received = allocate(received_bytes_max);
  building = allocate((size_t)in_flight * request_bytes_max());
  struct connection *connections = allocate((size_t)count * sizeof *connections);
  opened = connections;
  const struct behaviour handshake = {unexpected_frame, ignore_refill};
  /* In groups, so that the server's backlog is never the limit. */
  for (int first = 0; first < count; first += 64) {
    int last = first + 64 < count ? first + 64 : count;
    for (int i = first; i < last; i++) {
      struct connection *connection = &connections[i];
      opened_count = i + 1;
      connection->index = i;
      connection->fd = dial();
      connection->next_xid = connection->next_reply = 1;
      connection->sent_size = in_flight;
      connection->sent = allocate((size_t)in_flight * sizeof *connection->sent);
      connection->input_capacity = 512;
      connection->input = allocate(connection->input_capacity);
      fcntl(connection->fd, F_SETFL, fcntl(connection->fd, F_GETFL) | O_NONBLOCK);
      listen_for(connection, EPOLLIN, EPOLL_CTL_ADD);
      uint8_t bytes[64];
      transmit(connection, bytes, (size_t)put_connect_request(bytes));
    }
    for (int i = first; i < last; i++) {
      while (!connections[i].open) turn(&handshake, -1);
    }
  }
  return connections;
}

static void close_connections(struct connection *connections, int count) {
  uint8_t bytes[12];
  put_int(put_int(put_int(bytes, 8), 0x7ffffff0), OP_CLOSE_SESSION);
  for (int i = 0; i < count; i++) {
    /*
     * Best effort: the measurement is over, and the session ends by itself if this does not arrive.
     */
    if (connections[i].output_length == 0 && write(connections[i].fd, bytes, sizeof bytes) < 0) continue;
  }
  for (int i = 0; i < count; i++) close(connections[i].fd);
}

static void note_sent(struct connection *connection, int32_t type, uint64_t now) {
  struct sent *sent = &connection->sent[connection->next_xid % connection->sent_size];
  sent->at = now;
  sent->type = type;
  connection->next_xid = connection->next_xid == INT32_MAX ? 1 : connection->next_xid + 1;
  connection->in_flight++;
}

static struct sent *take_sent(struct connection *connection) {
  if (connection->in_flight == 0) fail(2, "connection %d got a reply to nothing", connection->index);
  struct sent *sent = &connection->sent[connection->next_reply % connection->sent_size];
  connection->next_reply = connection->next_reply == INT32_MAX ? 1 : connection->next_reply + 1;
  connection->in_flight--;
  return sent;
}

/* ---- the load ---- */

static struct histogram reads, writes;
static bool measuring;
enum { ERROR_CODES = 160 };
static uint64_t errors[ERROR_CODES];

static int created_path(char *path, const struct connection *connection, int number) {
  return snprintf(path, PATH_MAX_BYTES, "/bench/c%04d/n%08d", options.first + connection->index, number);
}

static void load_frame(struct connection *connection, const uint8_t *frame, int length, uint64_t now) {
  int32_t xid = connection->next_reply;
  struct sent *sent = take_sent(connection);
  int32_t error = check_header(frame, length, xid, &connection->last_zxid);
  if (sent->type == OP_CREATE) connection->made++;
  if (error != 0) {
    if (error > 0 || error <= -ERROR_CODES) fail(2, "error code %d", error);
    if (measuring) errors[-error]++;
  } else {
    char path[PATH_MAX_BYTES];
    int path_length = sent->type == OP_CREATE ? created_path(path, connection, connection->made) : 0;
    check_body(frame, length, sent->type, path, path_length);
    if (measuring) record(sent->type == OP_GET_DATA ? &reads : &writes, now - sent->at);
  }
  if (options.interval_ms > 0) connection->due = now + (uint64_t)options.interval_ms * 1000000;
}

static void load_refill(struct connection *connection) {
  int room = connection->sent_size - connection->in_flight;
  if (room == 0) return;
  uint64_t now = now_ns();
  if (now < connection->due) return;
  uint8_t *at = building;
  char path[PATH_MAX_BYTES];
  for (; room > 0; room--) {
    int32_t type = options.op;
    if (type == 0) type = random_below(100) < (uint32_t)options.read_percent ? OP_GET_DATA : OP_SET_DATA;
    /* The reply is checked against the same counter, which lags by the requests in flight. */
    int path_length = type == OP_CREATE ? created_path(path, connection, connection->made + connection->in_flight + 1)
                                        : znode_path(path, (int)random_below((uint32_t)options.znodes));
    at = put_request(at, connection->next_xid, type, path, path_length, 0);
    note_sent(connection, type, now);
  }
  transmit(connection, building, (size_t)(at - building));
}

static double cpu_seconds_of(int pid) {
  char name[64], text[1024];
  snprintf(name, sizeof name, "/proc/%d/stat", pid);
  FILE *file = fopen(name, "r");
  if (file == NULL) fail(1, "%s: %s", name, strerror(errno));
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = 0;
  unsigned long user, system;
  /* The name of the program may contain anything, so parse from its closing parenthesis. */
  char *after = strrchr(text, ')');
  if (after == NULL || sscanf(after + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
    fail(1, "%s does not read as expected", name);
  return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double cpu_seconds_of_all(const struct list *pids) {
  double sum = 0;
  for (int i = 0; i < pids->count; i++) sum += cpu_seconds_of(pids->numbers[i]);
  return sum;
}

static double own_cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void print_errors(void) {
  printf("\"errors\":{");
  const char *separator = "";
  for (int code = 0; code < ERROR_CODES; code++) {
    if (errors[code] == 0) continue;
    printf("%s\"-%d\":%llu", separator, code, (unsigned long long)errors[code]);
    separator = ",";
  }
  printf("}");
}

static void run_load(void) {
  if (options.op == OP_CREATE) {
    int fd = open_blocking();
    int32_t xid = 1;
    int64_t last_zxid = 0;
    create_all(fd, 1, root_path, true, &xid, &last_zxid);
    create_all(fd, options.connections, creator_path, false, &xid, &last_zxid);
    close_blocking(fd);
  }
  struct connection *connections = open_connections(options.connections, options.in_flight);
  const struct behaviour behaviour = {load_frame, load_refill};
  for (int i = 0; i < options.connections; i++) load_refill(&connections[i]);

  uint64_t warm_until = now_ns() + (uint64_t)(options.warm_up * 1e9);
  uint64_t start = 0, end = UINT64_MAX, late_max = 0;
  double server_cpu = 0, own_cpu = 0;
  uint64_t now = now_ns();
  while (!stopped && now < end) {
    if (!measuring && now >= warm_until) {
      measuring = true;
      if (options.server_pids.count != 0) server_cpu = cpu_seconds_of_all(&options.server_pids);
      own_cpu = own_cpu_seconds();
      start = now_ns();
      end = options.seconds > 0 ? start + (uint64_t)(options.seconds * 1e9) : UINT64_MAX;
    }
    int timeout_ms = 10;
    if (options.interval_ms > 0) {
      for (int i = 0; i < options.connections; i++) {
        struct connection *connection = &connections[i];
        if (connection->in_flight > 0) continue;
        if (now >= connection->due) {
          if (measuring && connection->due >= start && now - connection->due > late_max) late_max = now - connection->due;
          load_refill(connection);
        } else {
          int left_ms = (int)((connection->due - now + 999999) / 1000000);
          if (left_ms < timeout_ms) timeout_ms = left_ms;
        }
      }
    }
    turn(&behaviour, timeout_ms);
    now = now_ns();
  }
  if (start == 0) fail(1, "ended before the warm-up was over");
  double seconds = (double)(now - start) / 1e9;
  if (options.server_pids.count != 0) server_cpu = cpu_seconds_of_all(&options.server_pids) - server_cpu;
  own_cpu = own_cpu_seconds() - own_cpu;
  /*
   * A request without a reply has waited at least this long; omitting it would hide the worst case.
   */
  uint64_t waiting_max = 0;
  for (int i = 0; i < options.connections; i++) {
    struct connection *connection = &connections[i];
    if (connection->in_flight == 0) continue;
    uint64_t waited = now - connection->sent[connection->next_reply % connection->sent_size].at;
    if (waited > waiting_max) waiting_max = waited;
  }
  static struct histogram all;
  for (int bucket = 0; bucket < BUCKETS; bucket++) all.counts[bucket] = reads.counts[bucket] + writes.counts[bucket];
  all.count = reads.count + writes.count;
  all.sum = reads.sum + writes.sum;
  all.max = reads.max > writes.max ? reads.max : writes.max;
  if (waiting_max > all.max) all.max = waiting_max;

  printf("{\"seconds\":%.3f,\"operations\":%llu,\"throughput\":%.1f,", seconds, (unsigned long long)all.count,
         (double)all.count / seconds);
  print_latency("latencyUs", &all);
  printf(",");
  print_latency("readLatencyUs", &reads);
  printf(",");
  print_latency("writeLatencyUs", &writes);
  printf(",");
  print_errors();
  printf(",\"ownCpuShare\":%.3f,\"lateUsMax\":%.1f", own_cpu / seconds, (double)late_max / 1000);
  if (options.server_pids.count != 0) printf(",\"serverCpuSeconds\":%.2f", server_cpu);
  printf("}\n");
  close_connections(connections, options.connections);
}

/* ---- the other modes ---- */

static void run_preload(void) {
  uint64_t start = now_ns();
  int fd = open_blocking();
  int32_t xid = 1;
  int64_t last_zxid = 0;
  create_all(fd, 1, root_path, true, &xid, &last_zxid);
  create_all(fd, (options.first + options.znodes + ZNODES_PER_PARENT - 1) / ZNODES_PER_PARENT, parent_path, true, &xid, &last_zxid);
  create_all(fd, options.znodes, preload_path, false, &xid, &last_zxid);
  close_blocking(fd);
  double seconds = (double)(now_ns() - start) / 1e9;
  printf("{\"znodes\":%d,\"seconds\":%.3f,\"throughput\":%.1f}\n", options.znodes, seconds, (double)options.znodes / seconds);
}

static uint8_t *delivered;
static uint64_t told_count;

static void watches_frame(struct connection *connection, const uint8_t *frame, int length, uint64_t now) {
  (void)now;
  if (length < REPLY_HEADER_BYTES) fail(2, "a frame of %d bytes", length);
  if (get_int(frame) != -1) {
    int32_t xid = connection->next_reply;
    struct sent *sent = take_sent(connection);
    int32_t error = check_header(frame, length, xid, &connection->last_zxid);
    if (error != 0) fail(2, "opcode %d was answered with error %d", sent->type, error);
    check_body(frame, length, sent->type, NULL, 0);
    return;
  }
  char expected[PATH_MAX_BYTES], path[PATH_MAX_BYTES] = "";
  int number = -1, path_length = length - REPLY_HEADER_BYTES - 12;
  if (path_length > 0 && path_length < PATH_MAX_BYTES && get_int(frame + 24) == path_length) {
    memcpy(path, frame + 28, (size_t)path_length);
    if (sscanf(path, "/bench/d%*4d/n%7d", &number) != 1) number = -1;
  }
  if (number < 0 || number >= options.znodes || znode_path(expected, number) != path_length || memcmp(expected, path, (size_t)path_length) != 0)
    fail(2, "connection %d received an event of a path it does not watch", connection->index);
  if (get_int(frame + 16) != EVENT_DATA_CHANGED || get_int(frame + 20) != STATE_SYNC_CONNECTED)
    fail(2, "an event of type %d and state %d", get_int(frame + 16), get_int(frame + 20));
  uint64_t bit = (uint64_t)connection->index * (uint64_t)options.znodes + (uint64_t)number;
  if (delivered[bit / 8] & (1 << (bit % 8))) fail(2, "connection %d received the event of %s twice", connection->index, path);
  delivered[bit / 8] |= (uint8_t)(1 << (bit % 8));
  told_count++;
}

/* The next requests of one kind on every znode in turn; `made` counts them. */
static void walk_znodes(struct connection *connection, int32_t type) {
  uint8_t *at = building;
  char path[PATH_MAX_BYTES];
  while (connection->in_flight < connection->sent_size && connection->made < options.znodes) {
    int path_length = znode_path(path, connection->made++);
    at = put_request(at, connection->next_xid, type, path, path_length, 0);
    note_sent(connection, type, 0);
  }
  if (at != building) transmit(connection, building, (size_t)(at - building));
}

static void watch_more(struct connection *connection) { walk_znodes(connection, OP_EXISTS); }

static int changer = -1;
static void change_more(struct connection *connection) {
  if (connection->index == changer) walk_znodes(connection, OP_SET_DATA);
}

static void run_watches(void) {
  uint64_t wanted = (uint64_t)options.connections * (uint64_t)options.znodes;
  delivered = allocate(wanted / 8 + 1);
  struct connection *connections = open_connections(options.connections + 1, 64);
  changer = options.connections;
  connections[changer].made = options.znodes;
  const struct behaviour setting = {watches_frame, watch_more};
  const struct behaviour changing = {watches_frame, change_more};
  uint64_t start = now_ns();
  for (int i = 0; i < options.connections; i++) watch_more(&connections[i]);
  for (int i = 0; i < options.connections; i++) {
    while (connections[i].in_flight > 0 || connections[i].made < options.znodes) turn(&setting, -1);
  }
  uint64_t set = now_ns();
  connections[changer].made = 0;
  change_more(&connections[changer]);
  uint64_t patience = set + 300 * second_ns;
  while (told_count < wanted && !stopped) {
    turn(&changing, 100);
    if (now_ns() > patience) fail(2, "%llu of %llu events after 300 s", (unsigned long long)told_count, (unsigned long long)wanted);
  }
  uint64_t fired = now_ns();
  printf("{\"watches\":%llu,\"setSeconds\":%.3f,\"fireSeconds\":%.3f}\n", (unsigned long long)wanted, (double)(set - start) / 1e9,
         (double)(fired - set) / 1e9);
  close_connections(connections, options.connections + 1);
}

static void expire_frame(struct connection *connection, const uint8_t *frame, int length, uint64_t now) {
  (void)now;
  int32_t xid = connection->next_reply;
  take_sent(connection);
  char path[PATH_MAX_BYTES];
  int path_length = snprintf(path, sizeof path, "/bench/e%06d", connection->index);
  int32_t error = check_header(frame, length, xid, &connection->last_zxid);
  if (error != 0) fail(2, "create %s was answered with error %d", path, error);
  check_body(frame, length, OP_CREATE, path, path_length);
  connection->made++;
}

static void run_expire(void) {
  int fd = open_blocking();
  int32_t xid = 1;
  int64_t last_zxid = 0;
  create_all(fd, 1, root_path, true, &xid, &last_zxid);
  close_blocking(fd);
  struct connection *connections = open_connections(options.connections, 1);
  const struct behaviour behaviour = {expire_frame, ignore_refill};
  char path[PATH_MAX_BYTES];
  for (int i = 0; i < options.connections; i++) {
    int path_length = snprintf(path, sizeof path, "/bench/e%06d", i);
    uint8_t *end = put_request(building, 1, OP_CREATE, path, path_length, 1);
    note_sent(&connections[i], OP_CREATE, 0);
    transmit(&connections[i], building, (size_t)(end - building));
  }
  for (int i = 0; i < options.connections; i++) {
    while (connections[i].made == 0) turn(&behaviour, -1);
  }
  printf("{\"sessions\":%d}\n", options.connections);
  /* Ending the process drops the connections without a closeSession, which is the point. */
}

/* ---- start ---- */

static double number_after(int count, char **words, int *at) {
  char *end;
  if (*at + 1 >= count) fail(1, "%s needs a number", words[*at]);
  double number = strtod(words[++*at], &end);
  if (*end != 0) fail(1, "%s is not a number, in %s %s", words[*at], words[*at - 1], words[*at]);
  return number;
}

static void list_after(struct list *list, int count, char **words, int *at) {
  if (*at + 1 >= count) fail(1, "%s needs a number", words[*at]);
  const char *rest = words[++*at];
  do {
    char *end;
    long number = strtol(rest, &end, 10);
    if (end == rest || (*end != 0 && *end != ',') || number <= 0) fail(1, "%s is not a list of numbers, in %s %s", rest, words[*at - 1], words[*at]);
    if (list->count == SERVERS_MAX) fail(1, "%s names more than %d servers", words[*at - 1], SERVERS_MAX);
    list->numbers[list->count++] = (int)number;
    rest = *end == ',' ? end + 1 : end;
  } while (*rest != 0);
}

int main(int count, char **words) {
  if (count < 2) fail(1, "which mode? preload, load, probe, watches or expire");
  const char *mode = words[1];
  if (strcmp(mode, "probe") == 0) options.seconds = 0;
  for (int i = 2; i < count; i++) {
    const char *word = words[i];
    if (strcmp(word, "--op") == 0 && i + 1 < count) {
      const char *op = words[++i];
      options.op = strcmp(op, "getData") == 0   ? OP_GET_DATA
                   : strcmp(op, "setData") == 0 ? OP_SET_DATA
                   : strcmp(op, "create") == 0  ? OP_CREATE
                   : strcmp(op, "mixed") == 0   ? 0
                                                : -1;
      if (options.op == -1) fail(1, "--op %s is none of getData, setData, create, mixed", op);
    } else if (strcmp(word, "--port") == 0) list_after(&options.ports, count, words, &i);
    else if (strcmp(word, "--connections") == 0) options.connections = (int)number_after(count, words, &i);
    else if (strcmp(word, "--in-flight") == 0) options.in_flight = (int)number_after(count, words, &i);
    else if (strcmp(word, "--read-percent") == 0) options.read_percent = (int)number_after(count, words, &i);
    else if (strcmp(word, "--znodes") == 0) options.znodes = (int)number_after(count, words, &i);
    else if (strcmp(word, "--first") == 0) options.first = (int)number_after(count, words, &i);
    else if (strcmp(word, "--value") == 0) options.value_bytes = (int)number_after(count, words, &i);
    else if (strcmp(word, "--warm-up") == 0) options.warm_up = number_after(count, words, &i);
    else if (strcmp(word, "--seconds") == 0) options.seconds = number_after(count, words, &i);
    else if (strcmp(word, "--interval") == 0) options.interval_ms = (int)number_after(count, words, &i);
    else if (strcmp(word, "--session-timeout") == 0) options.session_timeout_ms = (int)number_after(count, words, &i);
    else if (strcmp(word, "--server-pid") == 0) list_after(&options.server_pids, count, words, &i);
    else fail(1, "unknown option %s", word);
  }
  if (options.ports.count == 0 || options.connections <= 0 || options.in_flight <= 0 || options.znodes <= 0 || options.value_bytes < 0)
    fail(1, "--port, --connections, --in-flight and --znodes must be above 0");
  if (options.value_bytes > 60000) fail(1, "--value may be 60000 at most");
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, on_signal);
  signal(SIGINT, on_signal);
  value = allocate((size_t)options.value_bytes);
  for (int i = 0; i < options.value_bytes; i++) value[i] = (uint8_t)random_below(256);

  if (strcmp(mode, "preload") == 0) run_preload();
  else if (strcmp(mode, "load") == 0) run_load();
  else if (strcmp(mode, "probe") == 0) {
    /*
     * A probe that waits for a processor would report its own wait as the server's. Fails without
     * permission; then lateUsMax shows it.
     */
    setpriority(PRIO_PROCESS, 0, -10);
    if (options.interval_ms == 0) options.interval_ms = 1;
    run_load();
  } else if (strcmp(mode, "watches") == 0) run_watches();
  else if (strcmp(mode, "expire") == 0) run_expire();
  else fail(1, "unknown mode %s", mode);
  return 0;
}
