/**
 * A session machine alone: inputs and time by hand, and all outputs recorded in order.
 *
 * Randomness is replaced by the middle: every random pause is half of its maximum. For the list of
 * servers it is the maximum, unless given otherwise: the list keeps its order, and a client that
 * may stay stays.
 */
import { ErrorCode, errorName, OpCode, type Reader, Writer } from '@tskeeper/protocol';
import type { RequestFailure } from '../../src/keeper-error.ts';
import { HostProvider } from '../../src/session/host-provider.ts';
import { Request } from '../../src/session/request.ts';
import type { AuthCall } from '../../src/auth/credentials.ts';
import { SessionMachine } from '../../src/session/session-machine.ts';
import type { SessionOptions } from '../../src/session/session-options.ts';
import type { SessionOutputs } from '../../src/session/session-output.ts';
import { connectResponse, describeFrames, type Grant } from './server-frames.ts';

export class NamedRequest extends Request {
  readonly opCode = OpCode.exists;
  readonly name: string;

  constructor(name: string) {
    super();
    this.name = name;
  }

  write(writer: Writer): void {
    writer.ustring(this.name);
    writer.boolean(false);
  }
}

type Outputs = SessionOutputs<NamedRequest>;

/** The receiver of all outputs of a machine. */
export type MachineOutput = Outputs['cnxn'] &
  Outputs['probes'] &
  Outputs['calls'] &
  Outputs['identities'] &
  Outputs['watches'] &
  Outputs['events'] &
  Outputs['states'];

/** One receiver for all outputs, which shows their order. */
export function outputsTo(output: MachineOutput): Outputs {
  return { cnxn: output, probes: output, calls: output, identities: output, watches: output, events: output, states: output };
}

export class MachineRig {
  nowMs = 0;
  /** Outputs since the last call of `take`. */
  #said: string[] = [];
  #fresh = true;
  #dialling = false;
  restore: { readonly opCode: OpCode; write(writer: Writer): void }[] = [];
  readonly machine: SessionMachine<NamedRequest>;

  constructor(options: Partial<SessionOptions> = {}, hosts = ['a', 'b', 'c'], listChance = 0xffffffff) {
    const out: MachineOutput = {
      resolve: (host) => void this.#said.push(`resolve ${host}`),
      resolveSrv: (name) => void this.#said.push(`resolve srv:${name}`),
      dial: (server) => {
        this.#fresh = true;
        this.#dialling = true;
        this.#said.push(`dial ${server.host}`);
      },
      probe: (server) => void this.#said.push(`probe ${server.host}`),
      send: (bytes) => {
        for (const line of describeFrames(bytes, this.#fresh)) this.#said.push(`send ${line}`);
        this.#fresh = false;
      },
      startSasl: (server) => void this.#said.push(`sasl begin ${server.host}`),
      continueSasl: (challenge) => void this.#said.push(`sasl challenge ${challenge === null ? 'null' : challenge.toString()}`),
      closeCnxn: (gently) => {
        this.#dialling = false;
        this.#said.push(gently ? 'hang up gently' : 'hang up');
      },
      answered: (request, err, reader) => void this.#said.push(`${request.name}: ${this.#answer(err, reader)}`),
      failed: (request, refusal) => void this.#said.push(`${request.name}: ${failure(refusal)}`),
      authenticated: (call) => void this.#said.push(`authenticated ${call.credentials.scheme}`),
      authFailed: (call, refusal) => void this.#said.push(`not authenticated ${call.credentials.scheme}: ${failure(refusal)}`),
      event: (event, zxid) => void this.#said.push(`event ${event.type} ${event.path} zxid=${zxid}`),
      connectionFailed: () => undefined,
      state: (state, reason) => void this.#said.push(reason === undefined ? state : `${state}: ${reason}`),
      restoreWatches: () => this.restore,
    };
    const servers = hosts.map((host) => ({ host, port: 2181 }));
    const middle = { uint32: () => 0x80000000 };
    this.machine = new SessionMachine(
      {
        sessionTimeoutMs: 9000,
        readOnly: false,
        packetBytesMax: 1000,
        session: undefined,
        auth: [],
        expireLocally: false,
        yieldSession: false,
        srvName: undefined,
        resolvesNames: false,
        sasl: false,
        waitForFirstConnection: false,
        requestTimeoutMs: undefined,
        ...options,
      },
      new HostProvider(servers, { uint32: () => listChance }),
      middle,
      outputsTo(out),
      0,
    );
  }

  #answer(err: number, reader: Reader): string {
    if (err !== ErrorCode.Ok) return errorName(err) ?? String(err);
    return reader.remaining === 0 ? 'ok' : String(reader.ustring());
  }

  /** Returns and clears the outputs since the last call. */
  take(): string[] {
    const said = this.#said;
    this.#said = [];
    return said;
  }

  /** Advances time, and wakes the machine at its deadlines. */
  pass(ms: number): string[] {
    const end = this.nowMs + ms;
    for (;;) {
      const deadline = this.machine.deadline();
      if (deadline === undefined || deadline > end) break;
      this.nowMs = Math.max(this.nowMs, deadline);
      this.machine.wake(this.nowMs);
    }
    this.nowMs = end;
    return this.take();
  }

  receive(...frames: Buffer[]): string[] {
    this.machine.received(Buffer.concat(frames), this.nowMs);
    return this.take();
  }

  /** Opens the connection to the next server, and grants a session. */
  connect(grant: Grant = {}): string[] {
    while (!this.#dialling) this.pass(Math.max(0, this.machine.deadline()! - this.nowMs));
    this.machine.cnxnOpened(this.nowMs);
    this.take();
    return this.receive(connectResponse(grant));
  }

  submit(...names: string[]): NamedRequest[] {
    const requests = names.map((name) => new NamedRequest(name));
    for (const request of requests) this.machine.submit(request);
    this.machine.flush(this.nowMs);
    return requests;
  }

  authenticate(scheme: string, auth = 'user:password'): AuthCall {
    const call = credentials(scheme, auth);
    this.machine.authenticate(call);
    this.machine.flush(this.nowMs);
    return call;
  }

  drop(error?: string): string[] {
    this.#dialling = false;
    this.machine.cnxnClosed(error, this.nowMs);
    return this.take();
  }

  close(): string[] {
    this.machine.close(this.nowMs);
    this.machine.flush(this.nowMs);
    return this.take();
  }
}

export function credentials(scheme: string, auth = 'user:password'): AuthCall {
  return { credentials: { scheme, auth: Buffer.from(auth) } };
}

export function failure({ errno, outcome, reason }: RequestFailure): string {
  return `${errorName(errno) ?? errno}, ${outcome} (${reason ?? ''})`;
}
