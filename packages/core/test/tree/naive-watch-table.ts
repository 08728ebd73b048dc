/**
 * The behaviour of a watch table, written in the plainest way from the rules: two tables of path ->
 * connection -> modes. It shares nothing with the real one. A fault can be requested, to prove that
 * the comparison would detect it.
 */
const allModes = { data: 1, child: 2, persistent: 4, recursive: 8 };
const modesOfType: Record<number, number> = { 1: 2, 2: 1, 3: 15, 4: 4, 5: 8 };

export type Fault = 'tells twice' | 'keeps one-shots' | 'counts persistent once';

interface Pending {
  readonly onParent: boolean;
  readonly eventType: number;
  /**
   * The watches that cause the event: `path mode`. Persistent ones can be removed; one-shots have
   * fired.
   */
  readonly reasons: Map<number, Set<string>>;
}

export class NaiveWatchTable {
  /** `cnxn path` -> modes. */
  readonly #watches = new Map<string, { cnxn: number; path: string; modes: number }>();
  readonly #fault: Fault | undefined;
  #pending: Pending[] = [];
  #received: string[] = [];

  constructor(fault?: Fault) {
    this.#fault = fault;
  }

  addPath(cnxn: number, path: string, modes: number): void {
    const key = `${cnxn} ${path}`;
    this.#watches.set(key, { cnxn, path, modes: (this.#watches.get(key)?.modes ?? 0) | modes });
  }

  has(cnxn: number, path: string, type: number): boolean {
    return ((this.#watches.get(`${cnxn} ${path}`)?.modes ?? 0) & modesOfType[type]!) !== 0;
  }

  remove(cnxn: number, path: string, type: number): boolean {
    if (!this.has(cnxn, path, type)) return false;
    this.#take(cnxn, path, modesOfType[type]!);
    for (const { reasons } of this.#pending) {
      for (const mode of [4, 8]) {
        if ((modesOfType[type]! & mode) !== 0) reasons.get(cnxn)?.delete(`${path} ${mode}`);
      }
      if (reasons.get(cnxn)?.size === 0) reasons.delete(cnxn);
    }
    return true;
  }

  removeAll(cnxn: number): void {
    for (const [key, watch] of this.#watches) {
      if (watch.cnxn === cnxn) this.#watches.delete(key);
    }
    for (const { reasons } of this.#pending) reasons.delete(cnxn);
  }

  begin(path: string, eventType: number): void {
    const node: Pending = { onParent: false, eventType, reasons: new Map() };
    const parent: Pending = { onParent: true, eventType: 4, reasons: new Map() };
    const parentPath = path === '/' ? undefined : path.slice(0, path.lastIndexOf('/')) || '/';
    const above = new Set<string>(['/']);
    for (let i = 1; i < path.length; i++) if (path[i] === '/') above.add(path.slice(0, i));
    above.add(path);
    for (const watch of this.#watches.values()) {
      if (watch.path === path) this.#collect(node, watch, allModes.data | allModes.persistent | (eventType === 2 ? allModes.child : 0));
      if (above.has(watch.path)) this.#collect(node, watch, allModes.recursive);
      if (watch.path === parentPath && eventType !== 3) this.#collect(parent, watch, allModes.child | allModes.persistent);
    }
    this.#pending = [node, parent];
    this.#received = [];
  }

  wasTold(cnxn: number, onParent: boolean): void {
    const pending = this.#pending.find((one) => one.onParent === onParent)!;
    if (!pending.reasons.delete(cnxn)) this.#received.push(`not expected: ${cnxn}`);
    this.#received.push(`${cnxn} ${pending.eventType} ${onParent}`);
    if (this.#fault === 'tells twice') this.#received.push(`${cnxn} ${pending.eventType} ${onParent}`);
  }

  /** All events that should have been sent, sorted; pending ones included. */
  end(): string[] {
    for (const { onParent, eventType, reasons } of this.#pending) {
      for (const cnxn of reasons.keys()) this.#received.push(`${cnxn} ${eventType} ${onParent}`);
    }
    this.#pending = [];
    return this.#received.sort();
  }

  get count(): number {
    return this.#sum(13) + this.#sum(this.#fault === 'counts persistent once' ? 2 : 6);
  }

  summary(): { cnxns: number; paths: number; watches: number } {
    const inData = [...this.#watches.values()].filter((watch) => (watch.modes & 13) !== 0);
    return {
      cnxns: new Set(inData.map((watch) => watch.cnxn)).size,
      paths: new Set(inData.map((watch) => watch.path)).size,
      watches: inData.length,
    };
  }

  byPath(): string[] {
    const lists = new Map<string, number[]>();
    for (const watch of this.#watches.values()) {
      if ((watch.modes & 13) !== 0) lists.set(watch.path, [...(lists.get(watch.path) ?? []), watch.cnxn]);
    }
    return [...lists].map(([path, cnxns]) => `${path}: ${cnxns.map(String).sort().join()}`).sort();
  }

  byCnxn(): Map<number, string[]> {
    const lists = new Map<number, string[]>();
    for (const watch of this.#watches.values()) {
      if ((watch.modes & 13) !== 0) lists.set(watch.cnxn, [...(lists.get(watch.cnxn) ?? []), watch.path].sort());
    }
    return lists;
  }

  #sum(modes: number): number {
    return [...this.#watches.values()].filter((watch) => (watch.modes & modes) !== 0).length;
  }

  #collect(pending: Pending, watch: { cnxn: number; path: string; modes: number }, modes: number): void {
    for (const mode of [1, 2, 4, 8]) {
      if ((watch.modes & modes & mode) === 0) continue;
      const reasons = pending.reasons.get(watch.cnxn) ?? new Set();
      pending.reasons.set(watch.cnxn, reasons.add(`${watch.path} ${mode}`));
      if (mode < 4 && this.#fault !== 'keeps one-shots') this.#take(watch.cnxn, watch.path, mode);
    }
  }

  #take(cnxn: number, path: string, modes: number): void {
    const key = `${cnxn} ${path}`;
    const watch = this.#watches.get(key)!;
    watch.modes &= ~modes;
    if (watch.modes === 0) this.#watches.delete(key);
  }
}
