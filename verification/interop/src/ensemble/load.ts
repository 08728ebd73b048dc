/**
 * Writers that continue whatever happens to the servers, and that know of each write whether it was
 * acknowledged, rejected or is unknown: so a lost or repeated write is detected at the end.
 *
 * Each writer has one session for its whole life, which it moves from server to server. It counts
 * in its own znode, by version, which shows a lost or repeated write at once; and it creates
 * sequential znodes, each with its own number as data.
 */
import { OpCode, type SessionId } from '@tskeeper/protocol';

import { openAcl, RawClient, record, until } from '@tskeeper/harness';

const timeOut = 60_000;
/** A writer without a reply for this long tries another server. */
const progressTimeoutMs = 60_000;
/** One sequential create per this many sets. */
const createEvery = 5;

export interface LoadOutcome {
  /** Writes that were acknowledged, or found to be applied after their acknowledgement was lost. */
  readonly acknowledged: number;
  readonly reconnects: number;
  /** Violations. */
  readonly violations: readonly string[];
}

/**
 * After this the client sees what was acknowledged elsewhere. A sync does not suffice: a leader of
 * ZooKeeper answers one of its own clients before it has applied everything.
 */
async function syncWithLeader(client: RawClient): Promise<void> {
  await client.call(OpCode.multi, record.multi([]));
}

class LoadWriter {
  readonly #path: string;
  readonly #ports: () => readonly number[];
  readonly #violations: string[];
  #portIndex: number;
  #session: { readonly id: SessionId; readonly passwd: Buffer } | undefined;
  #client: RawClient | undefined;
  #isMade = false;
  #version = 0;
  #attempts = 0;
  /** By name, the data of an acknowledged create. */
  readonly #createdData = new Map<string, string>();
  acknowledged = 0;
  reconnects = -1;
  isStopped = false;

  constructor(index: number, ports: () => readonly number[], violations: string[]) {
    this.#path = `/load-${index}`;
    this.#ports = ports;
    this.#portIndex = index;
    this.#violations = violations;
  }

  async run(): Promise<void> {
    while (!this.isStopped) {
      try {
        const client = this.#client ?? (await this.#connect());
        if (!this.#isMade) await this.#make(client);
        else if (this.#version % createEvery === createEvery - 1) await this.#create(client);
        await this.#set(client);
      } catch {
        this.#client?.abandon();
        this.#client = undefined;
      }
    }
    this.#client?.abandon();
    this.#client = undefined;
  }

  /**
   * The next server that accepts the session; if there is none, the wait for progress reports it.
   */
  async #connect(): Promise<RawClient> {
    const ports = this.#ports();
    const port = ports[this.#portIndex++ % ports.length]!;
    const session = this.#session === undefined ? {} : { sessionId: this.#session.id, passwd: this.#session.passwd };
    const cnxn = await until(
      `the server on port ${port} accepts a connection`,
      async () => RawClient.connect(port, { timeOut, ...session }, () => this.#violations.push(`the session of ${this.#path} was lost`)),
      0,
    );
    this.#session = { id: cnxn.sessionId, passwd: cnxn.passwd };
    this.reconnects += 1;
    this.#client = cnxn;
    await syncWithLeader(cnxn);
    return cnxn;
  }

  async #make(client: RawClient): Promise<void> {
    const { err } = await client.call(OpCode.create, record.create(this.#path, null, openAcl, 0));
    if (err !== 0 && err !== -110) throw new Error(`create gave ${err}`);
    this.#isMade = true;
  }

  async #set(client: RawClient): Promise<void> {
    const wanted = this.#version + 1;
    await client.call(OpCode.sync, record.pathOnly(this.#path));
    const { value } = await client.call(OpCode.getData, record.pathAndWatch(this.#path, false));
    const { version } = value.stat!;
    if (version === wanted) {
      // The acknowledgement was lost, but the write was applied.
      this.#version = wanted;
      this.acknowledged += 1;
      return;
    }
    if (version !== this.#version) {
      this.#reportViolation(`${this.#path} is at version ${version}, and ${this.#version} writes were acknowledged`);
      this.#version = version;
      return;
    }
    const { err } = await client.call(OpCode.setData, record.setData(this.#path, Buffer.from(String(wanted)), this.#version));
    if (err !== 0) throw new Error(`setData gave ${err}`);
    this.#version = wanted;
    this.acknowledged += 1;
  }

  async #create(client: RawClient): Promise<void> {
    const text = `attempt ${this.#attempts++}`;
    const { err, value } = await client.call(OpCode.create, record.create(`${this.#path}/s-`, Buffer.from(text), openAcl, 2));
    if (err !== 0) throw new Error(`create gave ${err}`);
    if (this.#createdData.has(value.path!)) this.#reportViolation(`two creates returned ${value.path}`);
    this.#createdData.set(value.path!, text);
    this.acknowledged += 1;
  }

  /** Reads everything back. */
  async verify(port: number): Promise<void> {
    const client = await RawClient.connectOrThrow(port, timeOut);
    await syncWithLeader(client);
    const { value } = await client.call(OpCode.getData, record.pathAndWatch(this.#path, false));
    const { version } = value.stat!;
    // The last write may have been applied without a reply.
    if (version !== this.#version && version !== this.#version + 1) {
      this.#reportViolation(`${this.#path} is at version ${version}, and ${this.#version} writes were acknowledged`);
    }
    const { value: listed } = await client.call(OpCode.getChildren, record.pathAndWatch(this.#path, false));
    const seen = new Map<string, string>();
    for (const child of listed.children!) {
      const path = `${this.#path}/${child}`;
      const { value: found } = await client.call(OpCode.getData, record.pathAndWatch(path, false));
      const text = found.data!.toString();
      const twin = seen.get(text);
      if (twin !== undefined) this.#reportViolation(`${text} was applied twice: ${twin} and ${path}`);
      seen.set(text, path);
    }
    for (const [path, text] of this.#createdData)
      if (seen.get(text) !== path) this.#reportViolation(`${path} of ${text} was acknowledged and is lost`);
    await client.close();
  }

  #reportViolation(what: string): void {
    this.#violations.push(what);
  }
}

export class Load {
  readonly #writers: readonly LoadWriter[];
  readonly #violations: string[] = [];
  #running: Promise<unknown> = Promise.resolve();

  /** Writes nothing before `begin`. `ports`: those of the servers now. */
  constructor(ports: () => readonly number[], writers: number) {
    this.#writers = Array.from({ length: writers }, (_, index) => new LoadWriter(index, ports, this.#violations));
  }

  begin(): void {
    for (const writer of this.#writers) writer.isStopped = false;
    this.#running = Promise.all(this.#writers.map((writer) => writer.run()));
  }

  /** Resolves when no request is pending. */
  async stop(): Promise<void> {
    for (const writer of this.#writers) writer.isStopped = true;
    await this.#running;
  }

  /** Waits until each writer has this many more acknowledged writes. */
  async untilProgress(count: number, evidence: () => Promise<string>): Promise<void> {
    const goals = this.#writers.map(({ acknowledged }) => acknowledged + count);
    const isThere = (): boolean => this.#writers.every(({ acknowledged }, index) => acknowledged >= goals[index]!);
    await until(
      `${count} more writes of each writer are acknowledged`,
      async () => (isThere() ? true : undefined),
      progressTimeoutMs,
      evidence,
    );
  }

  /** Reads everything back through one server. No client may be writing. */
  async verify(port: number): Promise<LoadOutcome> {
    for (const writer of this.#writers) await writer.verify(port);
    const sum = (of: (writer: LoadWriter) => number): number => this.#writers.reduce((total, writer) => total + of(writer), 0);
    return {
      acknowledged: sum(({ acknowledged }) => acknowledged),
      reconnects: sum(({ reconnects }) => reconnects),
      violations: this.#violations,
    };
  }
}
