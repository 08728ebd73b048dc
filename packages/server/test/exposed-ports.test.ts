/**
 * A server of an ensemble warns its operator when its ports for other servers trust every
 * connection from other machines.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { LogFields } from '@tskeeper/runtime';
import { exposedPorts } from '../src/exposed-ports.ts';
import { startServerWith } from '../src/server.ts';

const at = (...hosts: string[]) => hosts.map((host) => ({ host, port: 2888 }));

describe('ports for other servers', () => {
  test.each([
    [['127.0.0.1'], []],
    [['localhost', '::1', '127.0.0.2'], []],
    [['0.0.0.0'], ['0.0.0.0:2888']],
    [
      ['10.0.0.1', 'zoo1', '::'],
      ['10.0.0.1:2888', 'zoo1:2888', '[::]:2888'],
    ],
  ])('at %j are open to other machines at %j', (hosts, exposed) => {
    const none = { quorum: [], election: [], observerMaster: [] };
    for (const kind of ['quorum', 'election', 'observerMaster'] as const)
      expect(exposedPorts({ ...none, [kind]: at(...hosts) })).toEqual(exposed);
  });

  test.each([
    ['127.0.0.1', '', 0],
    ['127.0.0.1', 'quorumListenOnAllIPs=true', 1],
    ['zoo1', '', 1],
  ])('of a server at %s with "%s" cause %i warnings at its start', async (host, line, times) => {
    const folder = mkdtempSync(join(tmpdir(), 'exposed-'));
    try {
      writeFileSync(join(folder, 'myid'), '1');
      const lines = [1, 2, 3].map((sid) => `server.${sid}=${sid === 1 ? host : '127.0.0.1'}:2888${sid}:3888${sid};0`);
      const configFile = join(folder, 'zoo.cfg');
      writeFileSync(configFile, [`dataDir=${folder}`, 'initLimit=5', 'syncLimit=2', ...lines, line].join('\n'));
      const warnings: [string, LogFields][] = [];
      const logger = { debug() {}, info() {}, error() {}, warn: (text: string, fields: LogFields) => void warnings.push([text, fields]) };
      const start = () => Promise.reject(new Error('far enough'));
      await expect(startServerWith(start, { configFile, logger })).rejects.toThrow('far enough');
      const received = warnings.filter(([, { event }]) => event === 'server.exposed');
      expect(received).toHaveLength(times);
      for (const [text] of received) expect(text).toMatch(/trust every connection.*Let a firewall admit only the servers of the ensemble/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
