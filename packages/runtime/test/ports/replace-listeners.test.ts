import { expect, it } from 'vitest';
import { type Listener, ListenError, type ListenOptions } from '../../src/index.ts';
import { replaceListeners } from '../../src/ports/replace-listeners.ts';

const [one, other] = ['10.0.0.1', '10.0.0.2'];
const all = undefined;

/** A system with two addresses; `excludes` says whether an address and that of all exclude each other. */
class System {
  /** As asked for: `listen 10.0.0.1:1`, `close 10.0.0.1:1`. */
  readonly calls: string[] = [];
  readonly open = new Set<Listener>();
  readonly #excludes: boolean;
  /** Addresses that another process has. */
  readonly taken: (string | undefined)[] = [];

  constructor(excludes: boolean) {
    this.#excludes = excludes;
  }

  async listen({ address, port }: ListenOptions): Promise<Listener> {
    const where = `${address ?? '*'}:${port}`;
    this.calls.push(`listen ${where}`);
    if (address !== all && address !== one && address !== other) throw new ListenError('EADDRNOTAVAIL', `no ${where}`);
    const own = [...this.open].filter(({ endpoint }) => endpoint.port === port).map(({ endpoint }) => endpoint.address);
    const inUse = [...own.map((each) => (each === '::' ? all : each)), ...this.taken];
    if (inUse.some((each) => each === address || (this.#excludes && (each === all || address === all)))) {
      throw new ListenError('EADDRINUSE', `${where} is in use`);
    }
    const listener: Listener = { endpoint: { address: address ?? '::', port }, close: () => Promise.resolve() };
    this.open.add(listener);
    return listener;
  }

  async stopListeningAt(listener: Listener): Promise<void> {
    const { address, port } = listener.endpoint;
    this.calls.push(`close ${address === '::' ? '*' : address}:${port}`);
    this.open.delete(listener);
  }

  /** Listens at these addresses of port 1, and forgets that it was asked to. */
  async listening(...addresses: (string | undefined)[]): Promise<Listener[]> {
    const listeners: Listener[] = [];
    for (const address of addresses) listeners.push(await this.listen(at(address)));
    this.calls.length = 0;
    return listeners;
  }
}

const at = (address: string | undefined, port = 1): ListenOptions => ({ address, port, backlog: undefined });

it('a new address is bound before the old one is given up', async () => {
  const moves: [from: string | undefined, to: ListenOptions, excludes: boolean][] = [
    [one, at(one, 2), true],
    [one, at(other), true],
    [all, at(one, 2), true],
    [all, at(one), false],
    [one, at(all), false],
  ];
  for (const [from, to, excludes] of moves) {
    const system = new System(excludes);
    const old = await system.listening(from);
    const replacement = await replaceListeners(system, old, to);
    expect(replacement.kind).toBe('replaced');
    expect(system.calls).toEqual([`listen ${to.address ?? '*'}:${to.port}`, `close ${from ?? '*'}:1`]);
  }
});

it('where one address and all addresses of a port exclude each other, the old listeners are closed first', async () => {
  for (const [from, to] of [
    [[all], one],
    [[one], all],
    [[one, other], all],
  ] as const) {
    const system = new System(true);
    const old = await system.listening(...from);
    const replacement = await replaceListeners(system, old, at(to));
    expect(replacement.kind).toBe('replaced');
    const attempt = `listen ${to ?? '*'}:1`;
    expect(system.calls).toEqual([attempt, ...from.map((each) => `close ${each ?? '*'}:1`), attempt]);
    expect([...system.open]).toEqual(replacement.kind === 'replaced' ? [replacement.listener] : []);
  }
});

it('an address that the machine does not have closes nothing', async () => {
  const system = new System(true);
  const old = await system.listening(all);
  const replacement = await replaceListeners(system, old, at('10.9.9.9'));
  expect(replacement).toMatchObject({ kind: 'kept', listeners: old });
  expect(system.calls).toEqual(['listen 10.9.9.9:1']);
});

it('an address that another process has, and that does not exclude the old one, closes nothing', async () => {
  const system = new System(true);
  const old = await system.listening(one);
  system.taken.push(other);
  expect(await replaceListeners(system, old, at(other))).toMatchObject({ kind: 'kept', listeners: old });
  expect(system.calls).toEqual([`listen ${other}:1`]);
});

it('an address of which another process has a part leaves the old ones bound again', async () => {
  const system = new System(true);
  const old = await system.listening(one);
  system.taken.push(other);
  const replacement = await replaceListeners(system, old, at(all));
  expect(system.calls).toEqual(['listen *:1', `close ${one}:1`, 'listen *:1', `listen ${one}:1`]);
  expect(replacement).toMatchObject({ kind: 'kept', error: { code: 'EADDRINUSE' }, listeners: [...system.open] });
  expect([...system.open].map(({ endpoint }) => endpoint)).toEqual([{ address: one, port: 1 }]);
});
