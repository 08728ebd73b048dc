/**
 * The configurations of a recording in the order in which they were committed, from the logs: a
 * reconfiguration is a txn. So a checker knows which configurations count at each txn, without
 * asking a server what it believes.
 */
import { OpCode, type Zxid } from '@tskeeper/protocol';
import { membersOf, type Members } from './config-text.ts';
import type { Recording } from './recording.ts';

export interface CommittedConfig {
  /** The txn; 0 for the configuration that the operator has written. */
  readonly zxid: Zxid;
  readonly text: string;
  readonly members: Members;
}

/** In the order of their zxids; the first is the operator's. */
export function committedConfigs({
  log,
  ensemble,
  limits: { oracleSid },
  configText = '',
}: Pick<Recording, 'log' | 'ensemble' | 'limits' | 'configText'>): CommittedConfig[] {
  const configs: CommittedConfig[] = [{ zxid: 0, text: configText, members: ensemble }];
  for (const { logged } of log) {
    const { header, txn } = logged;
    if (header.type !== OpCode.reconfig || txn.kind !== 'setData') continue;
    const text = Buffer.from(txn.data ?? []).toString('utf8');
    configs.push({ zxid: header.zxid, text, members: membersOf(text, oracleSid) });
  }
  return configs;
}

/**
 * The configurations in each of which a quorum must have a txn before it is committed: the one that
 * is active then, and for a reconfiguration the one that it begins.
 */
export function configsAt(configs: readonly CommittedConfig[], zxid: Zxid): readonly Members[] {
  const last = configs.findLastIndex((config) => config.zxid < zxid);
  const next = configs[last + 1];
  const active = configs[last]!.members;
  return next?.zxid === zxid ? [active, next.members] : [active];
}
