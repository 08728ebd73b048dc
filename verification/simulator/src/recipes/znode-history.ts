/**
 * The history that the ensemble has committed, from its logs: which znodes existed from which txn
 * to which. Programs have no part in it, so what they believed is checked against it.
 */
import type { Millis, SessionId, Txn, Zxid } from '@tskeeper/protocol';
import type { Recording } from '../record/recording.ts';
import { parentOf } from '../record/parent-of.ts';

/** A znode, from its creation to its end. */
export interface ZnodeLife {
  readonly path: string;
  readonly czxid: Zxid;
  /** The session that created it. */
  readonly session: SessionId;
  readonly data: string;
  /** When the leader processed the request, so it did not exist earlier. */
  readonly createdMs: Millis;
  /** Infinity if it still exists. */
  deletedZxid: Zxid;
  deletedMs: Millis;
  /** It ended with its session, or was deleted by this session. */
  deletedBy: 'its session' | SessionId | undefined;
}

/** A change of data, including the creation. */
export interface ZnodeWrite {
  readonly path: string;
  readonly data: string;
  readonly zxid: Zxid;
  readonly atMs: Millis;
  readonly session: SessionId;
}

export class ZnodeHistory {
  /** In the order of creation. */
  readonly lives: ZnodeLife[] = [];
  readonly writes: ZnodeWrite[] = [];
  readonly #existing = new Map<string, ZnodeLife>();
  readonly #ephemerals = new Map<SessionId, Set<ZnodeLife>>();

  constructor({ log, seedState }: Pick<Recording, 'log' | 'seedState'>) {
    for (const { path } of seedState.znodes) this.#created({ path, czxid: 0, session: 0n, data: '', createdMs: 0 }, false);
    for (const { atMs, logged } of log) {
      const { clientHigh, clientLow, zxid } = logged.header;
      const session = (BigInt(clientHigh >>> 0) << 32n) | BigInt(clientLow >>> 0);
      this.#apply(logged.txn, { zxid, atMs, session });
    }
  }

  /** Children of a znode. */
  childrenOf(parent: string): ZnodeLife[] {
    return this.lives.filter(({ path }) => parentOf(path) === parent);
  }

  /** The znode that this txn created. */
  createdBy(path: string, czxid: bigint): ZnodeLife | undefined {
    return this.lives.find((life) => life.path === path && BigInt(life.czxid) === czxid);
  }

  #apply(txn: Txn, by: { readonly zxid: Zxid; readonly atMs: Millis; readonly session: SessionId }): void {
    switch (txn.kind) {
      case 'create':
      case 'createContainer':
      case 'createTTL': {
        const { path, data } = txn;
        const life = { path, czxid: by.zxid, session: by.session, data: textOf(data), createdMs: by.atMs };
        this.#created(life, txn.kind === 'create' && txn.ephemeral);
        this.writes.push({ path, data: life.data, ...by });
        return;
      }
      case 'delete':
        this.#deleted(txn.path, by.session, by);
        return;
      case 'setData':
        this.writes.push({ path: txn.path, data: textOf(txn.data), ...by });
        return;
      case 'multi':
        if (txn.txns.some((each) => each.txn.kind === 'error')) return;
        for (const each of txn.txns) this.#apply(each.txn, by);
        return;
      case 'closeSession':
        for (const { path } of this.#ephemerals.get(by.session) ?? []) this.#deleted(path, 'its session', by);
        return;
      case 'createSession':
      case 'setACL':
      case 'check':
      case 'error':
        return;
      default:
        txn satisfies never;
    }
  }

  #created(begun: Omit<ZnodeLife, 'deletedZxid' | 'deletedMs' | 'deletedBy'>, isEphemeral: boolean): void {
    const life: ZnodeLife = { ...begun, deletedZxid: Infinity, deletedMs: Infinity, deletedBy: undefined };
    this.lives.push(life);
    this.#existing.set(life.path, life);
    if (!isEphemeral) return;
    const others = this.#ephemerals.get(life.session);
    if (others === undefined) this.#ephemerals.set(life.session, new Set([life]));
    else others.add(life);
  }

  #deleted(path: string, by: ZnodeLife['deletedBy'], { zxid, atMs }: { readonly zxid: Zxid; readonly atMs: Millis }): void {
    const life = this.#existing.get(path);
    if (life === undefined) return;
    life.deletedZxid = zxid;
    life.deletedMs = atMs;
    life.deletedBy = by;
    this.#existing.delete(path);
    this.#ephemerals.get(life.session)?.delete(life);
  }
}

function textOf(data: Uint8Array | null): string {
  return data === null ? '' : Buffer.from(data).toString();
}
