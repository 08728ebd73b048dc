/** The calls that longer calls consist of, with the paths of a client. */
import type { CreateSettings, Data } from '../operations/create.ts';
import type { CallOptions } from '../session/operation.ts';
import type { SessionId } from '@tskeeper/protocol';
import type { Stat } from '../stat.ts';

/** `linearizable`: a read that sees every write acknowledged to any client before it. */
interface ReadOptions extends CallOptions {
  readonly linearizable?: boolean;
}

interface VersionOptions extends CallOptions {
  readonly version?: number | undefined;
}

export interface Created {
  readonly path: string;
  readonly stat: Stat;
}

export interface DataAndStat {
  readonly data: Uint8Array | null;
  readonly stat: Stat;
}

export interface Znodes {
  readonly sessionId: SessionId;
  create(path: string, data: Data | undefined, options: CreateSettings & CallOptions): Promise<Created>;
  delete(path: string, options: VersionOptions): Promise<void>;
  exists(path: string, options: ReadOptions): Promise<Stat | null>;
  getData(path: string, options: ReadOptions): Promise<DataAndStat>;
  setData(path: string, data: Data, options: VersionOptions): Promise<Stat>;
  getChildren(path: string, options: ReadOptions): Promise<{ readonly children: readonly string[]; readonly stat: Stat }>;
}
