/** The calls that longer calls consist of, with the paths of a client. */
import type { CreateSettings, Data } from '../operations/create.ts';
import type { CallOptions } from './call-options.ts';
import type { SessionId } from '@tskeeper/protocol';
import type { Stat } from '../stat.ts';

/** `linearizable`: a read that sees every write acknowledged to any client before it. */
interface ZnodeReadOptions extends CallOptions {
  readonly linearizable?: boolean;
}

interface ZnodeVersionOptions extends CallOptions {
  readonly version?: number | undefined;
}

export interface CreatedZnode {
  readonly path: string;
  readonly stat: Stat;
}

export interface DataAndStat {
  readonly data: Uint8Array | null;
  readonly stat: Stat;
}

export interface ZnodeCalls {
  readonly sessionId: SessionId;
  create(path: string, data: Data | undefined, options: CreateSettings & CallOptions): Promise<CreatedZnode>;
  delete(path: string, options: ZnodeVersionOptions): Promise<void>;
  exists(path: string, options: ZnodeReadOptions): Promise<Stat | null>;
  getData(path: string, options: ZnodeReadOptions): Promise<DataAndStat>;
  setData(path: string, data: Data, options: ZnodeVersionOptions): Promise<Stat>;
  getChildren(path: string, options: ZnodeReadOptions): Promise<{ readonly children: readonly string[]; readonly stat: Stat }>;
}
