/** A measured ensemble: servers of one kind on this machine, with ZooKeeper's default settings. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { reservePort } from '../scripts/server-process.js';
import { launch, prepareServer } from './servers.js';

/** As in zoo_sample.cfg. */
const defaults = { tickTime: 2000, initLimit: 10, syncLimit: 5 };
const servingTimeoutMs = 60_000;
const pollMs = 10;

export class Ensemble {
  #prepared;
  #servers = [];

  constructor(kind, prepared) {
    this.kind = kind;
    this.#prepared = prepared;
  }

  /** All their ports, for clients that spread over them. */
  get ports() {
    return this.#prepared.map(({ port }) => port);
  }

  get servers() {
    return this.#servers;
  }

  get alive() {
    return this.#servers.some((server) => server.alive);
  }

  async start(index) {
    this.#servers[index] = await launch(this.#prepared[index]);
  }

  /** Waits until every server leads or follows. */
  async untilServing() {
    const deadline = performance.now() + servingTimeoutMs;
    for (;;) {
      const modes = await Promise.all(this.#servers.map((server) => server.mode()));
      if (modes.every((mode) => mode !== undefined) && modes.filter((mode) => mode === 'leader').length === 1) return;
      if (performance.now() > deadline) throw new Error(`the servers "${this.kind}" do not form an ensemble: ${modes.join(', ')}`);
      await delay(pollMs);
    }
  }

  /** Waits until all of them have the same zxid. */
  async untilConverged() {
    const deadline = performance.now() + servingTimeoutMs;
    for (;;) {
      const zxids = await Promise.all(this.#servers.map((server) => server.zxid()));
      if (zxids[0] !== undefined && new Set(zxids).size === 1) return;
      if (performance.now() > deadline) throw new Error(`the servers "${this.kind}" do not reach the same zxid: ${zxids.join(', ')}`);
      await delay(pollMs);
    }
  }

  /** The server that leads. */
  async leader() {
    const modes = await Promise.all(this.#servers.map((server) => server.mode()));
    return modes.indexOf('leader');
  }

  /** Sum over all processes. */
  async memory() {
    const each = await Promise.all(this.#servers.map((server) => server.memory()));
    return { rssMb: each.reduce((sum, { rssMb }) => sum + rssMb, 0) };
  }

  async stop() {
    await Promise.all(this.#servers.filter((server) => server.alive).map((server) => server.stop()));
  }
}

/** Starts `count` servers in folders below `folder`. */
export async function startEnsemble(kind, folder, { count = 3, config = {}, ...options }) {
  const sids = Array.from({ length: count }, (_, index) => index + 1);
  const lines = {};
  for (const sid of sids) lines[`server.${sid}`] = `127.0.0.1:${await reservePort()}:${await reservePort()}`;
  const prepared = [];
  for (const sid of sids) {
    const own = path.join(folder, `server-${sid}`);
    await mkdir(path.join(own, 'data'), { recursive: true });
    await writeFile(path.join(own, 'data', 'myid'), `${sid}\n`);
    prepared.push(await prepareServer(kind, own, { ...options, config: { ...defaults, ...lines, ...config }, port: await reservePort() }));
  }
  const ensemble = new Ensemble(kind, prepared);
  for (const [index] of prepared.entries()) await ensemble.start(index);
  await ensemble.untilServing();
  return ensemble;
}
