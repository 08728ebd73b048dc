/**
 * Four letter words: an operator sends four bytes on a new connection and gets plain text back.
 * Monitoring tools, health checks and people with netcat have parsed these texts for fifteen years,
 * so they are exactly ZooKeeper's.
 */
import type { EnsembleStatus, Inspector, Now } from '@tskeeper/core';
import { formatZxid } from '@tskeeper/protocol';
import type { Metrics, MetricValue } from '../../metrics/metrics.ts';
import type { FourLetterWordHandler } from '../client/word-answers.ts';
import type { CnxnList } from '../cnxn-list.ts';
import { cnxnLine, consLines, dumpLines, inChunks, wchcLines, wchpLines, wchsLines } from './four-letter-listings.ts';
import { javaDouble } from '../java-text.ts';
import type { PreambleKind } from '../preamble.ts';
import type { ServerFacts } from '../server-facts.ts';

export const fourLetterWords = [
  'conf',
  'cons',
  'crst',
  'dirs',
  'dump',
  'envi',
  'gtmk',
  'hash',
  'isro',
  'mntr',
  'ruok',
  'srst',
  'srvr',
  'stat',
  'stmk',
  'wchc',
  'wchp',
  'wchs',
] as const;
export type FourLetterWord = (typeof fourLetterWords)[number];

const wordsByBytes: ReadonlyMap<number, FourLetterWord> = new Map(
  fourLetterWords.map((word) => [Buffer.from(word, 'latin1').readInt32BE(0), word]),
);

/** Answered even while no clients are served. */
const alwaysAnswered: ReadonlySet<FourLetterWord> = new Set(['ruok', 'isro', 'envi', 'gtmk', 'stmk']);
/** Their answers grow with connections, sessions or watches. */
const longWords: ReadonlySet<FourLetterWord> = new Set(['cons', 'stat', 'dump', 'wchc', 'wchp']);

const notServing = 'This ZooKeeper instance is not currently serving requests';
/** ZooKeeper's default: the bits CLIENT_REQUEST, SERVER_PACKET, SESSION and WARNING. */
const traceMaskDefault = 306n;
const wordBytes = 4;
const traceMaskBytes = 8;

/**
 * The value of 4lw.commands.whitelist: words separated by commas, or `*` for all. Unknown words
 * have no effect, as in ZooKeeper.
 */
export function parseWhitelist(value: string, readOnlyModeEnabled: boolean): ReadonlySet<FourLetterWord> {
  const names = new Set(value.split(',').map((name) => name.trim()));
  const allowed = new Set(fourLetterWords.filter((word) => names.has('*') || names.has(word)));
  // A client that accepts a read-only server asks isro whether this is one.
  if (readOnlyModeEnabled) allowed.add('isro');
  return allowed;
}

export interface FourLetterWordsDependencies {
  readonly whitelist: ReadonlySet<FourLetterWord>;
  readonly inspect: Inspector;
  readonly metrics: Metrics;
  readonly facts: ServerFacts;
}

export class FourLetterWords implements FourLetterWordHandler {
  readonly bytesMax = wordBytes + traceMaskBytes;
  readonly #whitelist: ReadonlySet<FourLetterWord>;
  readonly #inspect: Inspector;
  readonly #metrics: Metrics;
  readonly #facts: ServerFacts;
  /** Kept and shown for tools that set it; the log level decides what is logged. */
  #traceMask = traceMaskDefault;

  constructor(parts: FourLetterWordsDependencies) {
    this.#whitelist = parts.whitelist;
    this.#inspect = parts.inspect;
    this.#metrics = parts.metrics;
    this.#facts = parts.facts;
  }

  classify(first: Buffer, count: number): PreambleKind {
    if (count < wordBytes) return 'more';
    const word = wordsByBytes.get(first.readInt32BE(0));
    if (word === undefined) return 'frames';
    // The mask that belongs to stmk is waited for only where it would be used.
    return word === 'stmk' && this.#whitelist.has(word) && count < this.bytesMax ? 'more' : 'word';
  }

  answer(first: Buffer, count: number, cnxns: CnxnList, now: Now): { long: boolean; pieces: Iterator<string> } {
    const word = wordsByBytes.get(first.readInt32BE(0))!;
    if (!this.#whitelist.has(word)) return short(`${word} is not executed because it is not in the whitelist.\n`);
    if (!this.#isServing && !alwaysAnswered.has(word)) return short(word === 'hash' ? notServing : `${notServing}\n`);
    if (word === 'stmk' && count >= this.bytesMax) this.#traceMask = first.readBigInt64BE(wordBytes);
    return { long: longWords.has(word), pieces: inChunks(this.#lines(word, cnxns, now)) };
  }

  get #isServing(): boolean {
    return this.#inspect.role() !== 'looking';
  }

  #lines(word: FourLetterWord, cnxns: CnxnList, now: Now): Iterable<string> {
    switch (word) {
      case 'ruok':
        return ['imok'];
      case 'isro':
        return [this.#isro()];
      case 'srvr':
        return this.#srvrLines(cnxns, false);
      case 'stat':
        return this.#srvrLines(cnxns, true);
      case 'conf':
        return this.#confLines();
      case 'cons':
        return consLines(cnxns);
      case 'crst':
        this.#inspect.resetCnxnStats();
        return ['Connection stats reset.\n'];
      case 'srst':
        this.#metrics.reset();
        return ['Server stats reset.\n'];
      case 'dirs':
        return [`datadir_size: ${this.#facts.dataDirBytes()}\nlogdir_size: ${this.#facts.logDirBytes()}\n`];
      case 'dump':
        return dumpLines(this.#inspect, cnxns, now);
      case 'envi':
        return this.#enviLines();
      case 'gtmk':
      case 'stmk':
        return [String(this.#traceMask)];
      case 'hash':
        return this.#hashLines();
      case 'mntr':
        return this.#mntrLines(cnxns, now);
      case 'wchs':
        return wchsLines(this.#inspect);
      case 'wchc':
        return wchcLines(this.#inspect);
      case 'wchp':
        return wchpLines(this.#inspect);
      default:
        return word satisfies never;
    }
  }

  #isro(): string {
    const role = this.#inspect.role();
    if (role === 'looking') return 'null';
    return role === 'read-only' ? 'ro' : 'rw';
  }

  *#srvrLines(cnxns: CnxnList, withClients: boolean): Generator<string, void, undefined> {
    const inspect = this.#inspect;
    const role = inspect.role();
    yield `Zookeeper version: ${this.#facts.version}\n`;
    if (role === 'read-only') yield 'READ-ONLY mode; serving only read-only clients\n';
    if (withClients) {
      yield 'Clients:\n';
      for (const cnxn of cnxns.cnxns()) yield `${cnxnLine(cnxn, true)}\n`;
      yield '\n';
    }
    const { latency, packetsReceived, packetsSent } = this.#metrics.traffic();
    yield `Latency min/avg/max: ${latency.min}/${javaDouble(latency.avg)}/${latency.max}\n`;
    yield `Received: ${packetsReceived}\nSent: ${packetsSent}\nConnections: ${cnxns.cnxnCount}\n`;
    yield `Outstanding: ${inspect.outstandingRequests()}\nZxid: ${formatZxid(inspect.lastZxid())}\n`;
    yield `Mode: ${role}\nNode count: ${inspect.nodeCount()}\n`;
    if (role === 'leader') {
      const { last, min, max } = this.#metrics.proposalSizes();
      yield `Proposal sizes last/min/max: ${last}/${min}/${max}\n`;
    }
    // After everything that programs look for, in the form of the lines before it, and only if
    // there are any.
    const { unsafe } = this.#facts;
    if (unsafe.length > 0) yield `Unsafe settings: ${unsafe.join(', ')}\n`;
  }

  *#confLines(): Generator<string, void, undefined> {
    const { conf } = this.#facts;
    yield `clientPort=${conf.clientPort}\nsecureClientPort=${conf.secureClientPort}\n`;
    yield `dataDir=${conf.dataDir}\ndataDirSize=${this.#facts.dataDirBytes()}\n`;
    yield `dataLogDir=${conf.dataLogDir}\ndataLogSize=${this.#facts.logDirBytes()}\n`;
    yield `tickTime=${conf.tickTimeMs}\nmaxClientCnxns=${conf.maxClientCnxns}\n`;
    yield `minSessionTimeout=${conf.minSessionTimeoutMs}\nmaxSessionTimeout=${conf.maxSessionTimeoutMs}\n`;
    yield `clientPortListenBacklog=${conf.clientPortListenBacklog}\nserverId=${conf.serverId}\n`;
    const { ensemble } = conf;
    const status = this.#inspect.ensemble();
    if (ensemble === undefined || status === undefined) return;
    yield `initLimit=${ensemble.initLimitTicks}\nsyncLimit=${ensemble.syncLimitTicks}\nelectionAlg=3\n`;
    yield `electionPort=${ensemble.electionPorts.join('|')}\nquorumPort=${ensemble.quorumPorts.join('|')}\n`;
    // The last line of the configuration has no line end, in ZooKeeper either.
    yield `peerType=${ensemble.role === 'participant' ? 0 : 1}\nmembership: \n${status.configText}`;
  }

  *#enviLines(): Generator<string, void, undefined> {
    yield 'Environment:\n';
    for (const [name, value] of this.#facts.environment()) yield `${name}=${value}\n`;
  }

  *#hashLines(): Generator<string, void, undefined> {
    for (const { zxid, digest } of this.#inspect.digests()) yield `${formatZxid(zxid).slice(2)}: ${BigInt.asIntN(64, digest)}\n`;
  }

  *#mntrLines(cnxns: CnxnList, now: Now): Generator<string, void, undefined> {
    yield `zk_version\t${this.#facts.version}\nzk_server_state\t${this.#inspect.role()}\n`;
    const status = this.#inspect.ensemble();
    if (status !== undefined) yield `zk_peer_state\t${peerState(status)}\n`;
    if (status?.learnerMaster !== undefined) yield `zk_observer_master_id\t${status.learnerMaster}\n`;
    for (const [key, value] of this.#metrics.entries({ inspect: this.#inspect, facts: this.#facts, cnxnCount: cnxns.cnxnCount, now })) {
      yield `zk_${key}\t${formatMetric(value)}\n`;
    }
    const { unsafe } = this.#facts;
    if (unsafe.length > 0) yield `zk_unsafe_settings\t${unsafe.length}\n`;
  }
}

/** `leading - broadcast`, `following - synchronization - diff` */
function peerState({ state, phase, syncMode }: EnsembleStatus): string {
  return [state, ...(phase === 'election' ? [] : [phase]), ...(syncMode === undefined ? [] : [syncMode])].join(' - ');
}

function formatMetric(value: MetricValue): string {
  return value.isDouble ? javaDouble(value.value) : String(value.value);
}

function short(text: string): { long: boolean; pieces: Iterator<string> } {
  return { long: false, pieces: [text].values() };
}
